"""What each operating system supports: Linux and macOS everything, Windows everything except running programs.

On Windows jaxprof opens, prints and exports sessions, profiles and HLO. Running a program needs process groups,
inherited pipes and signals that Windows lacks. One check here reports that, before any module that Windows lacks is
imported.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from jaxprof.errors import UsageError


def can_run() -> bool:
    """Return whether this system can run and measure programs; every POSIX system can."""
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
    """Return how many processors this process may use; if the system does not report it, how many the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_model() -> str | None:
    """Return the processor's product name; None if nothing reports it (many ARM servers)."""
    import platform
    import re

    named = re.compile(r"^(?:model name|cpu model|Model|Hardware)\s*:\s*(\S.*?)\s*$", re.MULTILINE)
    try:
        match = named.search(Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        match = None
    if match:
        return " ".join(match.group(1).split())
    if sys.platform == "darwin":
        import subprocess  # not above: a recorded program would wait for it

        command = ["sysctl", "-n", "machdep.cpu.brand_string"]
        try:
            output = subprocess.run(
                command, capture_output=True, encoding="utf-8", errors="replace", timeout=2, stdin=subprocess.DEVNULL
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return output.stdout.strip() or None
    return platform.processor() if platform.processor() not in ("", platform.machine()) else None


def signals(*names: str) -> tuple[signal.Signals, ...]:
    """Return those of the named signals that this system has."""
    known = signal.Signals.__members__
    return tuple(known[name] for name in names if name in known)


@contextmanager
def unwound_by_signals() -> Iterator[None]:
    """Unwind the process when a signal arrives that would end it at once, so that nothing is left behind. Does nothing
    outside the main thread, which alone may set signal handlers."""
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
    """Return the command of a child of ours. `-P` keeps the current folder off its path, because a `json.py` there
    would be imported in place of Python's own. A user's own program is started without it, as `python FILE` would
    be."""
    return [python, "-P", *words]


@contextmanager
def safe_path_of_children() -> Iterator[None]:
    """Keep the current folder off the path of what `multiprocessing` starts meanwhile, whose command is its own."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before
