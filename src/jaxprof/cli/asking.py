"""The question before what stands in a session file is started: one for `explain --try` and `run --from`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxprof.cli.output import confirm, note

if TYPE_CHECKING:
    from jaxprof.runner.from_file import Ask


def asks(source: str, *, yes: bool) -> Ask:
    """Shows what `source` would start, and asks; with `yes`, only shows it. Nothing is asked twice."""
    from jaxprof.runner.from_file import NotAskedFor

    answered: set[str] = set()

    def ask(lines: Sequence[str]) -> None:
        new = [line for line in lines if line not in answered]
        if not new:
            return
        note(f"{source} names what is to be started:")
        for line in new:
            note(f"  {line}")
        if not yes and not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise NotAskedFor(
                "nothing was started: a session file names it, and there is no terminal to ask at",
                "--yes starts what is shown above; read it first.",
            )
        if not yes and not confirm("Start it, with your rights?"):
            raise NotAskedFor("nothing was started", "")
        answered.update(new)

    return ask
