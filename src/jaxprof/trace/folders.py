"""Find the recordings at a path: one file, or a log folder with several runs and hosts. Standard library only.

JAX writes `plugins/profile/<run>/<host>.xplane.pb` below the log folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jaxprof.errors import FileRefusedError, UsageError, missing_file

_PROFILES: Final = "plugins/profile"
XPLANE_ENDINGS: Final = (".xplane.pb", ".xplane.pb.gz")


@dataclass(frozen=True, slots=True)
class ProfileRun:
    """One recording: the profile of each of its hosts, by the host's name."""

    name: str
    files: Mapping[str, Path]


def runs_at(path: Path) -> list[ProfileRun]:
    """Return the recordings at `path` (a file, a log folder, or the folder of one run), newest first.

    Raises FileRefusedError if there are none.
    """
    if not path.exists():
        raise missing_file(path)
    if not path.is_dir():
        return [ProfileRun(path.name, {_host(path): path})]
    folders = [path]
    for base in (path / _PROFILES, path / "profile", path):
        if base.is_dir():
            folders += sorted(child for child in base.iterdir() if child.is_dir())
    by_folder: dict[Path, ProfileRun] = {}
    for folder in folders:
        if folder.resolve() not in by_folder and (files := _files_in(folder)):
            by_folder[folder.resolve()] = ProfileRun(folder.name, files)
    if not by_folder:
        raise FileRefusedError(
            f"{path} is a directory without a profile",
            "A folder that jax.profiler wrote to holds plugins/profile/<run>/<host>.xplane.pb.",
        )
    return sorted(by_folder.values(), key=lambda run: run.name, reverse=True)


def _files_in(folder: Path) -> dict[str, Path]:
    """Return the profiles of a folder by host; of a host's file and its packed copy only the first."""
    return {_host(file): file for file in reversed(xplanes_in(folder))}


def xplanes_in(folder: Path) -> list[Path]:
    """Return the files in a folder that are profiles by their names."""
    return sorted(child for child in folder.iterdir() if child.name.endswith(XPLANE_ENDINGS) and child.is_file())


def _host(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".xplane.pb")


@dataclass(frozen=True, slots=True)
class ChosenProfile:
    """The profile of one host, and the recording that it belongs to."""

    run: ProfileRun
    host: str

    @property
    def path(self) -> Path:
        """The file."""
        return self.run.files[self.host]

    @property
    def bytes(self) -> int:
        """Size of the file; 0 if it cannot be told."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0


def choose(path: Path, run: str = "", host: str = "") -> ChosenProfile:
    """Return the profile of `host` (by default the first by name) in the recording called `run` (by default the
    newest).

    Raises UsageError, which names the available ones, and FileRefusedError if there is none.
    """
    runs = {item.name: item for item in reversed(runs_at(path))}
    run = run or next(reversed(runs))
    if run not in runs:
        raise UsageError(f"{path} has no run {run!r}", f"It has {', '.join(list(reversed(runs))[:10])}.")
    files = runs[run].files
    host = host or min(files)
    if host not in files:
        raise UsageError(f"run {run} has no host {host!r}", f"It has {', '.join(sorted(files)[:10])}.")
    return ChosenProfile(runs[run], host)
