"""Manifests: Berth's own YAML to messages and back, with the rules of the command line.

Unknown and repeated keys, wrong types, anchors, aliases and tags are errors with file, line and column, all at once.
Manifests of other schedulers are converted by the command line: `berth submit FILE --dry-run -o yaml`.
"""
from __future__ import annotations

import base64
import difflib
import math
from collections.abc import Iterator
from typing import Any, Union

import yaml
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from berth import _values, errors, model
from berth.v1 import hypernode_pb2, job_pb2, priority_class_pb2, queue_pb2, types_pb2

Resource = Union[model.Job, model.Queue, model.HyperNode, model.PriorityClass]
KINDS = ("gpu", "npu", "nic", "tpu", "dpu", "xpu", "dcu", "mlu", "fpga")
HEADER = ("apiVersion", "kind", "name")
MAX_ERRORS = 50
_INTEGERS = {FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1), FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
             FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1), FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1)}
_QUANTITIES = {types_pb2.CPU_MILLIS: (_values.parse_millis, _values.format_millis),
               types_pb2.BYTES: (_values.parse_bytes, _values.format_bytes)}
_DOCUMENTS: dict[str, tuple[Any, Any]] = {
    "Job": (job_pb2.Job, model.Job), "Schedule": (job_pb2.Job, model.Job), "Queue": (queue_pb2.Queue, model.Queue),
    "HyperNode": (hypernode_pb2.HyperNode, model.HyperNode),
    "PriorityClass": (priority_class_pb2.PriorityClass, model.PriorityClass)}


def is_repeated(field: Any) -> bool:
    """FieldDescriptor.label is gone in protobuf 7."""
    return bool(field.is_repeated if hasattr(field, "is_repeated") else field.label == FieldDescriptor.LABEL_REPEATED)


def is_map(field: Any) -> bool:
    """Whether the field is a map."""
    return bool(field.message_type is not None and field.message_type.GetOptions().map_entry)


def quantity_of(field: Any) -> Any:
    """(parse, format) of a field with a quantity, or None."""
    return _QUANTITIES.get(field.GetOptions().Extensions[types_pb2.quantity])


