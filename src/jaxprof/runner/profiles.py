"""Read profiles with an engine: those recorded elsewhere, and those of a program's capture windows.

Reading takes numpy and no jax, so the interpreter that runs jaxprof does it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.base.errors import FileRefusedError
from jaxprof.engine.protocol.request import OpenTraceRequest
from jaxprof.events import Event, RunSpec
from jaxprof.runner.interpreter import own_interpreter
from jaxprof.runner.planning import PlannedRun
from jaxprof.session.files import EXTENSION
from jaxprof.trace.sources import choose

if TYPE_CHECKING:
    from jaxprof.runner.scheduler import Scheduler
    from jaxprof.runner.session_recorder import SessionRecorder
    from jaxprof.session import Session

NOT_KNOWN_YET = "profile"
"""Device of a profile that has not been read yet."""
WINDOW = "capture window"
"""Workload name of the run that reads the profile of a capture window."""


def plan_profile(path: Path, run: str = "", host: str = "", views: Sequence[str] = ()) -> PlannedRun:
    """Plan the reading of a profile, for a Scheduler; with `views`, only the parts that these need. Raises UsageError
    and FileRefusedError if there is no such profile."""
    return PlannedRun(
        spec=RunSpec(
            target=str(path),
            workload=choose(path, run, host).run.name,
            variant="profile",
            how="imported",
            device=NOT_KNOWN_YET,
            check=False,
        ),
        profile=OpenTraceRequest(path=str(path.absolute()), profile_run=run, host=host, views=list(views)),
    )


def session_of_profile(
    path: Path,
    target: Path,
    listen: Callable[[list[Event]], None] = lambda events: None,
    begin: Callable[[Scheduler], None] = lambda scheduler: None,
    planned: PlannedRun | None = None,
) -> Session:
    """Read the profile at `path` into a session file at `target`, in a new engine. Blocks.

    `listen` is called with the engine's events, and `begin` with the scheduler before the reading begins. `planned`:
    what `plan_profile` returned for a part of it. Raises FileRefusedError if `path` is not a profile, and StorageError
    if the session cannot be written.
    """
    from jaxprof.runner.scheduler import session_of
    from jaxprof.session import LogWriter, new_header

    planned = planned or plan_profile(path)
    writer = LogWriter(new_header({}), target, replace_existing=True)
    session = session_of([planned], writer, own_interpreter(), listen, begin)
    whole = next(iter(session.runs.values()))
    if whole.status != "ok":
        raise FileRefusedError(whole.error or f"{path} could not be read", whole.hint)
    if writer.failure is not None:
        raise writer.failure
    return session


def session_name(path: Path) -> str:
    return (path.name.split(".")[0] or "profile") + EXTENSION


def open_window(session_recorder: SessionRecorder, folder: str) -> bool:
    """Block until the profile in `folder` has been read as runs of the session. Return whether it succeeded."""
    from jaxprof.runner.scheduler import Scheduler

    spec = RunSpec(workload=WINDOW, variant="profile", how="imported", device=NOT_KNOWN_YET, check=False)
    scheduler = Scheduler(session_recorder.writer, own_interpreter(), lambda batch: None, recorder=session_recorder)
    (run,) = scheduler.add([PlannedRun(spec=spec, profile=OpenTraceRequest(path=folder))])
    scheduler.run()
    return session_recorder.session.runs[run].status == "ok"
