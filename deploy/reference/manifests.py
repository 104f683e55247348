"""docs/reference/manifests.md: the keys of manifests, Berth's and those of other schedulers."""
from reference import markdown, protos, yaml_keys

SOURCES = ["berth/v1/job.proto", "berth/v1/queue.proto", "berth/v1/hypernode.proto", "berth/v1/priority_class.proto"]
KUBERNETES = "berth/kubernetes/v1/"
FOREIGN = ["berth/volcano/v1/manifests.proto", *(f"{KUBERNETES}{name}.proto" for name in ("batch", "jobset", "kubeflow", "pod"))]
PREFIXES = {"berth.volcano.v1": "Volcano ", "berth.kubernetes.v1": "Kubernetes "}
KINDS = {"Job": "berth.v1.JobSpec", "Queue": "berth.v1.QueueSpec", "HyperNode": "berth.v1.HyperNodeSpec",
         "PriorityClass": "berth.v1.PriorityClass"}
# message: apiVersion, kind
FOREIGN_KINDS = {
    "berth.volcano.v1.Job": ("batch.volcano.sh/v1alpha1", "Job"),
    "berth.volcano.v1.CronJob": ("batch.volcano.sh/v1alpha1", "CronJob"),
    "berth.volcano.v1.JobFlow": ("flow.volcano.sh/v1alpha1", "JobFlow"),
    "berth.volcano.v1.JobTemplate": ("flow.volcano.sh/v1alpha1", "JobTemplate"),
    "berth.volcano.v1.PodGroup": ("scheduling.volcano.sh/v1beta1", "PodGroup"),
    "berth.volcano.v1.Queue": ("scheduling.volcano.sh/v1beta1", "Queue"),
    "berth.volcano.v1.HyperNode": ("topology.volcano.sh/v1alpha1", "HyperNode"),
    "berth.kubernetes.v1.Job": ("batch/v1", "Job"),
    "berth.kubernetes.v1.CronJob": ("batch/v1", "CronJob"),
    "berth.kubernetes.v1.Pod": ("v1", "Pod"),
    "berth.kubernetes.v1.ConfigMap": ("v1", "ConfigMap"),
    "berth.kubernetes.v1.Secret": ("v1", "Secret"),
    "berth.kubernetes.v1.PriorityClass": ("scheduling.k8s.io/v1", "PriorityClass"),
    "berth.kubernetes.v1.JobSet": ("jobset.x-k8s.io/v1alpha2", "JobSet"),
    "berth.kubernetes.v1.PyTorchJob": ("kubeflow.org/v1", "PyTorchJob"),
    "berth.kubernetes.v1.MpiJob": ("kubeflow.org/v2beta1", "MPIJob"),
    "berth.kubernetes.v1.TrainJob": ("trainer.kubeflow.org/v1alpha1", "TrainJob"),
}
# A HyperNode's `kind` is the tree that it is in, and a manifest's `kind` is what it describes.
RENAMED = {("berth.v1.HyperNodeSpec", "kind"): "treeKind"}
# In the header already, and of the API only.
LEFT_OUT = {("berth.v1.PriorityClass", "name"), ("berth.v1.PriorityClass", "etag")}

INTRO = """\
A manifest is a YAML document that describes a job, a queue, a HyperNode or a priority class. `berth submit` and `berth apply`
read files of one or more documents, separated by `---`. [Jobs](../users/jobs.md) explains what the keys are for and shows examples.
"""
FOREIGN_INTRO = """\
`berth submit` and `berth apply` also read these manifests of Volcano, Kubernetes, JobSet and Kubeflow. They honour the
keys below. Every other key is an error or, if it has no meaning here, a warning; `--ignore KEY` leaves a key out.
[Manifests of other schedulers](../users/manifests.md) explains what the keys become.
"""


def page(tree):
    known = protos.Protos(tree, [*SOURCES, *FOREIGN])
    blocks = [markdown.head("proto/berth/v1, proto/berth/volcano and proto/berth/kubernetes"), "# Manifests", INTRO.rstrip(),
              "## How values are written", yaml_keys.VALUES.rstrip()]
    tables = yaml_keys.KeyTables(known, renamed=RENAMED, left_out=LEFT_OUT)
    shown = []
    for kind, spec in KINDS.items():
        blocks += kind_blocks(known, tables, kind, spec)
        below = known.closure(spec, shown)
        blocks += map(tables.section, below)
        shown += below
    return markdown.join([*blocks, *foreign_blocks(known)])


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


def foreign_blocks(known):
    tables = yaml_keys.KeyTables(known, prefixes=PREFIXES)
    blocks, shown = ["## Manifests of other schedulers", FOREIGN_INTRO.rstrip()], []
    for root, (version, kind) in FOREIGN_KINDS.items():
        blocks += [tables.section(root), f"`apiVersion` is `{version}`, `kind` is `{kind}`."]
        below = known.closure(root, [*shown, *FOREIGN_KINDS])
        blocks += map(tables.section, below)
        shown += below
    return blocks
