"""Find the recordings at a path (one file, or a log folder with several runs and hosts), and read a profile from disk:
the `.xplane.pb` that JAX writes, under any name. Files are never written.

JAX writes `plugins/profile/<run>/<host>.xplane.pb` below the log folder. To find it takes the standard library only.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.base.errors import FileRefusedError, UsageError, missing_file, system_words
from jaxprof.base.files import open_regular, unpack
from jaxprof.base.limits import FILE
from jaxprof.base.values import frozen

if TYPE_CHECKING:
    from jaxprof.trace.model import Trace

_PROFILES = "plugins/profile"
XPLANE_ENDINGS = (".xplane.pb", ".xplane.pb.gz")


@frozen
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
        # If a host's file has a packed copy, only the first counts.
        files = {_host(file): file for file in reversed(xplanes_in(folder))}
        if files and folder.resolve() not in by_folder:
            by_folder[folder.resolve()] = ProfileRun(folder.name, files)
    if not by_folder:
        raise FileRefusedError(
            f"{path} is a directory without a profile",
            "A folder that jax.profiler wrote to holds plugins/profile/<run>/<host>.xplane.pb.",
        )
    return sorted(by_folder.values(), key=lambda run: run.name, reverse=True)


def xplanes_in(folder: Path) -> list[Path]:
    """Return the files in a folder that are profiles by their names."""
    return sorted(child for child in folder.iterdir() if child.name.endswith(XPLANE_ENDINGS) and child.is_file())


def _host(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".xplane.pb")


@frozen
class ChosenProfile:
    """The profile of one host, and the recording that it belongs to."""

    run: ProfileRun
    host: str

    @property
    def path(self) -> Path:
        return self.run.files[self.host]

    @property
    def bytes(self) -> int:
        """Size of the file; 0 if it cannot be read."""
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


_GZIP = b"\x1f\x8b"


def read_profile(path: Path) -> Trace:
    """Return the whole trace of the newest recording at `path`. Raises FileRefusedError."""
    return read_file(choose(path).path, whole=True)


def read_file(path: Path, advance: Callable[[float], None] = lambda share: None, *, whole: bool = False) -> Trace:
    """Return the trace in one file of any name. `whole` says that the threads of the host are wanted too. `advance` is
    called regularly with the share that is done, and may raise. Raises FileRefusedError."""
    from jaxprof.trace.lanes import lanes_of  # NumPy is not needed to find a profile
    from jaxprof.trace.xspace import FileBytes, parse_xspace

    try:
        opened = open_regular(path)
        size = os.fstat(opened.fileno()).st_size
        if size > FILE.most:
            opened.close()
            raise FileRefusedError(f"{path} has {FILE.words}", f"Record fewer steps. {FILE.hint}")
        file = FileBytes(opened, size, str(path))
    except OSError as error:  # also where there is no room for it, as below a limit of the address space
        raise FileRefusedError(f"{path} cannot be read: {system_words(error)}") from error
    raw: bytes | FileBytes = file
    problem, start = "", file.read(64)
    if start.startswith(_GZIP):
        packed, unpacked = file.read(size), bytearray()
        try:
            for piece in unpack(packed, str(path)):
                unpacked += piece
        except zlib.error as error:  # what could be read is shown, with the problem
            problem = f"{path} is damaged as a gzip file: {error}"
        except EOFError:
            problem = f"{path} is truncated: the gzip file has no end"
        raw = bytes(unpacked)
        start = raw[:64]
    if start.lstrip().startswith((b"{", b"[")):
        # A Chrome trace: JAX wrote the profile beside it.
        host = path.name.partition(".trace.json")[0]
        try:
            beside = sorted(xplanes_in(path.absolute().parent), key=lambda file: not file.name.startswith(host))
        except OSError:  # a folder that may be entered, but not listed
            beside = []
        raise FileRefusedError(
            f"{path} is JSON: jaxprof does not read Chrome traces",
            f"Open {beside[0]}, which is beside it."
            if beside and "trace.json" in path.name
            else "A profile is the .xplane.pb that JAX writes beside a .trace.json.gz.",
        )
    trace = lanes_of(parse_xspace(raw, str(path)), advance, whole=whole)
    trace.bytes = size
    if problem:
        trace.problems.append(problem)
    return trace
