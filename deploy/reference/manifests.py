"""docs/reference/manifests.md: the keys of manifests, Berth's and Volcano's."""
from reference import markdown, protos, yaml_keys

SOURCES = ["berth/v1/job.proto", "berth/v1/queue.proto", "berth/v1/hypernode.proto", "berth/v1/priority_class.proto"]
VOLCANO = "berth/volcano/v1/manifests.proto"
KINDS = {"Job": "berth.v1.JobSpec", "Queue": "berth.v1.QueueSpec", "HyperNode": "berth.v1.HyperNodeSpec",
         "PriorityClass": "berth.v1.PriorityClass"}
VOLCANO_KINDS = {"Job": "batch.volcano.sh/v1alpha1", "Queue": "scheduling.volcano.sh/v1beta1",
                 "HyperNode": "topology.volcano.sh/v1alpha1"}
# A HyperNode's `kind` is the tree that it is in, and a manifest's `kind` is what it describes.
RENAMED = {("berth.v1.HyperNodeSpec", "kind"): "treeKind"}
# In the header already, and of the API only.
LEFT_OUT = {("berth.v1.PriorityClass", "name"), ("berth.v1.PriorityClass", "etag")}

INTRO = """\
A manifest is a YAML document that describes a job, a queue, a HyperNode or a priority class. `berth submit` and `berth apply`
read files of one or more documents, separated by `---`. [Jobs](../users/jobs.md) explains what the keys are for and shows examples.
"""
VOLCANO_INTRO = """\
`berth submit` and `berth apply` also read these manifests of Volcano. They honour the keys below. Every other key is
an error, unless `--ignore KEY` names it. [Jobs](../users/jobs.md) explains what Volcano's keys become.
"""


def page(tree):
    known = protos.Protos(tree, [*SOURCES, VOLCANO])
    blocks = [markdown.head("proto/berth/v1 and proto/berth/volcano"), "# Manifests", INTRO.rstrip(),
              "## How values are written", yaml_keys.VALUES.rstrip()]
    tables = yaml_keys.KeyTables(known, renamed=RENAMED, left_out=LEFT_OUT)
    shown = []
    for kind, spec in KINDS.items():
        blocks += kind_blocks(known, tables, kind, spec)
        below = known.closure(spec, shown)
        blocks += map(tables.section, below)
        shown += below
    return markdown.join([*blocks, *volcano_blocks(known)])


def kind_blocks(known, tables, kind, spec):
    """The keys at the top of a document: its header, and those of the spec."""
    message = known.types[spec]
    header = [["`apiVersion`", "text", "required", "`berth/v1`"], ["`kind`", "text", "required", markdown.code(kind)],
              ["`name`", "text", *name_of(known, kind)]]
    return [f"## {kind}", markdown.paragraphs(known.types[f"berth.v1.{kind}"].comment), tables.keys(message, header)]


def name_of(known, kind):
    """Default and meaning of its `name`. Only a job may go without: the server chooses one."""
    name = known.types[f"berth.v1.{kind}"].fields[0]
    return ["the server chooses one" if kind == "Job" else "required", markdown.text(name.comment)]


def volcano_blocks(known):
    tables = yaml_keys.KeyTables(known, prefix="Volcano ")
    blocks, shown = ["## Volcano's manifests", VOLCANO_INTRO.rstrip()], []
    for kind, version in VOLCANO_KINDS.items():
        root = f"berth.volcano.v1.{kind}"
        blocks += [tables.section(root), f"`apiVersion` is `{version}`, `kind` is `{kind}`."]
        below = known.closure(root, shown)
        blocks += map(tables.section, below)
        shown += below
    return blocks
