"""berth/model.py: a dataclass for each message, an enum for each enum."""
import keyword
import textwrap

import names
from google.protobuf import descriptor_pb2

F = descriptor_pb2.FieldDescriptorProto
PACKAGE = ".berth.v1."
SCALARS = {F.TYPE_STRING: "str", F.TYPE_BOOL: "bool", F.TYPE_BYTES: "bytes", F.TYPE_DOUBLE: "float", F.TYPE_FLOAT: "float"}
EMPTY = {"str": '""', "bool": "False", "bytes": 'b""', "float": "0.0", "int": "0"}
QUANTITY = 51001  # berth.v1.quantity
QUANTITIES = {1: "Cores", 2: "Bytes"}

HEAD = '''\
"""The messages of Berth's API as dataclasses, written by the build from proto/berth/v1.

Fields have the names of manifests, in snake_case. Durations are timedeltas, and may be written as "1h30m" or in seconds;
times are datetimes in UTC, or texts of RFC 3339; memory is in bytes, or "512Mi"; cpu is in cores, or "500m"; enums are
members or texts, as in manifests. None means not set: the server's default applies.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional, Union

from berth import _values
from berth._hours import Held, Hours
from berth._message import Document, JobDocument, Message
from berth._values import Bytes, Choice, Cores, Duration, Many, One, Time
'''


class Sources:
    """Messages and enums of all files, by name below the package, with comments."""

    def __init__(self, files):
        self.messages, self.enums, self.comments, self.modules = {}, {}, {}, {}
        for file in files:
            if not file.name.startswith("berth/v1/"):
                continue
            comments = {tuple(at.path): comment_of(at) for at in file.source_code_info.location}
            module = file.name.rsplit("/", 1)[1].removesuffix(".proto") + "_pb2"
            for index, message in enumerate(file.message_type):
                self._add(message, "", (4, index), comments, module)
            for index, enum in enumerate(file.enum_type):
                self._add_enum(enum, "", (5, index), comments, module)

    def _add(self, message, around, path, comments, module):
        name = around + message.name
        self.messages[name], self.modules[name] = message, module
        self.comments[name] = comments.get(path, "")
        for index, one in enumerate(message.field):
            self.comments[f"{name}.{one.name}"] = comments.get((*path, 2, index), "")
        for index, inner in enumerate(message.nested_type):
            self._add(inner, f"{name}.", (*path, 3, index), comments, module)
        for index, enum in enumerate(message.enum_type):
            self._add_enum(enum, f"{name}.", (*path, 4, index), comments, module)

    def _add_enum(self, enum, around, path, comments, module):
        name = around + enum.name
        self.enums[name], self.modules[name] = enum, module
        self.comments[name] = comments.get(path, "")
        for index, value in enumerate(enum.value):
            self.comments[f"{name}.{value.name}"] = comments.get((*path, 2, index), "")

    def map_entry(self, one):
        """The entry message of a map field, or None."""
        found = self.messages.get(one.type_name.removeprefix(PACKAGE))
        return found if found is not None and found.options.map_entry else None


def comment_of(location):
    text = location.leading_comments + location.trailing_comments
    return " ".join(line.strip() for line in text.strip().split("\n"))


def class_of(name):
    return names.CLASSES.get(name, name.replace(".", ""))


def enum_of(name):
    if name in names.ENUMS:
        return names.ENUMS[name]
    around, _, last = name.rpartition(".")
    return class_of(around) + last if around else last


def fields_of(sources, name):
    """(field, from the spec) of a class: of a flat resource, its own and those of its spec."""
    for one in sources.messages[name].field:
        if name in names.FLAT and one.name == "spec":
            yield from ((inner, True) for inner in sources.messages[names.FLAT[name]].field)
        else:
            yield one, False


def ordered_fields(sources, name):
    """The name first, then the spec, then what the server sets."""
    found = list(fields_of(sources, name))
    if name in names.FLAT:
        found.sort(key=lambda entry: (not (entry[0].name == "name" and not entry[1]), not entry[1]))
    return found


def quantity_of(one):
    for number, value in unknown_varints(one.options.SerializeToString()):
        if number == QUANTITY:
            return QUANTITIES[value]
    return None


