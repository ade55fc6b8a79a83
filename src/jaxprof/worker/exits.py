"""The end of a child process, in words: what happened to it, and what to do about it."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Exit:
    """Why a process ended without finishing its run."""

    what: str
    advice: str


_BY_SIGNAL = {
    signal.SIGABRT: Exit(
        "XLA aborted (SIGABRT)", "The log holds XLA's own words; a smaller size, or another jaxlib, may pass."
    ),
    signal.SIGSEGV: Exit(
        "crashed with SIGSEGV", "Native code failed: try another jaxlib version, and report it with the log."
    ),
    signal.SIGBUS: Exit("crashed with SIGBUS", "Often a full /dev/shm or a truncated mapped file: look at the log."),
    signal.SIGILL: Exit("crashed with SIGILL", "This jaxlib uses instructions that this processor does not have."),
    signal.SIGFPE: Exit("crashed with SIGFPE", "Native code divided by zero: report it with the log."),
    signal.SIGTERM: Exit("terminated (SIGTERM)", "Something asked it to end; the machine may be shutting down."),
    signal.SIGKILL: Exit(
        "killed (SIGKILL), probably out of memory",
        "Choose a smaller size, or free memory; `dmesg` tells whether the kernel did it.",
    ),
}


def explain(returncode: int | None, oom_kills: int = 0, last_words: str = "") -> Exit:
    """`returncode` as subprocess gives it; `oom_kills`: how many the kernel did in this cgroup meanwhile."""
    said = f" It last wrote: {last_words}" if last_words else ""
    if returncode is None:
        return Exit("the worker stopped talking", "It was ended." + said)
    if returncode == -signal.SIGKILL and oom_kills > 0:
        return Exit("killed by the kernel: out of memory", "Choose a smaller size, or free memory." + said)
    if returncode < 0:
        try:
            number = signal.Signals(-returncode)
        except ValueError:
            return Exit(f"ended by signal {-returncode}", said.strip())
        known = _BY_SIGNAL.get(number)
        if known is None:
            return Exit(f"ended by {number.name}", said.strip())
        return Exit(known.what, known.advice + said)
    return Exit(f"the worker ended with exit code {returncode} in the middle of the run", said.strip())


def oom_kill_count() -> int:
    """How many processes of this cgroup (v2) the kernel has killed for memory; 0 where that cannot be read."""
    try:
        for line in Path("/sys/fs/cgroup/memory.events").read_text().splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    except (OSError, ValueError):
        return 0
    return 0
