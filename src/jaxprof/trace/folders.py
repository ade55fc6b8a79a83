"""Which recordings a path holds: one file, or a log folder with several runs and hosts. Standard library only.

JAX writes `plugins/profile/<run>/<host>.xplane.pb` below the folder that it was given, and `.trace.json.gz` beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jaxprof.errors import FileRefusedError, UsageError

_PROFILES: Final = "plugins/profile"
_XPLANE: Final = (".xplane.pb", ".xplane.pb.gz")
_CHROME: Final = (".trace.json.gz", ".trace.json")


@dataclass(frozen=True, slots=True)
class HostFile:
    """One host's profile."""

    host: str
    path: Path


@dataclass(frozen=True, slots=True)
class ProfileRun:
    """One recording: the profiles of its hosts."""

    name: str
    hosts: tuple[HostFile, ...]


def runs_at(path: Path) -> list[ProfileRun]:
    """The recordings at `path` (a file, a log folder, or the folder of one run), the newest first.

    Raises FileRefusedError where there is none.
    """
    if not path.exists():
        raise FileRefusedError(f"there is no file {path}")
    if not path.is_dir():
        return [ProfileRun(path.name, (HostFile(_host(path), path),))]
    folders = [path]
    for base in (path / _PROFILES, path / "profile", path):
        if base.is_dir():
            folders += sorted(child for child in base.iterdir() if child.is_dir())
    found: dict[Path, ProfileRun] = {}
    for folder in folders:
        if folder.resolve() not in found and (hosts := _hosts_in(folder)):
            found[folder.resolve()] = ProfileRun(folder.name, hosts)
    if not found:
        raise FileRefusedError(
            f"{path} is a directory without a profile",
            "A folder that jax.profiler wrote to has plugins/profile/<run>/<host>.xplane.pb in it.",
        )
    return sorted(found.values(), key=lambda run: run.name, reverse=True)


def _hosts_in(folder: Path) -> tuple[HostFile, ...]:
    """The profiles of a folder: xplanes, and a Chrome trace only of a host without one."""
    files = sorted(child for child in folder.iterdir() if child.is_file())
    hosts: dict[str, Path] = {}
    for endings in (_XPLANE, _CHROME):
        for file in files:
            if file.name.endswith(endings) and not file.name.startswith("perfetto_trace"):
                hosts.setdefault(_host(file), file)
    return tuple(HostFile(host, file) for host, file in hosts.items())


def _host(path: Path) -> str:
    for ending in (*_XPLANE, *_CHROME):
        if path.name.endswith(ending):
            return path.name.removesuffix(ending)
    return path.name


def choose(path: Path, run: str = "", hosts: Sequence[str] = ()) -> ProfileRun:
    """The recording called `run` (by default the newest), with those of its hosts (by default all).

    Raises UsageError that names what there is, and FileRefusedError where there is nothing.
    """
    found = runs_at(path)
    chosen = found[0]
    if run:
        named = [one for one in found if one.name == run]
        if not named:
            raise UsageError(f"{path} has no run {run!r}", f"It has {', '.join(one.name for one in found[:10])}.")
        chosen = named[0]
    if not hosts:
        return chosen
    known = {one.host: one for one in chosen.hosts}
    missing = [host for host in hosts if host not in known]
    if missing:
        raise UsageError(f"run {chosen.name} has no host {missing[0]!r}", f"It has {', '.join(list(known)[:10])}.")
    return ProfileRun(chosen.name, tuple(known[host] for host in hosts))