class Reader:
    """Reads documents and collects all errors."""

    def __init__(self, file: str) -> None:
        self.file, self.errors = file, list[str]()

    def wrong(self, node: Any, text: str) -> None:
        """Notes an error at a place."""
        if len(self.errors) < MAX_ERRORS:
            self.errors.append(f"{self.file}:{node.start_mark.line + 1}:{node.start_mark.column + 1}: {text}")

    def finish(self) -> None:
        """InvalidArgument with every error, one a line."""
        if self.errors:
            raise errors.InvalidArgument("\n".join(self.errors))

    def entries(self, node: Any, name: str) -> Iterator[tuple[str, Any, Any]]:
        """(key, its node, value) of a map; repeated keys are errors."""
        if not isinstance(node, yaml.MappingNode):
            return self.wrong(node, f"{name}: expected a map of keys, got {kind_name(node)}")
        seen = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self.wrong(key, "a key must be a single value")
            elif key.value in seen:
                self.wrong(key, f'repeated key "{key.value}"')
            else:
                seen.add(key.value)
                yield key.value, key, value
        return None

    def message(self, node: Any, name: str, message: Any, also_known: tuple[str, ...] = ()) -> None:
        """Fills a message from a map."""
        descriptor: Descriptor = message.DESCRIPTOR
        if isinstance(node, yaml.ScalarNode) and descriptor is types_pb2.DeviceRequest.DESCRIPTOR:
            return self.scalar(node, descriptor.fields_by_name["count"], lambda value: setattr(message, "count", value))
        chosen: dict[str, str] = {}
        seen = set()
        for key, key_node, value in self.entries(node, name):
            field = field_of(descriptor, key)
            if key in also_known or self.sugar(key, key_node, value, field, message):
                continue
            if field is None:
                self.unknown(key_node, key, descriptor, also_known)
                continue
            if field.name in seen:
                self.wrong(key_node, f'repeated key "{key}", in another way of writing')
                continue
            seen.add(field.name)
            oneof = field.containing_oneof
            if oneof is not None and len(oneof.fields) > 1:
                if oneof.name in chosen:
                    self.wrong(key_node, f'"{key}" conflicts with "{chosen[oneof.name]}": set only one of them')
                    continue
                chosen[oneof.name] = key
            self.field(value, field, message)
        return None

    def unknown(self, node: Any, key: str, descriptor: Descriptor, also_known: tuple[str, ...]) -> None:
        """An unknown key, with the nearest known one."""
        known = [*also_known, *(field.json_name for field in descriptor.fields)]
        if takes_kinds(descriptor):
            known += KINDS
        near = difflib.get_close_matches(key, known, 1)
        self.wrong(node, f'unknown key "{key}"; ' + (f'did you mean "{near[0]}"?' if near else
                                                     f"known keys: {', '.join(known)}"))

    def sugar(self, key: str, key_node: Any, value: Any, field: Any, message: Any) -> bool:
        """Keys that do not mean the field of their name."""
        descriptor = message.DESCRIPTOR
        if field is not None and field.name == "highest_tier" and descriptor is types_pb2.TopologyConstraint.DESCRIPTOR:
            if not isinstance(value, yaml.ScalarNode) or value.value.lstrip("-").isdigit():
                return False
            message.highest_tier_name = value.value
            return True
        if field is not None or not takes_kinds(descriptor) or not may_be_kind(key, descriptor):
            return False
        if descriptor is types_pb2.ResourceList.DESCRIPTOR:
            self.put_count(key, key_node, value, message)
        else:
            device = message.devices.add()
            self.message(value, key, device)
            if device.kind and device.kind != key:
                self.wrong(value, f'kind "{device.kind}" does not match the key "{key}"')
            device.kind = key
        return True

    def put_count(self, key: str, key_node: Any, value: Any, message: Any) -> None:
        """One kind of a ResourceList."""
        count = number_of(value)
        if count is None:
            self.wrong(value, f"{key}: expected a number")
        elif key in message.counts:
            self.wrong(key_node, f'"{key}" is also set in "counts"')
        else:
            message.counts[key] = count

    def field(self, node: Any, field: Any, message: Any) -> None:
        """One field, from its value."""
        if is_null(node):
            if not is_repeated(field) and (field.message_type is None or is_scalar_message(field)):
                self.wrong(node, f'"{field.json_name}" has no value')
            return None
        if is_map(field):
            return self.map(node, field, getattr(message, field.name))
        if is_repeated(field):
            return self.list(node, field, getattr(message, field.name))
        if field.message_type is None:
            return self.scalar(node, field, lambda value: setattr(message, field.name, value))
        if is_scalar_message(field):
            return self.scalar(node, field, lambda value: getattr(message, field.name).CopyFrom(value))
        getattr(message, field.name).SetInParent()
        return self.message(node, field.json_name, getattr(message, field.name))

    def map(self, node: Any, field: Any, values: Any) -> None:
        """A map of scalars."""
        value_field = field.message_type.fields_by_name["value"]
        for key, key_node, value in self.entries(node, field.json_name):
            if is_null(value):
                self.wrong(key_node, f'"{key}" has no value')
            else:
                self.scalar(value, value_field, lambda read, key=key: values.__setitem__(key, read), name=field.json_name)

    def list(self, node: Any, field: Any, values: Any) -> None:
        """A list; a single scalar is a list of one, and a list of {name, value} may be a map."""
        messages = field.message_type is not None
        if isinstance(node, yaml.MappingNode) and messages and field.message_type.name == "EnvVar":
            for key, _, value in self.entries(node, field.json_name):
                added = values.add(name=key)
                self.scalar(value, field.message_type.fields_by_name["value"],
                            lambda read, added=added: setattr(added, "value", read))
            return None
        if isinstance(node, yaml.ScalarNode) and not messages:
            return self.scalar(node, field, values.append)
        if not isinstance(node, yaml.SequenceNode):
            return self.wrong(node, f"{field.json_name}: expected a list, got {kind_name(node)}")
        for index, item in enumerate(node.value):
            if is_null(item):
                self.wrong(node, f"{field.json_name}: item {index + 1} has no value")
            elif messages:
                self.message(item, field.json_name, values.add())
            else:
                self.scalar(item, field, values.append)
        return None

    def scalar(self, node: Any, field: Any, put: Any, name: str = "") -> None:
        """A single value."""
        name = name or field.json_name
        if not isinstance(node, yaml.ScalarNode):
            return self.wrong(node, f"{name}: expected a single value, got {kind_name(node)}")
        try:
            put(scalar_value(node, field))
        except (ValueError, OverflowError) as error:
            self.wrong(node, f"{name}: {error}")
        return None


