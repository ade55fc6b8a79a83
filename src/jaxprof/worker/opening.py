"""Profiles that were recorded elsewhere: telling them from sessions, and planning to read one.

The reading is the engine's. It needs numpy and no jax, so that it is done by the interpreter that jaxprof runs in.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from jaxprof.store.codec import EXTENSION
from jaxprof.trace.folders import ProfileRun, choose, runs_at
from jaxprof.worker.interpreter import Interpreter
from jaxprof.worker.planning import Planned, ProfileChoice

NOT_KNOWN_YET: Final = "profile"
"""The device of a profile that was not read yet."""
_HEAD_BYTES: Final = 256
_ENDINGS: Final = (".xplane.pb", ".xplane.pb.gz", ".trace.json", ".trace.json.gz")
_BEGINNINGS: Final = (b"\x1f\x8b", b"{", b"[", b"\x0a", b"\x12", b"\x1a", b"\x22")
"""Of gzip, of a Chrome trace, and of the first field of an XSpace: planes, errors, warnings, hosts."""


def is_profile(path: Path) -> bool:
    """Whether `path` is to be opened as a profile: a folder, or a file that is neither a session nor HLO.

    By its ending, or else by its first bytes: a session is a JSON object with jaxprof's format in it, and a text or a
    program is none of them.
    """
    if path.is_dir():
        return True
    if path.suffix == EXTENSION or not path.is_file():
        return False
    if path.name.endswith(_ENDINGS):
        return True
    try:
        with path.open("rb") as opened:
            head = opened.read(_HEAD_BYTES)
    except OSError:
        return False
    return head.startswith(_BEGINNINGS) and b'"jaxprof"' not in head


def profile_runs(path: Path) -> list[ProfileRun]:
    """The recordings at `path`, the newest first, each with its hosts. Raises FileRefusedError where there is none."""
    return runs_at(path)


def plan_profile(path: Path, run: str = "", hosts: Sequence[str] = ()) -> Planned:
    """The reading of a profile, for a Conductor. Raises UsageError and FileRefusedError where there is no such one."""
    chosen = choose(path, run, hosts)
    return Planned(
        target=str(path),
        workload=chosen.name,
        variant="profile",
        how="imported",
        device=NOT_KNOWN_YET,
        parameters={},
        preset="",
        check=False,
        profile=ProfileChoice(path=str(path.absolute()), run=run and chosen.name, hosts=tuple(hosts)),
    )


def own_interpreter() -> Interpreter:
    """The one that jaxprof runs in, which has numpy."""
    return Interpreter(sys.executable, None, "the one jaxprof runs in")
