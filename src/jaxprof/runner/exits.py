"""Describes the end of a child process: what happened to it, and what to do about it."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Exit:
    """Why a process ended without finishing its run."""

    what: str
    advice: str
    known_cause: bool = False
    """Whether the system says so."""


_BY_SIGNAL = {  # by name: Windows has only a few of them
    "SIGABRT": Exit(
        "XLA aborted (SIGABRT)", "The log has XLA's own message; a smaller size or another jaxlib may work."
    ),
    "SIGSEGV": Exit(
        "crashed with SIGSEGV", "Native code failed: try another jaxlib version, and report the crash with the log."
    ),
    "SIGBUS": Exit("crashed with SIGBUS", "Often a full /dev/shm or a truncated mapped file: look at the log."),
    "SIGILL": Exit("crashed with SIGILL", "This jaxlib uses instructions that this processor does not have."),
    "SIGFPE": Exit("crashed with SIGFPE", "Native code divided by zero: report it with the log."),
    "SIGTERM": Exit("terminated (SIGTERM)", "Another process ended it; the machine may be shutting down."),
    "SIGKILL": Exit(
        "killed (SIGKILL), probably out of memory",
        "Choose a smaller size, or free memory; `dmesg` shows whether the kernel did it.",
    ),
}


KILLED_AFTER_TERM = Exit(
    "killed (SIGKILL): it had not ended after SIGTERM",
    "Whoever started it ends it so: jaxprof script -n and batch systems do when another process has failed.",
)


def explain(returncode: int | None, oom_kills: int = 0, words: str = "") -> Exit:
    """`returncode` as from subprocess; `oom_kills`: how many processes the kernel killed in this cgroup meanwhile."""
    last = f" It last wrote: {words}" if words else ""
    if returncode is None:
        return Exit("the worker stopped responding", "The worker was ended." + last)
    if returncode < 0:
        try:
            number = signal.Signals(-returncode)
        except ValueError:
            return Exit(f"ended by signal {-returncode}", last.strip())
        if number.name == "SIGKILL" and oom_kills > 0:
            advice = "Choose a smaller size, or free memory." + last
            return Exit("killed by the kernel: out of memory", advice, known_cause=True)
        cause = _BY_SIGNAL.get(number.name)
        if cause is None:
            return Exit(f"ended by {number.name}", last.strip())
        return Exit(cause.what, cause.advice + last)
    return Exit(f"the worker ended with exit code {returncode} in the middle of the run", last.strip())


def oom_kill_count() -> int:
    """The number of this cgroup's (v2) processes that the kernel has killed for memory; 0 if that cannot be read."""
    try:
        for line in Path("/sys/fs/cgroup/memory.events").read_text(encoding="utf-8").splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    except (OSError, ValueError):
        return 0
    return 0
