"""docs/reference/access.md: which right each method needs, and which role has it, as berthd's tables say."""
import os
import pathlib
import subprocess

from reference import markdown

INTRO = """\
What each method of the API needs once access rules are enforced, and what the built-in roles have: berthd's own tables
(`berthd --access-table`). [Access](../operators/access.md) explains how to use roles. A method without a row does not
compile, and a test calls every method as every role.
"""


def page(tree):
    bin_folder = pathlib.Path(os.environ.get("BERTH_BIN", tree / "build" / "release" / "bin"))
    tables = subprocess.run([bin_folder / "berthd", "--access-table"], check=True, capture_output=True, text=True).stdout
    methods, roles = tables.rstrip().split("\n\n")
    return markdown.join([markdown.head("berthd --access-table"), "# Access rights", INTRO.rstrip(), "## Methods",
                          methods, "## Verbs and roles", roles])
