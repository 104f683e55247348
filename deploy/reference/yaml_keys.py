"""Messages as people write them in YAML: tables of keys, as support/yaml_proto reads them."""
import re

from reference import markdown, protos

TITLES = ["key", "type", "default", "meaning"]
QUANTITIES = {"CPU_MILLIS": "cores", "BYTES": "bytes"}
SCALARS = {"string": "text", "bool": "boolean", "bytes": "base64", "double": "number", "float": "number"}
WELL_KNOWN = {"google.protobuf.Duration": "duration", "google.protobuf.Timestamp": "time"}
DEVICE_KINDS = {
    "berth.v1.ResourceRequest": ["`gpu`, `npu`, ...", "integer or [DeviceRequest](#devicerequest)", "",
                                 "devices of this kind: `gpu: 8` is short for `devices: [{kind: gpu, count: 8}]`"],
    "berth.v1.ResourceList": ["`gpu`, `npu`, ...", "number", "",
                              "devices or an extended resource: `gpu: 8` is short for `counts: {gpu: 8}`"],
}
DEFAULT = re.compile(r"[Dd]efault:? (?!and )|(?=required$)")

VALUES = """\
Unknown keys, repeated keys, wrong types and numbers out of range are errors; each is reported with file, line and column.
A file may be YAML or JSON. Anchors, aliases and tags are refused.

| type | how it is written |
| --- | --- |
| text, boolean, integer, number | as in YAML; `true` and `false` are the booleans; numbers may be quoted |
| cores | `2`, `1.5` or `500m` (thousandths of a core) |
| bytes | `64`, `512Mi`, `1.5Ti`, `80GB`, `80GiB`: Ki, Mi, Gi, Ti, Pi, Ei are powers of 1024, k, M, G, T, P, E of 1000 |
| duration | `72h`, `1h30m`, `1.5s`, `500ms`, `2d`, `0`: units are d, h, m, s, ms, us, ns |
| time | RFC 3339: `2026-11-24T09:00:00Z` |
| list | a list; a single scalar is a list of one |
| map | keys and values; a list of `{name, value}` may be written as a map, too |
| a name that links to a section | a map with the keys of that section, or one of the values of an enum |

Keys are in lowerCamelCase. The field name of the API is accepted as well: `minAvailable` or `min_available`. Values of
enums may be written in any case, with or without underscores: `RestartJob`, `restartjob`, `RESTART_JOB`.
"""


class KeyTables:
    """Sections for messages and enums. `prefixes` (by package) go before the names in headings, and so into the anchors."""

    def __init__(self, known, prefixes=None, renamed=None, left_out=()):
        self.known, self.prefixes, self.renamed = known, prefixes or {}, renamed or {}
        self.left_out = left_out

    def title(self, found):
        return self.prefixes.get(found.full_name.removesuffix(f".{found.name}"), "") + found.name

    def section(self, type_name, level=3):
        found = self.known.types[type_name]
        heading = f"{'#' * level} {self.title(found)}"
        body = self.values(found) if isinstance(found, protos.Enum) else self.keys(found)
        return markdown.join([heading, markdown.paragraphs(found.comment), body]).rstrip()

    def keys(self, message, before=()):
        rows = [*before, *(self.row(message, field) for field in message.fields
                          if (message.full_name, field.name) not in self.left_out)]
        if message.full_name in DEVICE_KINDS:
            rows.append(DEVICE_KINDS[message.full_name])
        return markdown.table(TITLES, rows) if rows else "No keys."

    def row(self, message, field):
        default, meaning = split_default(" ".join(field.comment.split()))
        if field.oneof:
            others = [markdown.code(each.key) for each in message.fields if each.oneof == field.oneof and each is not field]
            meaning = "; ".join(part for part in (meaning, f"excludes {', '.join(others)}") if part)
        key = self.renamed.get((message.full_name, field.name), field.key)
        return [markdown.code(key), self.type_text(field), self.default_text(field, default), markdown.text(meaning)]

    def default_text(self, field, default):
        """A default. Where the name of an enum's value is all of it, it is written as in YAML."""
        enum = self.known.types.get(field.type)
        texts = enum_texts(enum) if isinstance(enum, protos.Enum) else {}
        return markdown.code(texts[default.upper()]) if default.upper() in texts else markdown.text(default)

    def type_text(self, field):
        one = self.one_type(field)
        if field.map_key:
            return f"map of {SCALARS.get(field.map_key, 'integer')} to {one}"
        return f"list of {one}" if field.repeated else one

    def one_type(self, field):
        if field.type in WELL_KNOWN:
            return WELL_KNOWN[field.type]
        if field.type in self.known.types:
            name = self.title(self.known.types[field.type])
            return f"[{name}](#{markdown.slug(name)})"
        return QUANTITIES.get(field.quantity) or SCALARS.get(field.type, "integer")

    def values(self, enum):
        texts = enum_texts(enum)
        rows = [[markdown.code(texts[value.name]), markdown.text(value.comment)] for value in enum.values if value.number]
        absent = enum.values[0].comment
        if not absent:
            return markdown.table(["value", "meaning"], rows)
        default = markdown.code(texts[absent]) if absent in texts else markdown.text(absent)
        return markdown.join([markdown.table(["value", "meaning"], rows), f"Default: {default}"]).rstrip()


def split_default(comment):
    """The default that a clause of a comment names, or "required", and the rest of the comment."""
    clauses = split_clauses(comment)
    for i, (clause, separator) in enumerate(clauses):
        found = DEFAULT.match(clause)
        if found:
            before = "".join(map("".join, clauses[:i]))[:-2]
            after = "".join(map("".join, clauses[i + 1:]))
            return clause[found.end():] or clause, (before + separator + after if before and after else before + after)
    return "", comment


def split_clauses(comment):
    """The parts between semicolons and full stops that are not in parentheses, each with its separator."""
    clauses, depth, begin = [], 0, 0
    for i, char in enumerate(comment):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth == 0 and comment[i:i + 2] in ("; ", ". "):
            clauses.append((comment[begin:i], comment[i:i + 2]))
            begin = i + 2
    return [*clauses, (comment[begin:].removesuffix("."), "." if comment.endswith(".") else "")]


def enum_texts(enum):
    """The names of an enum's values -> as YAML has them: without what all of them begin with, "RestartJob"."""
    prefix = common_prefix([value.name for value in enum.values])
    return {value.name: "".join(word.capitalize() for word in value.name.removeprefix(prefix).split("_"))
            for value in enum.values}


def common_prefix(names):
    same = 0
    while all(len(name) > same and name[same] == names[0][same] for name in names):
        same += 1
    return names[0][:names[0].rfind("_", 0, same) + 1]
