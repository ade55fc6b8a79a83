"""Find the recordings at a path: one file, or a log folder with several runs and hosts. Standard library only.

JAX writes `plugins/profile/<run>/<host>.xplane.pb` below the log folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jaxprof.errors import FileRefusedError, UsageError, missing_file

_PROFILES: Final = "plugins/profile"
XPLANE_ENDINGS: Final = (".xplane.pb", ".xplane.pb.gz")


@dataclass(frozen=True, slots=True)
class HostFile:
    """One host's profile."""

    host: str
    path: Path

    @property
    def bytes(self) -> int:
        """Size of the file; 0 if it cannot be told."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0


@dataclass(frozen=True, slots=True)
class ProfileRun:
    """One recording: the profiles of its hosts."""

    name: str
    hosts: tuple[HostFile, ...]


def runs_at(path: Path) -> list[ProfileRun]:
    """Return the recordings at `path` (a file, a log folder, or the folder of one run), newest first.

    Raises FileRefusedError if there are none.
    """
    if not path.exists():
        raise missing_file(path)
    if not path.is_dir():
        return [ProfileRun(path.name, (HostFile(_host(path), path),))]
    folders = [path]
    for base in (path / _PROFILES, path / "profile", path):
        if base.is_dir():
            folders += sorted(child for child in base.iterdir() if child.is_dir())
    by_folder: dict[Path, ProfileRun] = {}
    for folder in folders:
        if folder.resolve() not in by_folder and (hosts := _hosts_in(folder)):
            by_folder[folder.resolve()] = ProfileRun(folder.name, hosts)
    if not by_folder:
        raise FileRefusedError(
            f"{path} is a directory without a profile",
            "A folder that jax.profiler wrote to holds plugins/profile/<run>/<host>.xplane.pb.",
        )
    return sorted(by_folder.values(), key=lambda run: run.name, reverse=True)


def _hosts_in(folder: Path) -> tuple[HostFile, ...]:
    """Return the profiles of a folder; of a host's file and its packed copy only the first."""
    hosts: dict[str, Path] = {}
    for file in xplanes_in(folder):
        hosts.setdefault(_host(file), file)
    return tuple(HostFile(host, file) for host, file in hosts.items())


def xplanes_in(folder: Path) -> list[Path]:
    """Return the files in a folder that are profiles by their names."""
    return sorted(child for child in folder.iterdir() if child.name.endswith(XPLANE_ENDINGS) and child.is_file())


def _host(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".xplane.pb")


def choose(path: Path, run: str = "", hosts: Sequence[str] = ()) -> ProfileRun:
    """Return the recording called `run` (by default the newest), with the hosts in `hosts` (by default all).

    Raises UsageError, which names the available ones, and FileRefusedError if there is none.
    """
    runs = runs_at(path)
    chosen = runs[0]
    if run:
        named = [item for item in runs if item.name == run]
        if not named:
            raise UsageError(f"{path} has no run {run!r}", f"It has {', '.join(item.name for item in runs[:10])}.")
        chosen = named[0]
    if not hosts:
        return chosen
    by_name = {item.host: item for item in chosen.hosts}
    missing = [host for host in hosts if host not in by_name]
    if missing:
        raise UsageError(f"run {chosen.name} has no host {missing[0]!r}", f"It has {', '.join(list(by_name)[:10])}.")
    return ProfileRun(chosen.name, tuple(by_name[host] for host in hosts))
