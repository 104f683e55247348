"""docs/reference/api.md: the services, messages, enums and errors of the gRPC API."""
import re

from reference import markdown, protos

ORDER = ["job", "job_status", "array", "container", "volume", "lifecycle", "queue", "node", "hypernode", "cluster", "priority_class", "access", "audit", "history", "explain", "watch", "types", "agent"]
ERRORS = "google/rpc/status.proto"
CODES = {
    "ALREADY_EXISTS": "the name is in use, or the request id came with another request before",
    "FAILED_PRECONDITION": "the object is not in a state that allows the call",
    "INVALID_ARGUMENT": "a value is wrong; the details list every violation",
    "NOT_FOUND": "no object has this name",
    "PERMISSION_DENIED": "this client may not do it",
    "RESOURCE_EXHAUSTED": "a limit is reached, or the disk is full; the details may name a delay",
    "UNAVAILABLE": "the server, or a node that the call needs, cannot be reached; try again",
    "UNIMPLEMENTED": "this server does not have the feature",
    "ABORTED": "the object has changed in the meantime",
    "OUT_OF_RANGE": "the place that the call asks for is no longer kept",
    "CANCELLED": "the client ended the call",
    "DEADLINE_EXCEEDED": "the call took longer than the client allows",
    "INTERNAL": "a fault of the server",
    "UNKNOWN": "a fault of the server",
    "DATA_LOSS": "stored data is damaged",
    "UNAUTHENTICATED": "the client did not identify itself",
}
INTRO = """\
`berthd` serves this gRPC API. The sources are `proto/berth/v1/*.proto`, which also are what clients in other languages
are generated from. Clients use all services but `AgentService`, which is the protocol between `berthd` and its agents.
"""
ERRORS_INTRO = """\
An error is a gRPC status. Its details (`grpc-status-details-bin`) are a `google.rpc.Status`, which clients can decode in
any language. The right column lists the calls and fields whose comments name the code; any call may also return the
codes of gRPC itself.
"""


def page(tree):
    names = [f"berth/v1/{name}.proto" for name in ORDER]
    check_order(tree, names)
    known = protos.Protos(tree, [*names, ERRORS])
    blocks = [markdown.head("proto/berth/v1"), "# API", INTRO.rstrip(), "## Services", services_table(known, names)]
    for name in names:
        blocks += file_blocks(known, known.files[name])
    blocks += ["## Errors", ERRORS_INTRO.rstrip(), errors_table(known, names)]
    blocks += [type_block(known, each) for each in known.files[ERRORS].types]
    return markdown.join(blocks)


def check_order(tree, names):
    unnamed = {str(path.relative_to(tree / "proto")) for path in tree.glob("proto/berth/v1/*.proto")} ^ set(names)
    if unnamed:
        raise SystemExit(f"deploy/docs: deploy/reference/api.py and proto/berth/v1 differ in {', '.join(sorted(unnamed))}")


def services_table(known, names):
    rows = []
    for name in names:
        for service in known.files[name].services:
            calls = ", ".join(markdown.code(call.name) for call in service.calls)
            rows.append([link(service.name), calls])
    return markdown.table(["service", "calls"], rows)


def file_blocks(known, file):
    title = file.name.rsplit("/", 1)[1]
    blocks = [f"## {title}", markdown.paragraphs(file.comment)]
    for service in file.services:
        blocks += [f"### {service.name}", markdown.paragraphs(service.comment), calls_table(known, service)]
    return [*blocks, *(type_block(known, each) for each in file.types)]


def calls_table(known, service):
    rows = [[markdown.code(call.name), stream(call.request_stream) + type_link(known, call.request),
             stream(call.response_stream) + type_link(known, call.response), markdown.text(call.comment)]
            for call in service.calls]
    return markdown.table(["call", "request", "response", "meaning"], rows)


def stream(streams):
    return "stream of " if streams else ""


def type_block(known, found):
    if isinstance(found, protos.Enum):
        rows = [[markdown.code(value.name), str(value.number), markdown.text(value.comment)] for value in found.values]
        body = markdown.table(["value", "number", "meaning"], rows)
    else:
        rows = [[markdown.code(field.name), field_type(known, field), markdown.text(field.comment)] for field in found.fields]
        body = markdown.table(["field", "type", "meaning"], rows) if rows else "No fields."
    return markdown.join([f"### {found.name}", markdown.paragraphs(found.comment), body]).rstrip()


def field_type(known, field):
    one = type_link(known, field.type)
    if field.map_key:
        return f"map of {field.map_key} to {one}"
    one = f"repeated {one}" if field.repeated else one
    one = f"optional {one}" if field.optional else one
    return f"{one}, one of `{field.oneof}`" if field.oneof else one


def type_link(known, type_name):
    found = known.types.get(type_name)
    if found is None or protos.is_well_known(type_name):
        return type_name.removeprefix("google.protobuf.")
    return link(found.name)


def link(name):
    return f"[{name}](#{markdown.slug(name)})"


def errors_table(known, names):
    places = {code: [] for code in CODES}
    for name in names:
        for where, comment in commented(known.files[name]):
            for code in set(re.findall(r"\b[A-Z]{3,}(?:_[A-Z]+)*\b", comment)) & CODES.keys():
                places[code].append(where)
    rows = [[markdown.code(code), CODES[code], ", ".join(places[code])] for code in sorted(CODES) if places[code]]
    return markdown.table(["code", "meaning", "named by"], rows)


def commented(file):
    """Each call and field of a file, as a link, with its comment."""
    for service in file.services:
        yield from ((f"{link(service.name)} `{call.name}`", call.comment) for call in service.calls)
    for found in file.types:
        for part in found.values if isinstance(found, protos.Enum) else found.fields:
            yield f"{link(found.name)} `{part.name}`", part.comment
