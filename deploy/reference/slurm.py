"""docs/reference/slurm.md: every option of the Slurm commands, from the program's own tables."""
import os
import pathlib
import subprocess

from reference import markdown

INTRO = """\
Every option of the Slurm commands that Berth knows: done, refused with what to write instead, or without a meaning here,
which the command says. An option that is not listed is an error. [Slurm commands](../users/slurm.md) has the rest.
"""


def page(tree):
    bin_folder = pathlib.Path(os.environ.get("BERTH_BIN", tree / "build" / "release" / "bin"))
    tables = subprocess.run([bin_folder / "berth-slurm", "options"], check=True, capture_output=True, text=True).stdout
    return markdown.join([markdown.head("berth-slurm options"), "# Slurm options", INTRO.rstrip(), tables.rstrip()])
