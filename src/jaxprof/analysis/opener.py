"""What a path holds (a session, a job, a profile, HLO), and the modules in it: one answer for every command and screen.

This module is above `hlo.paths`, which knows files and folders, because sessions and profiles belong to packages above
`hlo`. Reading a profile takes a process of its own, which belongs to the runner above this module, so the caller passes
the function that reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.base.errors import FileRefusedError, JaxprofError
from jaxprof.base.files import open_regular

if TYPE_CHECKING:
    from jaxprof.hlo.stages import ModuleStages
    from jaxprof.hlo.text.model import Module
    from jaxprof.session import Run, Session

_HEAD_BYTES = 256
_JSON = re.compile(rb"\s*[\[{]\s*[\"\[{]")
_BINARY_PROFILE = (b"\x1f\x8b", b"\x0a", b"\x12", b"\x1a", b"\x22")
"""First bytes of gzip, and of the first field of an XSpace: planes, errors, warnings, hosts."""


class Kind(Enum):
    """What a path is opened as."""

    HLO = "HLO"
    SESSION = "a session"
    PROFILE = "a profile"
    JOB = "a job"


def kind_of(path: Path) -> Kind | None:
    """Return the kind of what is at `path`, by its name and its first bytes; for a folder, by the files in it. None if
    there is nothing, or nothing of a known kind."""
    if path.is_dir():
        from jaxprof.jobs.folder import is_job_folder

        if is_job_folder(path):
            return Kind.JOB
    head = _head(path)
    if head.startswith(b"{") and b'"jaxprof"' in head:
        return Kind.SESSION
    from jaxprof.hlo.paths import holds_hlo  # imported late: opening a session needs no reader of HLO

    if holds_hlo(path):
        return Kind.HLO
    if path.is_dir():
        return Kind.PROFILE if _has_profile(path) else None
    return _kind_of_other(path, head) if path.is_file() else None


def _head(path: Path) -> bytes:
    """Return the beginning of a file; empty if it cannot be read."""
    try:
        with open_regular(path) as opened:
            return opened.read(_HEAD_BYTES)
    except OSError:
        return b""


def _kind_of_other(path: Path, head: bytes) -> Kind | None:
    """Return the kind of a file that is neither HLO nor has a session's header: by its name, then by its first
    bytes."""
    from jaxprof.session.files import EXTENSION
    from jaxprof.trace.sources import XPLANE_ENDINGS

    if path.suffix == EXTENSION:
        return Kind.SESSION
    if path.name.endswith(XPLANE_ENDINGS):
        return Kind.PROFILE
    return Kind.PROFILE if head.startswith(_BINARY_PROFILE) or _JSON.match(head) else None


def modules_of(session: Session) -> list[ModuleStages]:
    """Return the modules of all runs with a text of one of the stages, in the order of the session."""
    from jaxprof.hlo.stages import STAGES, ModuleStages

    return [
        ModuleStages(
            key=run.id,
            label=run.label,
            stages={name: partial(_text, session, run.id, name) for name in names},
            device=run.plan.device,
            sources=session.sources,
        )
        for run in session.runs.values()
        if (names := [stage.name for stage in STAGES if stage.name in run.texts])
    ]


def _text(session: Session, run: str, name: str) -> str:
    return session.text(run, name) or ""


def module_of(session: Session, run: Run) -> Module | None:
    """Return the optimised HLO of a run; None if it has none, or it cannot be read: the HLO view says why."""
    try:
        return read_module(session, run)
    except JaxprofError:
        return None


def read_module(session: Session, run: Run, stage: str = "hlo") -> Module | None:
    """Return what `module_of` does, for any stage. Raises FileRefusedError if the text is damaged in the session."""
    text = session.text(run.id, stage) if stage in run.texts else None
    if not text:
        return None
    from jaxprof.hlo.stages import modules

    try:
        return modules(text)[0]
    except JaxprofError:
        return None


def open_hlo(path: Path, read_profile: Callable[[Path], Session]) -> tuple[list[ModuleStages], Session | None]:
    """Return the modules at `path`, and the session that they are runs of; for a profile, the one made from it. Blocks.
    Raises FileRefusedError if there are none, and whatever `read_profile` raises."""
    kind = kind_of(path)
    if kind in (Kind.SESSION, Kind.JOB):  # loading a job raises the error that names the session of a process
        from jaxprof.session import Session
        from jaxprof.session.log import load

        session = load(path, Session)
        return _some(modules_of(session), f"no run of {path} has a compiled program", HOW_TO_COMPILE), session
    if kind is Kind.PROFILE:
        session = read_profile(path)
        return _some(modules_of(session), f"{path} holds no HLO", _IN_PROFILES), session
    from jaxprof.hlo.paths import modules_at

    return modules_at(path), None


HOW_TO_COMPILE = "Compiled variants have one: jaxprof run NAME --variant jit."
_IN_PROFILES = "An .xplane.pb holds HLO where enable_hlo_proto was on (the default)."


def _has_profile(folder: Path) -> bool:
    from jaxprof.trace.sources import runs_at

    try:
        return bool(runs_at(folder))
    except (FileRefusedError, OSError):
        return False


def _some(modules: list[ModuleStages], what: str, hint: str) -> list[ModuleStages]:
    if not modules:
        raise FileRefusedError(what, hint)
    return modules
