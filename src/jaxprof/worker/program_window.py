"""The profile of a capture window, read by an engine beside the program, into the program's session."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from jaxprof.engine.request import Answer
from jaxprof.errors import JaxprofError
from jaxprof.events import Heartbeat, RunFinished, RunPlanned
from jaxprof.worker.journal import BATCH_SECONDS, Journal
from jaxprof.worker.opening import NOT_KNOWN_YET, own_interpreter, plan_profile
from jaxprof.worker.process import EngineProcess
from jaxprof.worker.requests import run_request

NAME: Final = "capture window"
"""What its run is called."""


def open_window(journal: Journal, folder: str) -> bool:
    """Blocks until the profile in `folder` is read: its programs are runs of the session then. Whether it went well."""
    run = journal.new_id()
    made: dict[str, str] = {}
    journal.emit(RunPlanned(run=run, workload=NAME, variant="profile", how="imported", device=NOT_KNOWN_YET))
    try:
        finished = _follow(journal, run, made, folder)
    except JaxprofError as error:
        finished = RunFinished(status="failed", error=error.what, advice=error.mend)
    for other in [*made.values(), run]:
        if journal.session.runs[other].closed is None:
            journal.close_run(other, finished)
    journal.flush()
    return finished.status == "ok"


def _follow(journal: Journal, run: str, made: dict[str, str], folder: str) -> RunFinished:
    planned = plan_profile(Path(folder))
    process = EngineProcess(own_interpreter())
    try:
        process.send(run_request(run, planned, planned.device, None))
        while True:
            items = process.read(BATCH_SECONDS)
            for item in items:
                if isinstance(item, RunFinished) and item.run in ("", run):
                    return item
                if isinstance(item, RunPlanned) and item.run in ("", run):  # it knows the device, and a folder's name
                    item = replace(item, workload=NAME)
                if not isinstance(item, Answer | Heartbeat):
                    journal.take(item, run, made)
            journal.flush_when_due()
            if not items and not process.alive:
                ended = process.explain()
                return RunFinished(status="crashed", error=ended.what, advice=ended.advice)
    finally:
        process.close()