def field_of(descriptor: Descriptor, key: str) -> Any:
    """The field that a key names, as in JSON or as in the API."""
    for field in descriptor.fields:
        if key in (field.json_name, field.name):
            return field
    return None


def takes_kinds(descriptor: Descriptor) -> bool:
    """Whether kinds of devices are keys."""
    return descriptor in (types_pb2.ResourceRequest.DESCRIPTOR, types_pb2.ResourceList.DESCRIPTOR)


def may_be_kind(key: str, descriptor: Descriptor) -> bool:
    """A known kind, or a word that is not near to a known one or to a key."""
    if key in KINDS:
        return True
    word = key[:1].islower() and all(c.islower() or c.isdigit() or c in "-_" for c in key) and key.isascii()
    known = [*KINDS, *(field.json_name for field in descriptor.fields)]
    return word and not difflib.get_close_matches(key, known, 1)


def is_scalar_message(field: Any) -> bool:
    """Durations and times are written as single values."""
    return field.message_type is not None and field.message_type.full_name in (
        "google.protobuf.Duration", "google.protobuf.Timestamp")


def is_null(node: Any) -> bool:
    """A key without a value."""
    return isinstance(node, yaml.ScalarNode) and bool(node.tag == "tag:yaml.org,2002:null" and node.style is None)


def kind_name(node: Any) -> str:
    """For messages."""
    if is_null(node):
        return "nothing"
    return {yaml.ScalarNode: "a single value", yaml.SequenceNode: "a list"}.get(type(node), "a map of keys")