def unknown_varints(data):
    """(number, value) of the varint fields of a serialized message of such fields alone; others end the search."""
    position = 0

    def varint():
        nonlocal position
        value, shift = 0, 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while position < len(data):
        key = varint()
        if key & 7:
            return
        yield key >> 3, varint()


class Field:
    """How one field is declared, written and read."""

    def __init__(self, sources, owner, one, spec):
        self.proto, self.spec, self.owner = one, spec, owner
        self.source = names.FLAT[owner] if spec else owner
        self.name = {"cpu_millis": "cpu", "memory_bytes": "memory", "scratch_bytes": "scratch",
                     "size_bytes": "size"}.get(one.name, one.name) if quantity_of(one) else one.name
        self.holder = "pb.spec" if spec else "pb"
        self.pb = f"{self.holder}.{one.name}"
        if keyword.iskeyword(self.name):  # "for": for_
            self.pb, self.name = f'getattr({self.holder}, "{one.name}")', f"{one.name}_"
        self.comment = sources.comments[f"{self.source}.{one.name}"]
        self.repeated = one.label == F.LABEL_REPEATED
        self.presence = one.proto3_optional or one.HasField("oneof_index") or one.type == F.TYPE_MESSAGE
        self.target = one.type_name.removeprefix(PACKAGE)
        entry = sources.map_entry(one)
        self.annotation, self.default, self.writes, self.reads = (
            self.of_map(entry) if entry is not None else self.special() or self.plain())

    def set_if(self, condition, *statements):
        return [f"if {condition}:", *(f"    {statement}" for statement in statements)]

    def present(self, read):
        return f'{read} if {self.holder}.HasField("{self.proto.name}") else None'

    def of_map(self, entry):
        value = entry.field[1]
        kind = SCALARS.get(value.type, "int")
        if value.type in (F.TYPE_MESSAGE, F.TYPE_ENUM):
            raise NotImplementedError(f"a map of {value.type_name}: {self.source}.{self.proto.name}")
        return (f"dict[str, {kind}]", "field(default_factory=dict)",
                self.set_if(f"self.{self.name}", f"{self.pb}.update(self.{self.name})"), f"dict({self.pb})")

    def special(self):
        """Fields that are more convenient than in the API."""
        if self.target == "EnvVar":
            return ("dict[str, Union[str, EnvVar]]", "field(default_factory=dict)",
                    ["for key, value in self.env.items():",
                     f"    added = {self.pb}.add(name=key)",
                     "    if isinstance(value, EnvVar):",
                     "        value._write(added)",
                     "        added.name = key",
                     "    else:",
                     "        added.value = value"],
                    "{one.name: EnvVar(value=one.value, from_file=one.from_file) if one.from_file else one.value "
                    f"for one in {self.pb}}}")
        return None

    def plain(self):
        one, name, pb = self.proto, self.name, self.pb
        if one.type_name == ".google.protobuf.Duration":
            return self.message_value("Duration", "duration")
        if one.type_name == ".google.protobuf.Timestamp":
            return self.message_value("Time", "time")
        if one.type == F.TYPE_MESSAGE:
            return self.message()
        if one.type == F.TYPE_ENUM:
            return self.enum()
        if quantity := quantity_of(one):
            return self.quantity(quantity)
        kind = SCALARS.get(one.type, "int")
        if self.repeated:
            return (f"list[{kind}]", "field(default_factory=list)", self.set_if(f"self.{name}", f"{pb}.extend(self.{name})"),
                    f"list({pb})")
        if self.presence:
            return (f"Optional[{kind}]", "None", self.set_if(f"self.{name} is not None", f"{pb} = self.{name}"),
                    self.present(pb))
        default = names.DEFAULTS.get(f"{self.source}.{one.name}")
        shown = EMPTY[kind] if default is None else f'"{default}"'
        return kind, shown, self.set_if(f"self.{name}", f"{pb} = self.{name}"), pb

    def message_value(self, kind, function):
        if self.repeated:
            raise NotImplementedError(f"repeated {kind}: {self.source}.{self.proto.name}")
        return (kind, f"{kind}()",
                self.set_if(f"self.{self.name} is not None",
                            f"{self.pb}.CopyFrom(_values.{function}_to_pb(self.{self.name}))"),
                self.present(f"_values.{function}_from_pb({self.pb})"))

    def message(self):
        target = class_of(self.target)
        if self.repeated:
            return (f"list[{target}]", "field(default_factory=list)",
                    [f"for {self.name}_item in self.{self.name}:", f"    {self.name}_item._write({self.pb}.add())"],
                    f"[{target}._read(one) for one in {self.pb}]")
        return (f"Optional[{target}]", "None",
                self.set_if(f"self.{self.name} is not None", f"{self.pb}.SetInParent()",
                            f"self.{self.name}._write({self.pb})"),
                self.present(f"{target}._read({self.pb})"))

    def enum(self):
        target = enum_of(self.target)
        if self.repeated:
            return (f"Many[{target}]", f"Many({target})",
                    [f"{self.pb}.extend(one.number for one in self.{self.name})"],
                    f"[known for known in ({target}.from_pb(one) for one in {self.pb}) if known is not None]")
        return (f"One[{target}]", f"One({target})",
                self.set_if(f"self.{self.name} is not None", f"{self.pb} = self.{self.name}.number"),
                f"{target}.from_pb({self.pb})")

    def quantity(self, quantity):
        value = f"round(self.{self.name} * 1000)" if quantity == "Cores" else f"self.{self.name}"
        read = f"{self.pb} / 1000" if quantity == "Cores" else self.pb
        reads = self.present(read) if self.presence else f"{read} if {self.pb} else None"
        return quantity, f"{quantity}()", self.set_if(f"self.{self.name} is not None", f"{self.pb} = {value}"), reads


