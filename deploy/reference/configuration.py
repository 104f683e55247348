"""docs/reference/configuration.md: the keys of the configuration files of berthd and the agent."""
from reference import markdown, protos, yaml_keys

SOURCE = "berth/config/v1/config.proto"
FILES = {"berthd": ("Server", "`berthd --config FILE` reads these keys."),
         "berth-agent": ("Agent", "`berth-agent --config FILE` reads these keys."),
         "berth-agent --simulate": ("Simulation", "`berth-agent --simulate FILE` reads these keys and simulates many nodes "
                                                  "in one process.")}
INTRO = """\
Each program reads one YAML file. All keys have defaults, so a file names only what differs. Unknown keys are errors.
[Installing](../operators/install.md) shows complete files, and [agents](../operators/agents.md) explains what the
agent's keys do.
"""


def page(tree):
    known = protos.Protos(tree, [SOURCE])
    tables = yaml_keys.KeyTables(known)
    blocks = [markdown.head(f"proto/{SOURCE}"), "# Configuration", INTRO.rstrip(),
              "## How values are written", yaml_keys.VALUES.rstrip()]
    shown = []
    for title, (root, intro) in FILES.items():
        message = known.types[f"berth.config.v1.{root}"]
        blocks += [f"## {title}", intro, tables.keys(message)]
        below = known.closure(message.full_name, shown)
        blocks += map(tables.section, below)
        shown += below
    return markdown.join(blocks)
