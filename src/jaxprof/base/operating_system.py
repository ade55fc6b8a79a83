"""What each operating system supports: Linux and macOS everything, Windows everything except running programs.

On Windows jaxprof opens, prints and exports sessions, profiles and HLO. Running a program needs process groups,
inherited pipes and signals that Windows lacks. One check here reports that, before any module that Windows lacks is
imported.

Here are also the limits that a container or a job scheduler sets for this process, from cgroup v2 and v1: psutil
reports what the machine has, and a process may use less. Limits apply at every level of the hierarchy, so the least one
on the way up to the root counts. Inside a container the path that the kernel reports may not be mounted; then the root
of what is mounted is the container's own group. A file that cannot be read counts as no limit. Formats: Linux kernel,
Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from jaxprof.base.errors import NotAllowedError, UsageError
from jaxprof.base.values import frozen


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


OWN_CODE = "JAXPROF_OWN_CODE"
"""Environment variable that keeps a process and its children from starting code that is not jaxprof's, if it is
`refused`: tools of `jaxprof agent mcp` without `--allow-run`."""
REFUSED = "refused"


def refuse_own_code(what: str) -> None:
    """Raises UsageError if this process may not start the user's code; called wherever that would start."""
    if os.environ.get(OWN_CODE) == REFUSED:
        raise NotAllowedError(
            f"{what} is your code, and this process may not run it", "Start the server with --allow-run to allow it."
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
    if match := named.search(text_at(Path("/proc/cpuinfo"))):
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
    known = signal.Signals.__members__
    return tuple(known[name] for name in names if name in known)


Handler = Callable[[int, FrameType | None], object]


@contextmanager
def signal_handlers(handlers: Mapping[signal.Signals, Handler]) -> Iterator[Mapping[signal.Signals, Any]]:
    """Set these handlers meanwhile, and yield the former ones. A signal that is ignored (nohup) stays ignored."""
    before = {
        number: signal.signal(number, handler)
        for number, handler in handlers.items()
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield before
    finally:
        for number, former in before.items():
            signal.signal(number, former)


@contextmanager
def raise_on_signals() -> Iterator[None]:
    """Unwind the process when a signal arrives that would end it at once, so that nothing is left behind. Does nothing
    outside the main thread, which alone may set signal handlers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def unwind(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)  # as a shell says that a signal ended a program

    ending = [number for number in signals("SIGTERM", "SIGHUP") if signal.getsignal(number) is signal.SIG_DFL]
    with signal_handlers(dict.fromkeys(ending, unwind)):
        yield


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


MOUNT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")

_NO_LIMIT = 1 << 60
"""Limits from here on mean none: cgroup v1 writes "no limit" as the largest multiple of a page; 2**60 is an EiB."""


@frozen
class MemoryGroup:
    """The group with the least memory limit, and the files that report its use."""

    limit_bytes: int
    used: Path
    statistics: Path
    inactive_key: str

    def used_bytes(self) -> int | None:
        """Return the memory in use without the page cache that the kernel frees first; None if it cannot be read."""
        used = _integer(self.used)
        return None if used is None else max(0, used - numbers_at(self.statistics).get(self.inactive_key, 0))

    def free_bytes(self) -> int | None:
        """Return the memory that the group may still take; None if its use cannot be read."""
        used = self.used_bytes()
        return None if used is None else max(0, self.limit_bytes - used)


@frozen
class Limits:
    """The limits of this process's control groups; None if they set none."""

    cores: float | None = None
    """CPU time for each second of wall time, in cores; may be a fraction."""
    memory: MemoryGroup | None = None


def read_limits(mount: Path = MOUNT, membership: Path = MEMBERSHIP) -> Limits:
    """Read the limits of this process: a handful of small files; on a system without cgroups there are none."""
    version_1, version_2 = _memberships(text_at(membership))
    cores: list[float] = []
    groups: list[MemoryGroup] = []
    if version_2 is not None:
        base = mount if (mount / "cgroup.controllers").exists() else mount / "unified"
        for folder in _upwards(base, version_2):
            quota, _, period = text_at(folder / "cpu.max").strip().partition(" ")  # in microseconds, or `max PERIOD`
            if quota.isdigit() and period.isdigit() and int(period) > 0:
                cores.append(int(quota) / int(period))
            groups += _memory_group(folder, "memory.max", "memory.current", "inactive_file")
    for controllers, path in version_1:
        names = controllers.split(",")
        mounted = [folder for name in (controllers, *names) if (folder := mount / name).is_dir()]
        for folder in _upwards(mounted[0], path) if mounted else ():
            if "cpu" in names:
                limit, each = _integer(folder / "cpu.cfs_quota_us"), _integer(folder / "cpu.cfs_period_us")
                cores += [limit / each] if limit is not None and each and limit > 0 else []
            if "memory" in names:
                files = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
                groups += _memory_group(folder, *files)
    return Limits(min(cores, default=None), min(groups, key=lambda group: group.limit_bytes, default=None))


def oom_kill_count(mount: Path = MOUNT, membership: Path = MEMBERSHIP) -> int:
    """Return how many processes of this control group the kernel has killed for memory; 0 if that cannot be read."""
    version_1, version_2 = _memberships(text_at(membership))
    files: list[Path] = []
    if version_2 is not None:
        base = mount if (mount / "cgroup.controllers").exists() else mount / "unified"
        files += (folder / "memory.events" for folder in _upwards(base, version_2))
    for controllers, path in version_1:
        if "memory" in controllers.split(","):
            files += (folder / "memory.oom_control" for folder in _upwards(mount / "memory", path))
    counts = (numbers_at(file).get("oom_kill") for file in files)
    return next((count for count in counts if count is not None), 0)


def _memberships(text: str) -> tuple[list[tuple[str, str]], str | None]:
    """Parse `/proc/self/cgroup`, lines of `number:controllers:path`: return those of v1, and the path in v2 if used."""
    version_1, version_2 = [], None
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            version_2 = path
        elif controllers:
            version_1.append((controllers, path))
    return version_1, version_2


def _upwards(base: Path, path: str) -> Iterator[Path]:
    """Yield the folder of a group, then its ancestors up to `base`; only `base` if the path is not mounted here."""
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    if not base.joinpath(*parts).is_dir():
        parts = []
    for depth in range(len(parts), -1, -1):
        yield base.joinpath(*parts[:depth])


def _memory_group(folder: Path, limit: str, used: str, inactive_key: str) -> list[MemoryGroup]:
    limit_bytes = _integer(folder / limit)  # v2 writes "max" for no limit, which is no integer
    if limit_bytes is None or not 0 < limit_bytes < _NO_LIMIT:
        return []
    return [MemoryGroup(limit_bytes, folder / used, folder / "memory.stat", inactive_key)]


def _integer(path: Path) -> int | None:
    try:
        return int(text_at(path))
    except ValueError:
        return None


def text_at(path: Path) -> str:
    """Return the text of one of the system's files; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def numbers_at(path: Path) -> dict[str, int]:
    """Return the numbers in the lines `NAME NUMBER` of one of the system's files; none if it cannot be read."""
    rows = (line.split() for line in text_at(path).splitlines())
    return {words[0]: int(words[1]) for words in rows if len(words) > 1 and words[1].isdigit()}