def closure(sources):
    """The messages that are reachable from the roots, and their enums, in the order of the files."""
    wanted, enums, left = set(), set(), list(names.ROOTS)
    while left:
        name = left.pop()
        if name in wanted:
            continue
        wanted.add(name)
        for one, _ in fields_of(sources, name):
            entry = sources.map_entry(one)
            target = one.type_name.removeprefix(PACKAGE)
            if one.type == F.TYPE_ENUM:
                enums.add(target)
            elif one.type == F.TYPE_MESSAGE and entry is None and one.type_name.startswith(PACKAGE):
                left.append(target)
    return [name for name in sources.messages if name in wanted], [name for name in sources.enums if name in enums]


def doc(text, indent):
    """Lines of text, wrapped."""
    return textwrap.wrap(text, 116 - indent, initial_indent=" " * indent, subsequent_indent=" " * indent,
                         break_long_words=False, break_on_hyphens=False)


def clean(text):
    return text.replace("\\", "\\\\").replace('"""', "'''").replace("`", "")


def enum_value(enum_name, value):
    prefix = names.PREFIXES.get(enum_name)
    short = enum_name.rsplit(".", 1)[-1]
    upper = "".join("_" + letter if letter.isupper() and index else letter for index, letter in enumerate(short)).upper()
    for start in filter(None, (prefix, upper)):
        if value.name.startswith(start + "_"):
            return start, value.name[len(start) + 1:]
    return "", value.name


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


def enum_class(sources, name):
    enum, title = sources.enums[name], enum_of(name)
    values = [(value.number, *enum_value(name, value), sources.comments[f"{name}.{value.name}"])
              for value in enum.value if value.number]
    comment = clean(sources.comments[name]) or f"Values of {title}."
    lines = ["", "", f"class {title}(Choice):", f'    """{first(comment)}']
    rest = comment[len(first(comment)):].strip()
    lines += ["", *doc(rest, 4)] if rest else []
    lines += ["", f"    >>> berth.{title}('{camel(values[0][2])}').number", f"    {values[0][0]}", '    """', ""]
    for number, _, short, text in values:
        member = f'    {short} = "{camel(short)}"'
        lines += [f"    #: {line}" for line in textwrap.wrap(clean(text), 108)] + [member]
        del number
    numbers = ", ".join(f'"{camel(short)}": {number}' for number, _, short, _ in values)
    lines += ["", "    @classmethod", "    def _numbers(cls) -> dict[str, int]:",
              *textwrap.wrap(f"return {{{numbers}}}", 112, initial_indent=" " * 8, subsequent_indent=" " * 16)]
    if values[0][1]:
        lines += ["", "    @classmethod", "    def _prefix(cls) -> str:", f'        return "{values[0][1].replace("_", "")}"']
    return lines


