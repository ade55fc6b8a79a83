"""A program as one asks for it in a dialog: from lines of text to what is started, and back. Starts nothing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxprof.errors import UsageError

if TYPE_CHECKING:
    from jaxprof.worker.program import Program

_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*\Z")
_WINDOW = re.compile(
    r"(?:(?P<steps>\d+)\s*steps?|(?P<seconds>\d+(?:\.\d+)?)\s*s)?\s*(?:after\s+(?P<after>\d+(?:\.\d+)?)\s*s)?\Z"
)

EXACT = "exact"


@dataclass(frozen=True, slots=True)
class Form:
    """What stands in the fields."""

    program: str = ""
    """`train.py`, or `-m package.module`."""
    arguments: str = ""
    """As in a shell."""
    directory: str = ""
    """Where it runs; empty: where jaxprof was started."""
    capture: str = ""
    """`5 steps`, `2 s`, `2 s after 10 s`; empty: no window."""
    function: str = ""
    transfers: str = ""
    """`exact`: every implicit copy is counted; empty: lines by samples."""


def read_program(text: str, directory: Path) -> tuple[str, bool]:
    """Path or module name, and whether it is a module. Raises UsageError."""
    text = text.strip()
    if not text:
        raise UsageError("no program is given", "Give train.py, or -m package.module.")
    if text.startswith("-m"):
        name = text[2:].strip()
        if not _MODULE.match(name):
            raise UsageError(f"{name!r} is no name of a module", "Give -m package.module.")
        return name, True
    path = directory / Path(text).expanduser()
    if path.is_dir() and not (path / "__main__.py").is_file():
        raise UsageError(f"{path} is a directory", "Give a file in it, or -m package.module.")
    if not path.exists():
        raise UsageError(f"there is no file {path}", "The path is meant from the directory that it shall run in.")
    return text if not text.startswith("~") else str(path), False


def read_arguments(text: str) -> tuple[str, ...]:
    """The arguments, split as a shell does. Raises UsageError."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"the arguments cannot be split: {error}", "Close every quote, as in a shell.") from None


def read_directory(text: str) -> Path:
    """Where it runs. Raises UsageError."""
    path = Path(text.strip()).expanduser() if text.strip() else Path.cwd()
    if not path.is_dir():
        raise UsageError(f"{path} is no directory", "Leave it empty to run it where jaxprof was started.")
    return path.resolve()


def read_capture(text: str) -> dict[str, Any]:
    """The options of the capture window: steps, seconds, after. Raises UsageError."""
    found = _WINDOW.match(text.strip())
    if found is None:
        raise UsageError(f"{text.strip()!r} is no capture window", "5 steps, 2 s, or 2 s after 10 s.")
    steps, seconds, after = found["steps"], found["seconds"], found["after"]
    if steps is not None and int(steps) < 1:
        raise UsageError("a window has at least 1 step", "5 steps is enough to see what repeats.")
    return {
        "capture_steps": int(steps) if steps is not None else None,
        "capture_seconds": float(seconds) if seconds is not None else None,
        "capture_after_seconds": float(after) if after is not None else None,
    }


def read_function(text: str) -> str:
    """The name of a function to measure. Raises UsageError."""
    name = text.strip()
    if name and not all(part.isidentifier() for part in name.split(".")):
        raise UsageError(f"{name!r} is no name of a function", "As it is called in the program: train_step.")
    return name


def read_transfers(text: str) -> bool:
    """Whether implicit copies are counted. Raises UsageError."""
    if text.strip() not in ("", EXACT):
        raise UsageError(f"{text.strip()!r} is no way to count copies", f"{EXACT}, or empty.")
    return bool(text.strip())


def read_form(form: Form) -> Program:
    """What is to be started. Raises UsageError."""
    from jaxprof.engine.recording import RecordingOptions
    from jaxprof.worker.program import Program

    directory = read_directory(form.directory)
    path, module = read_program(form.program, directory)
    function, transfers = read_function(form.function), read_transfers(form.transfers)
    options = RecordingOptions(function=function, transfers=transfers, **read_capture(form.capture))
    arguments = read_arguments(form.arguments)
    return Program(path=path, module=module, arguments=arguments, directory=str(directory), options=options)


def form_of_argv(argv: tuple[str, ...], directory: str, options: Mapping[str, Any]) -> Form:
    """The form that a recorded program would have come from."""
    if not argv:
        return Form()
    module = argv[0] == "-m" and len(argv) > 1
    program, rest = (f"-m {argv[1]}", argv[2:]) if module else (argv[0], argv[1:])
    function, transfers = str(options.get("function") or ""), EXACT if options.get("transfers") is True else ""
    return Form(program, shlex.join(rest), directory, capture_text(options), function, transfers)


def capture_text(options: Mapping[str, Any]) -> str:
    """The window in the words in which it is asked for."""
    steps, seconds, after = (options.get(f"capture_{name}") for name in ("steps", "seconds", "after_seconds"))
    length = f"{steps} steps" if steps else f"{seconds:g} s" if isinstance(seconds, int | float) else ""
    start = f"after {after:g} s" if isinstance(after, int | float) else ""
    return f"{length} {start}".strip()
