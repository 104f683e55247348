"""docs/reference/configuration.md: the keys of the configuration files of berthd, the agent, berth-authd and berth-web."""
from reference import markdown, protos, yaml_keys

SOURCES = ["berth/config/v1/config.proto", "berth/config/v1/records.proto", "berth/auth/v1/auth.proto", "berth/web/v1/web.proto"]
FILES = {"berthd": ("berth.config.v1.Server", "`berthd --config FILE` reads these keys."),
         "berth-agent": ("berth.config.v1.Agent", "`berth-agent --config FILE` reads these keys."),
         "berth-agent --simulate": ("berth.config.v1.Simulation",
                                    "`berth-agent --simulate FILE` reads these keys and simulates many nodes in one process."),
         "berth-authd": ("berth.auth.v1.Authd", "`berth-authd --config FILE` reads these keys."),
         "berth-web": ("berth.web.v1.Web", "`berth-web --config FILE` reads these keys.")}
INTRO = """\
Each program reads one YAML file. All keys have defaults, so a file names only what differs. Unknown keys are errors.
[Installing](../operators/install.md) shows complete files, and [agents](../operators/agents.md) explains what the
agent's keys do.
"""


def page(tree):
    known = protos.Protos(tree, SOURCES)
    tables = yaml_keys.KeyTables(known)
    blocks = [markdown.head(" and ".join(f"proto/{source}" for source in SOURCES)), "# Configuration", INTRO.rstrip(),
              "## How values are written", yaml_keys.VALUES.rstrip()]
    shown = []
    for title, (root, intro) in FILES.items():
        message = known.types[root]
        blocks += [f"## {title}", intro, tables.keys(message)]
        below = known.closure(message.full_name, shown)
        blocks += map(tables.section, below)
        shown += below
    return markdown.join(blocks)
