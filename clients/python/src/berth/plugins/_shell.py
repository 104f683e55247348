"""Commands for hosts that hand over plain arguments or a script: nothing in them is a variable of Berth."""
from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

NAMED = re.compile(r"\$(?=\$[A-Za-z_{])")


def quoted(arguments: Sequence[str]) -> str:
    """A line of a shell that runs exactly these arguments. In the script of a shell Berth replaces only "$$NAME".

    >>> quoted(["echo", "$HOME", "$$HOME", "two words"])
    "echo '$HOME' '$''$HOME' 'two words'"
    """
    return " ".join(NAMED.sub("$''", shlex.quote(argument)) for argument in arguments)
