"""Check what a session file would start: the user is asked first, and the file must match what was found here.

A session is a text file that anybody can edit, so nothing in it proves that it is the user's own: neither the host name
nor the folder in which it lies. What this process measured itself, and holds in memory, needs no question; everything
else that is started from a file is shown and confirmed first, with the interpreter that this command found.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.errors import UsageError
from jaxprof.private import FLAGS, HIDDEN, SETTINGS, kept_value
from jaxprof.runner.interpreter import Interpreter, find_interpreter

if TYPE_CHECKING:
    from jaxprof.events import SideSpec
    from jaxprof.session import Session

_CHOOSES_CODE = re.compile(
    r"PATH|(LD|DYLD|PYTHON|PJRT|JAX_(PLUGIN|PJRT|CUDA_PLUGIN)|GIT|BASH|PERL|NODE|GLIBC|OPENSSL|SSL|TF_PLUG)_?.*"
    r"|.*_(LIBRARY|LIB|PLUGINS?|MODULES?|PATHS?|DIRS?|HOME|PRELOAD|COMMAND|EXEC)(_PATHS?|_DIRS?)?",
    re.IGNORECASE,
)
"""Variables that determine which program, library or module is loaded."""


class NotAskedFor(UsageError):
    """Nobody confirmed what a file would start."""


Ask = Callable[[Sequence[str]], None]
"""Takes a line for each thing that would be started. Raises NotAskedFor if the answer is no."""


def nobody_asked(lines: Sequence[str]) -> None:
    """Refuse: without a way to ask, nothing is started."""
    raise NotAskedFor("nothing in a session file is started without confirmation", "jaxprof run --from asks for it.")


def refuse_fetched(*paths: str | Path) -> None:
    """Raise UsageError for a path in the folder of files fetched from a URL: a session, a program or its folder."""
    from jaxprof.session.log.state import is_fetched

    if any(is_fetched(Path(path)) for path in paths):
        raise UsageError(
            "files fetched from a URL are never run", "Read the file first, then copy it to a folder of your own."
        )


def known_interpreter(recorded: str, given: Interpreter | None = None) -> Interpreter:
    """Return the interpreter that the user names, or the one found here, which has to be the recorded one. A path in a
    file is compared, and never started. Raises UsageError."""
    if given is not None:
        return given
    here = find_interpreter()
    if not _same(recorded, here.path):
        raise UsageError(
            f"it was recorded with {recorded or 'an unknown interpreter'}, and {here.path} is the one here",
            "--python PATH names another one; a comparison of two is made by jaxprof compare.",
        )
    return here


def _same(recorded: str, here: str) -> bool:
    """Return whether two paths name one interpreter: an environment has `python` and `python3` side by side."""
    if os.path.realpath(recorded) != os.path.realpath(here):
        return False
    return os.path.realpath(os.path.dirname(recorded)) == os.path.realpath(os.path.dirname(here))


def recorded_on(session: Session) -> str:
    """Return `, recorded on HOST, not on this machine`, for a question; empty for a session of this machine."""
    return f", recorded on {session.elsewhere}, not on this machine" if session.elsewhere else ""


def side_words(target: str, spec: SideSpec) -> str:
    """Return what the side of a comparison runs, according to its session, for a question."""
    revision = f" at {spec.commit or spec.revision}" if spec.revision else ""
    python = spec.python or "the interpreter here"
    return f"{spec.label}: {target}{revision}{with_variables(spec.environment)}, in {python}"


def kept_variables(recorded: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables of a side. Raises UsageError for a value that was not kept, for one that jaxprof writes into
    no session (such as a path), and for a variable that determines what is loaded (`LD_PRELOAD`)."""
    for name, value in recorded.items():
        if kept_value(name, value) != value or HIDDEN in value:
            raise UsageError(f"{name}={value} is not a setting that sessions keep", "jaxprof compare --env sets it.")
        if name not in (*SETTINGS, *FLAGS) and _CHOOSES_CODE.fullmatch(name):
            raise UsageError(f"{name} of a session file could choose what is loaded", "jaxprof compare --env sets it.")
    return recorded


def with_variables(variables: Mapping[str, str]) -> str:
    """Return ` with XLA_FLAGS=...`, for a question; empty without variables."""
    words = ", ".join(f"{name}={value}" for name, value in variables.items())
    return f" with {words}" if words else ""
