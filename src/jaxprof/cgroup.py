"""Read the limits that a container or a job scheduler sets for this process, from cgroup v2 and v1.

psutil reports what the machine has; in a container or under Slurm a process may use less. Limits apply at every level
of the hierarchy, so the least one on the way up to the root counts. Inside a container the path that the kernel reports
may not be mounted; then the root of what is mounted is the container's own group. A file that cannot be read counts as
no limit.

Formats: Linux kernel, Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jaxprof.light_dataclass import dataclass

MOUNT = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")

_NO_LIMIT = 1 << 60
"""Limits from here on mean none: cgroup v1 writes "no limit" as the largest multiple of a page; 2**60 is an EiB."""


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """The group with the least memory limit, and the files that report its use."""

    limit_bytes: int
    used: Path
    statistics: Path
    inactive_key: str

    def used_bytes(self) -> int | None:
        """Return the memory in use without the page cache that the kernel frees first; None if it cannot be read."""
        used = _integer(self.used)
        if used is None:
            return None
        inactive = 0
        for line in (_text(self.statistics) or "").splitlines():
            key, _, value = line.partition(" ")
            if key == self.inactive_key and value.strip().isdigit():
                inactive = int(value)
        return max(0, used - inactive)

    def left_bytes(self) -> int | None:
        """Return the memory that the group may still take; None if its use cannot be read."""
        used = self.used_bytes()
        return None if used is None else max(0, self.limit_bytes - used)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of this process's control groups; None if they set none."""

    cores: float | None = None
    """CPU time for each second of wall time, in cores; may be a fraction."""
    memory: MemoryGroup | None = None


def read_limits(mount: Path = MOUNT, membership: Path = MEMBERSHIP) -> Limits:
    """Read the limits of this process: a handful of small files; on a system without cgroups there are none."""
    version_1, version_2 = _memberships(_text(membership) or "")
    cores: list[float] = []
    groups: list[MemoryGroup] = []
    if version_2 is not None:
        base = mount if (mount / "cgroup.controllers").exists() else mount / "unified"
        for folder in _upwards(base, version_2):
            cores += _v2_cores(folder)
            groups += _memory_group(folder, "memory.max", "memory.current", "inactive_file")
    for controllers, path in version_1:
        names = controllers.split(",")
        mounted = [folder for name in (controllers, *names) if (folder := mount / name).is_dir()]
        for folder in _upwards(mounted[0], path) if mounted else ():
            if "cpu" in names:
                cores += _v1_cores(folder)
            if "memory" in names:
                files = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
                groups += _memory_group(folder, *files)
    return Limits(min(cores, default=None), min(groups, key=lambda group: group.limit_bytes, default=None))


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


def _v2_cores(folder: Path) -> list[float]:
    """Return the limit in `cpu.max`: `QUOTA PERIOD` in microseconds, or `max PERIOD`; empty if there is none."""
    words = (_text(folder / "cpu.max") or "").split()
    if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[1]) > 0:
        return [int(words[0]) / int(words[1])]
    return []


def _v1_cores(folder: Path) -> list[float]:
    quota, period = _integer(folder / "cpu.cfs_quota_us"), _integer(folder / "cpu.cfs_period_us")
    return [quota / period] if quota is not None and period and quota > 0 else []


def _memory_group(folder: Path, limit: str, used: str, inactive_key: str) -> list[MemoryGroup]:
    limit_bytes = _integer(folder / limit)  # v2 writes "max" for no limit, which is no integer
    if limit_bytes is None or not 0 < limit_bytes < _NO_LIMIT:
        return []
    return [MemoryGroup(limit_bytes, folder / used, folder / "memory.stat", inactive_key)]


def _integer(path: Path) -> int | None:
    try:
        return int(_text(path) or "")
    except ValueError:
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
