"""The modules of a session, and of whatever else holds HLO. Reading a profile takes a process of its own, which belongs
to the runner above this module, so the caller passes the function that reads it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.analysis.target import Kind, kind_of
from jaxprof.base.errors import FileRefusedError, JaxprofError
from jaxprof.base.text import REDACTED

if TYPE_CHECKING:
    from jaxprof.hlo.stages import ModuleStages
    from jaxprof.hlo.text.model import Module
    from jaxprof.session import Run, Session

HOW_TO_COMPILE = "Compiled variants have one: jaxprof run NAME --variant jit."


def how_to_get_hlo(session: Session) -> str:
    """Return how to record what this session did with compiled programs in it."""
    started = next((run.program.started for run in session.programs if run.program is not None), None)
    if started is None:
        return HOW_TO_COMPILE
    if started.how not in ("script", "module"):
        return "The capture of a program has them: pass capture_steps=5 to jaxprof.record."
    argv = ["FILE.py"] if REDACTED in " ".join(started.argv) else started.argv
    return f"The capture of a program has them: {shlex.join(('jaxprof', 'script', '--capture-steps', '5', *argv))}"


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
    """Return the modules at `path`, and the session that they are runs of; for a profile, the one made from it by
    `read_profile`. Blocks. Raises FileRefusedError if there are none, and whatever `read_profile` raises."""
    kind = kind_of(path)
    if kind not in (Kind.SESSION, Kind.JOB, Kind.PROFILE):
        from jaxprof.hlo.paths import modules_at

        return modules_at(path), None
    if kind is Kind.PROFILE:
        session, problem = read_profile(path), f"{path} holds no HLO"
        hint = "An .xplane.pb holds HLO where enable_hlo_proto was on (the default)."
    else:  # loading a job raises the error that names the session of a process
        from jaxprof.session import Session
        from jaxprof.session.log import load

        session, problem = load(path, Session), f"no run of {path} has a compiled program"
        hint = how_to_get_hlo(session)
    modules = modules_of(session)
    if not modules:
        raise FileRefusedError(problem, hint)
    return modules, session
