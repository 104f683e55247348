"""The messages, enums and services of proto files, with their comments: what protoc's descriptor set knows of them."""
import dataclasses
import functools
import pathlib
import re
import subprocess
import tempfile

from google.protobuf import descriptor_pb2, descriptor_pool

Proto = descriptor_pb2.FieldDescriptorProto
# Field numbers inside descriptors: source locations are paths of these.
FILE_MESSAGES, FILE_ENUMS, FILE_SERVICES, FILE_SYNTAX = 4, 5, 6, 12
MESSAGE_FIELDS, MESSAGE_MESSAGES, MESSAGE_ENUMS = 2, 3, 4
ENUM_VALUES, SERVICE_CALLS = 2, 2
BEHIND = re.compile(r"\s*[^\s/].*[;{}]\s*//")
CONTINUED = re.compile(r"(\s*)//\s?(.*)")
SCALARS = {number: name.removeprefix("TYPE_").lower() for name, number in Proto.Type.items()}


@dataclasses.dataclass
class Field:
    name: str
    key: str  # its name in YAML and JSON
    type: str  # a scalar's name, or the full name of a message or an enum
    comment: str
    repeated: bool = False
    optional: bool = False
    oneof: str = ""
    quantity: str = ""
    map_key: str = ""  # the type of a map's keys; `type` is that of its values


@dataclasses.dataclass
class Message:
    full_name: str
    name: str  # without the package
    line: int
    comment: str
    fields: list


@dataclasses.dataclass
class EnumValue:
    name: str
    number: int
    comment: str


@dataclasses.dataclass
class Enum:
    full_name: str
    name: str
    line: int
    comment: str
    values: list


@dataclasses.dataclass
class Call:
    name: str
    request: str
    response: str
    request_stream: bool
    response_stream: bool
    comment: str


@dataclasses.dataclass
class Service:
    name: str
    comment: str
    calls: list


@dataclasses.dataclass
class File:
    name: str
    comment: str
    package: str
    services: list = dataclasses.field(default_factory=list)
    types: list = dataclasses.field(default_factory=list)  # messages and enums, in the order of the file


class Protos:
    """All files of a descriptor set: `files` by name, `types` (messages and enums) by full name."""

    def __init__(self, tree, names):
        self.files, self.types = {}, {}
        quantity = quantity_option(tree)
        for proto in descriptor_pb2.FileDescriptorSet.FromString(descriptor_set(tree, names)).file:
            self.files[proto.name] = FileReader(proto, quantity).read()
        for file in self.files.values():
            self.types.update((each.full_name, each) for each in file.types)

    def closure(self, root, known=()):
        """The types that `root` uses, each once, each before those that it uses itself; none of `known`."""
        found = []
        for field in getattr(self.types[root], "fields", []):
            if field.type in self.types and field.type not in (*found, *known, root) and not is_well_known(field.type):
                found.append(field.type)
                found += self.closure(field.type, (*found, *known, root))
        return found


def is_well_known(type_name):
    return type_name.startswith("google.protobuf.")


def descriptor_set(tree, names):
    with tempfile.TemporaryDirectory() as folder:
        sources, out = pathlib.Path(folder) / "proto", pathlib.Path(folder) / "set"
        copy_joined(tree / "proto", sources)
        subprocess.run(["protoc", "--include_source_info", "--include_imports", f"--proto_path={sources}",
                        f"--descriptor_set_out={out}", *names], check=True)
        return out.read_bytes()


def copy_joined(tree, target):
    """Copies proto files, the lines of each comment behind a declaration joined to one.

    protoc takes only the first of these lines for the declaration's comment, and the others for that of the next one.
    """
    for source in tree.rglob("*.proto"):
        copy = target / source.relative_to(tree)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text("\n".join(joined_comments(source.read_text().split("\n"))))


def joined_comments(lines):
    joined, behind = [], False  # whether the last line is a declaration with a comment behind it
    for line in lines:
        comment = CONTINUED.fullmatch(line)
        if comment and behind and len(comment.group(1)) > len(joined[-1]) - len(joined[-1].lstrip()):
            joined[-1] += f" {comment.group(2)}"
            continue
        joined.append(line)
        behind = BEHIND.match(line) is not None
    return joined