def number_of(node: Any) -> Union[float, None]:
    """A finite number, or None."""
    try:
        value = float(node.value)
    except (TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None


def scalar_value(node: Any, field: Any) -> Any:
    """The value for a field; ValueError with what would be right."""
    text = node.value
    if is_scalar_message(field):
        if field.message_type.name == "Duration":
            return _values.duration_to_pb(_values.parse_duration(text))
        return _values.time_to_pb(_values.as_time(text))
    quantity = quantity_of(field)
    if quantity is not None:
        return quantity[0](text)
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_STRING:
        return base64.b64decode(text, validate=True) if field.type == FieldDescriptor.TYPE_BYTES else text
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        if text not in ("true", "false"):
            raise ValueError(f'expected true or false, got "{text}"')
        return text == "true"
    if kind == FieldDescriptor.CPPTYPE_ENUM:
        return enum_number(field.enum_type, text)
    if kind in _INTEGERS:
        low, high = _INTEGERS[kind]
        if not text.lstrip("-").isdigit() or not low <= int(text) <= high:
            raise ValueError(f'expected an integer {low}..{high}, got "{text}"')
        return int(text)
    value = number_of(node)
    if value is None:
        raise ValueError(f'expected a number, got "{text}"')
    return value


def enum_names(enum: Any) -> dict[str, int]:
    """The names of the values as manifests write them, with their numbers."""
    upper = "".join("_" + c if c.isupper() and index else c for index, c in enumerate(enum.name)).upper() + "_"
    return {"".join(part.capitalize() for part in value.name.removeprefix(upper).split("_")): value.number
            for value in enum.values if value.number}


def enum_number(enum: Any, text: str) -> int:
    """The value of an enum, in any case, with or without underscores."""
    wanted = text.replace("_", "").lower()
    names = enum_names(enum)
    for name, number in names.items():
        if wanted in (name.lower(), enum.values_by_number[number].name.replace("_", "").lower()):
            return number
    raise ValueError(f'"{text}" is none of {", ".join(names)}')


def _documents(text: str, file: str, reader: Reader) -> list[Any]:
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                reader.wrong(event, "anchors and aliases are not supported")
            elif getattr(event, "tag", None):
                reader.wrong(event, "tags are not supported")
        reader.finish()
        return [node for node in yaml.compose_all(text, Loader=yaml.SafeLoader) if node is not None and not is_null(node)]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
        raise errors.InvalidArgument(f"{file}:{place}: {error.problem}") from None


def read(text: str, file: str = "manifest") -> list[Resource]:
    """All documents of a text. InvalidArgument with every error, one a line."""
    reader = Reader(file)
    found = []
    for node in _documents(text, file, reader):
        top = {key: value for key, _, value in Reader(file).entries(node, "the document")}
        head = {key: top[key].value if isinstance(top.get(key), yaml.ScalarNode) else None for key in HEADER}
        if head["apiVersion"] != "berth/v1":
            reader.wrong(node, 'apiVersion must be "berth/v1"; the command line converts manifests of other schedulers')
            continue
        if head["kind"] not in _DOCUMENTS:
            reader.wrong(node, f"unknown kind {head['kind']!r}; it is one of {', '.join(_DOCUMENTS)}")
            continue
        if head["kind"] == "Schedule" and "schedule" not in top:
            reader.wrong(node, 'a Schedule needs "schedule", such as schedule: {cron: "30 2 * * *"}')
        if head["kind"] != "Job" and head["kind"] != "Schedule" and not head["name"]:
            reader.wrong(node, f"a {head['kind']} needs a name")
        message, title = _DOCUMENTS[head["kind"]][0](), _DOCUMENTS[head["kind"]][1]
        spec = message.spec if "spec" in message.DESCRIPTOR.fields_by_name else message
        also = (*HEADER, "treeKind") if head["kind"] == "HyperNode" else HEADER
        if spec is not message:
            message.spec.SetInParent()
        reader.message(node, "the document", spec, also)
        message.name = head["name"] or ""
        if "treeKind" in top and head["kind"] == "HyperNode":
            spec.kind = top["treeKind"].value
        found.append(title.from_proto(message))
    reader.finish()
    return found


def plain(message: Any) -> dict[str, Any]:
    """A message as values that YAML writes: quantities and durations as people write them, unset fields left out."""
    out: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.name == "devices" and message.DESCRIPTOR is types_pb2.ResourceRequest.DESCRIPTOR and one_each(value):
            for device in value:
                rest = plain(device)
                kind = rest.pop("kind")
                out[kind] = rest["count"] if list(rest) == ["count"] else rest
        elif field.name == "counts" and message.DESCRIPTOR is types_pb2.ResourceList.DESCRIPTOR and all(
                key in KINDS for key in value):
            out.update({key: int(count) if count == int(count) else count for key, count in sorted(value.items())})
        elif is_map(field):
            out[field.json_name] = dict(sorted(value.items()))
        elif is_repeated(field):
            out[field.json_name] = [plain_value(field, one) for one in value]
        else:
            out[field.json_name] = plain_value(field, value)
    return out


def one_each(devices: Any) -> bool:
    """Whether the kinds can be keys."""
    kinds = [device.kind for device in devices]
    return len(set(kinds)) == len(kinds) and all(kind in KINDS for kind in kinds)


def plain_value(field: Any, value: Any) -> Any:
    """One value as YAML writes it."""
    if is_scalar_message(field):
        if field.message_type.name == "Duration":
            return _values.format_duration(_values.duration_from_pb(value))
        return _values.time_from_pb(value).isoformat().replace("+00:00", "Z")
    if field.message_type is not None:
        return plain(value)
    quantity = quantity_of(field)
    if quantity is not None:
        return quantity[1](value)
    if field.enum_type is not None:
        return {number: name for name, number in enum_names(field.enum_type).items()}.get(value, value)
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def write(resource: Resource) -> str:
    """The manifest of a resource, which reads back as the same; without what the server sets."""
    message = resource.to_proto()
    kind = type(resource).__name__
    spec = message.spec if kind != "PriorityClass" else message
    top = {"apiVersion": "berth/v1", "kind": kind, "name": message.name}
    rest = plain(spec)
    if kind == "HyperNode" and "kind" in rest:
        top["treeKind"] = rest.pop("kind")
    for key in ("name", "etag") if kind == "PriorityClass" else ():
        rest.pop(key, None)
    if not message.name:
        del top["name"]
    text: str = yaml.safe_dump({**top, **rest}, sort_keys=False, allow_unicode=True, width=110)
    return text
