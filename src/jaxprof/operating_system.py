"""What each operating system supports: Linux and macOS everything, Windows everything except running programs.

On Windows jaxprof opens, prints and exports sessions, profiles and HLO. Running a program needs process groups,
inherited pipes and signals that Windows lacks. One check here reports that, before any module that Windows lacks is
imported.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from jaxprof.errors import UsageError


def can_run() -> bool:
    """Whether this system can run and measure programs; every POSIX system can."""
    return hasattr(os, "fork")


def refuse_to_run(what: str) -> None:
    """Raises UsageError if this system cannot run programs; `what` is the requested command (`jaxprof run`)."""
    if not can_run():
        raise UsageError(
            f"{what} needs Linux or macOS",
            "On Windows, install jaxprof inside WSL (`wsl --install`) and run it there. The session that it writes can "
            "be opened, printed and exported here.",
        )


def processors() -> int:
    """How many processors this process may use; where the system does not tell, how many the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def signals(*names: str) -> tuple[signal.Signals, ...]:
    """The named signals that this system has."""
    known = signal.Signals.__members__
    return tuple(known[name] for name in names if name in known)


@contextmanager
def unwound_by_signals() -> Iterator[None]:
    """Inside, signals that would end the process at once unwind it, so that nothing is left behind. In another thread
    than the main one, which alone may say what signals do, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def unwind(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {
        number: signal.signal(number, unwind)
        for number in signals("SIGTERM", "SIGHUP")
        if signal.getsignal(number) is signal.SIG_DFL
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def python_words(python: str, *words: str) -> list[str]:
    """The command of a child of ours: `-P` keeps the current folder from its path, where a `json.py` would be imported
    in the place of Python's own. A user's own program is started without it, as `python FILE` would."""
    return [python, "-P", *words]


@contextmanager
def safe_path_of_children() -> Iterator[None]:
    """The same for what `multiprocessing` starts in this block, whose commands are its own."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before