@functools.cache
def quantity_option(tree):
    """The option (berth.v1.quantity), which the parser of descriptors knows from here on."""
    pool = descriptor_pool.Default()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptor_set(tree, ["berth/v1/types.proto"])).file:
        if file.name == "berth/v1/types.proto":
            pool.AddSerializedFile(file.SerializeToString())
    return pool.FindExtensionByName("berth.v1.quantity")


class FileReader:
    def __init__(self, proto, quantity):
        self.proto, self.quantity = proto, quantity
        self.comments = {tuple(place.path): place for place in proto.source_code_info.location}

    def read(self):
        # The comment of the `syntax` line is that of the file.
        file = File(self.proto.name, self.comment((FILE_SYNTAX,)), self.proto.package)
        self.add_types(self.proto.message_type, self.proto.enum_type, "", (FILE_MESSAGES,), (FILE_ENUMS,), file.types)
        file.types.sort(key=lambda each: each.line)
        file.services = [self.service(service, (FILE_SERVICES, i)) for i, service in enumerate(self.proto.service)]
        return file

    def comment(self, path):
        place = self.comments.get(tuple(path))
        if place is None:
            return ""
        parts = [place.leading_comments, place.trailing_comments]
        return "\n".join(strip_lines(part) for part in parts if part.strip())

    def line(self, path):
        return self.comments[path].span[0]

    def add_types(self, messages, enums, outer, message_path, enum_path, out):
        for i, message in enumerate(messages):
            if message.options.map_entry:
                continue
            path = (*message_path, i)
            name = f"{outer}{message.name}"
            out.append(self.message(message, name, path))
            self.add_types(message.nested_type, message.enum_type, f"{name}.", (*path, MESSAGE_MESSAGES),
                           (*path, MESSAGE_ENUMS), out)
        for i, enum in enumerate(enums):
            out.append(self.enum(enum, f"{outer}{enum.name}", (*enum_path, i)))

    def full(self, name):
        return f"{self.proto.package}.{name}"

    def message(self, message, name, path):
        maps = {self.full(f"{name}.{nested.name}"): nested for nested in message.nested_type if nested.options.map_entry}
        fields = [self.field(message, field, maps, (*path, MESSAGE_FIELDS, i)) for i, field in enumerate(message.field)]
        return Message(self.full(name), name, self.line(path), self.comment(path), fields)

    def field(self, message, field, maps, path):
        entry = maps.get(field.type_name.removeprefix("."))
        value = entry.field[1] if entry else field
        in_oneof = field.HasField("oneof_index") and not field.proto3_optional
        return Field(
            name=field.name, key=field.json_name, type=type_of(value), comment=self.comment(path),
            repeated=field.label == Proto.LABEL_REPEATED and not entry, optional=field.proto3_optional,
            oneof=message.oneof_decl[field.oneof_index].name if in_oneof else "", quantity=self.quantity_of(field),
            map_key=type_of(entry.field[0]) if entry else "")

    def quantity_of(self, field):
        if not field.options.HasExtension(self.quantity):
            return ""
        return self.quantity.enum_type.values_by_number[field.options.Extensions[self.quantity]].name

    def enum(self, enum, name, path):
        values = [EnumValue(value.name, value.number, self.comment((*path, ENUM_VALUES, i)))
                  for i, value in enumerate(enum.value)]
        return Enum(self.full(name), name, self.line(path), self.comment(path), values)

    def service(self, service, path):
        calls = [Call(call.name, call.input_type[1:], call.output_type[1:], call.client_streaming, call.server_streaming,
                      self.comment((*path, SERVICE_CALLS, i))) for i, call in enumerate(service.method)]
        return Service(service.name, self.comment(path), calls)


def type_of(field):
    return field.type_name[1:] if field.type_name else SCALARS[field.type]


def strip_lines(text):
    return "\n".join(line.strip() for line in text.strip().split("\n"))