def first(text):
    """The first sentence."""
    end = text.find(". ")
    line = text if end < 0 else text[:end + 1]
    return line if len(line) <= 110 else textwrap.shorten(line, 106, placeholder=" ...")


def gpu_lines():
    """Resources.gpu: the request for GPUs, apart from other kinds of devices."""
    return (["if self.gpu is not None:",
             "    request = DeviceRequest(count=self.gpu) if isinstance(self.gpu, int) else self.gpu",
             "    request._write(pb.devices.add())"],
            "_gpu_of(pb)")


GPU = '''

def _gpu_of(pb: Any) -> Union[int, DeviceRequest, None]:
    """The request for GPUs: a number if it says nothing else."""
    for one in pb.devices:
        if one.kind == "gpu":
            request = DeviceRequest._read(one)
            return request.count if request == DeviceRequest(count=request.count) and request.count else request
    return None
'''


def docstring(sources, name, title, fields):
    comment = clean(sources.comments[name]) or f"A message of the API: {title}."
    head = first(comment)
    lines = [f'    """{head}']
    rest = comment[len(head):].strip() if comment.startswith(head) else comment
    lines += ["", *doc(rest, 4)] if rest else []
    lines += ["", "    Fields:"]
    for one in fields:
        lines += textwrap.wrap(f"{one.name}: {clean(one.comment) or 'see its type'}", 112, initial_indent=" " * 8,
                               subsequent_indent=" " * 12, break_long_words=False, break_on_hyphens=False)
    example = names.EXAMPLES.get(title, [f">>> berth.{title}()", f"{title}()"])
    return [*lines, "", *(f"    {line}" for line in example), '    """', ""]


def message_class(sources, name):
    title = class_of(name)
    fields = [Field(sources, name, one, spec) for one, spec in ordered_fields(sources, name)]
    module = sources.modules[name]
    base = names.BASES.get(title, "Message")
    lines = ["", "", "@dataclass(repr=False)", f"class {title}({base}):", *docstring(sources, name, title, fields)]
    for one in fields:
        lines.append(f"    {one.name}: {one.annotation} = {one.default}")
        if title == "Resources" and one.name == "memory":
            lines += ["    #: GPUs of each task: their number, or a DeviceRequest. Other kinds are in devices.",
                      "    gpu: Union[int, DeviceRequest, None] = None"]
    writes = [line for one in fields for line in one.writes]
    reads = [f"{one.name}={one.reads}" for one in fields]
    if title == "Resources":
        gpu_writes, gpu_reads = gpu_lines()
        writes = gpu_writes + writes
        reads = [line.replace("for one in pb.devices", 'for one in pb.devices if one.kind != "gpu"') for line in reads]
        reads.append(f"gpu={gpu_reads}")
    lines += ["", "    def _write(self, pb: Any) -> None:", *(f"        {line}" for line in writes or ["pass"])]
    lines += ["", "    @classmethod", f"    def _read(cls, pb: Any) -> {title}:", "        return cls("]
    lines += [f"            {line}," for line in reads] + ["        )"]
    lines += ["", "    @classmethod", "    def _new(cls) -> Any:", f"        return {module}.{name}()"]
    return lines


def module(files):
    sources = Sources(files)
    messages, enums = closure(sources)
    spec_names = set(names.FLAT.values())
    messages = [name for name in messages if name not in spec_names]
    modules = sorted({sources.modules[name] for name in messages})
    lines = [HEAD.rstrip(), f"from berth.v1 import {', '.join(modules)}", ""]
    titles = [enum_of(name) for name in enums] + [class_of(name) for name in messages]
    if len(set(titles)) != len(titles):
        raise RuntimeError(f"two classes of one name: {sorted(title for title in titles if titles.count(title) > 1)}")
    lines += ["__all__ = [", *(f'    "{title}",' for title in sorted(titles)), "]"]
    for name in enums:
        lines += enum_class(sources, name)
    for name in messages:
        lines += message_class(sources, name)
    return "\n".join(lines) + "\n" + GPU
