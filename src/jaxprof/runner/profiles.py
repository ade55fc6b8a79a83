"""Read profiles with an engine: those recorded elsewhere, and those of a program's capture windows.

Reading takes numpy and no jax, so the interpreter that runs jaxprof does it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jaxprof.engine.protocol.request import OpenTraceRequest
from jaxprof.errors import FileRefusedError, JaxprofError
from jaxprof.events import RunFinished, RunPlanned, RunSpec
from jaxprof.runner.engine_process import EngineProcess
from jaxprof.runner.interpreter import own_interpreter
from jaxprof.runner.planning import PlannedRun
from jaxprof.runner.requests import run_request
from jaxprof.runner.session_recorder import BATCH_SECONDS, SessionRecorder
from jaxprof.session_names import EXTENSION
from jaxprof.trace.folders import choose

if TYPE_CHECKING:
    from jaxprof.events import Event
    from jaxprof.runner.scheduler import Scheduler
    from jaxprof.session import Session

NOT_KNOWN_YET: Final = "profile"
"""Device of a profile that has not been read yet."""
WINDOW: Final = "capture window"
"""Workload name of the run that reads the profile of a capture window."""


def plan_profile(path: Path, run: str = "", hosts: Sequence[str] = (), views: Sequence[str] = ()) -> PlannedRun:
    """Plan the reading of a profile, for a Scheduler; with `views`, only the parts that these need.

    Raises UsageError and FileRefusedError if there is no such profile.
    """
    chosen = choose(path, run, hosts)
    return PlannedRun(
        spec=RunSpec(
            target=str(path), workload=chosen.name, variant="profile", how="imported", device=NOT_KNOWN_YET, check=False
        ),
        profile=OpenTraceRequest(
            path=str(path.absolute()), profile_run=run and chosen.name, hosts=list(hosts), views=list(views)
        ),
    )


def session_of_profile(
    path: Path,
    target: Path,
    listen: Callable[[list[Event]], None] = lambda events: None,
    begin: Callable[[Scheduler], None] = lambda scheduler: None,
) -> Session:
    """Read the profile at `path` into a session file at `target`, in a new engine. Blocks.

    `listen` is called with the engine's events, and `begin` with the scheduler before the reading begins. Raises
    FileRefusedError if `path` is not a profile, and StorageError if the session cannot be written.
    """
    from jaxprof.runner.scheduler import session_of
    from jaxprof.session.log import LogWriter, new_header

    planned = plan_profile(path)
    writer = LogWriter(new_header({}), target)
    session = session_of([planned], writer, own_interpreter(), listen, begin)
    whole = next(iter(session.runs.values()))
    if whole.status != "ok":
        raise FileRefusedError(whole.error or f"{path} could not be read", whole.advice)
    if writer.failure is not None:
        raise writer.failure
    return session


def session_name(path: Path) -> str:
    """Return the name of the session made from the profile at `path`."""
    return (path.name.split(".")[0] or "profile") + EXTENSION


def open_window(session_recorder: SessionRecorder, folder: str) -> bool:
    """Block until the profile in `folder` has been read; its programs are then runs of the session. Return whether it
    succeeded."""
    run = session_recorder.new_id()
    made: dict[str, str] = {}
    session_recorder.emit(
        RunPlanned(run=run, spec=RunSpec(workload=WINDOW, variant="profile", how="imported", device=NOT_KNOWN_YET))
    )
    try:
        finished = _follow(session_recorder, run, made, folder)
    except JaxprofError as error:
        finished = RunFinished(status="failed", error=error.what, advice=error.hint)
    session_recorder.close_runs([*made.values(), run], finished)
    session_recorder.flush()
    return finished.status == "ok"


def _follow(session_recorder: SessionRecorder, run: str, made: dict[str, str], folder: str) -> RunFinished:
    planned = plan_profile(Path(folder))
    process = EngineProcess(own_interpreter())
    try:
        process.send(run_request(run, planned, planned.spec.device))
        while True:
            events = process.read(BATCH_SECONDS)
            for event in events:
                if isinstance(event, RunFinished) and event.run in ("", run):
                    return event
                # the engine knows the device, and a folder's name
                if isinstance(event, RunPlanned) and event.run in ("", run):
                    event = replace(event, spec=replace(event.spec, workload=WINDOW))
                session_recorder.take(event, run, made)
            session_recorder.flush_when_due()
            if process.over:
                ended = process.explain()
                return RunFinished(status="crashed", error=ended.what, advice=ended.advice)
    finally:
        process.close()
