"""A scheduler whose engines follow a script, what it passed on and what it wrote; runs and sides to plan with it."""

import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from folding import fold
from jaxprof import events as e
from jaxprof.runner import engine_process
from jaxprof.runner.interpreter import Interpreter
from jaxprof.runner.planning import PlannedRun
from jaxprof.runner.scheduler import Scheduler
from jaxprof.runner.sides import ComparedSide
from jaxprof.session import LogWriter, Session, load, new_header
from jaxprof.workloads import load_built_in
from jaxprof.workloads.model import workload_info
from waiting import until

HERE = Interpreter(sys.executable, "0.10.2")
SELU = workload_info(load_built_in("selu"), sources=False)
SECONDS = 20.0


def plan(workload: str = "selu", *, baseline: PlannedRun | None = None, **more: Any) -> PlannedRun:
    given = {"variant": "jit", "how": "jit", "device": "cpu:0", "parameters": {"n": 3}, "preset": "quick", **more}
    return PlannedRun(spec=e.RunSpec(target=workload, workload=workload, **given), baseline=baseline)


def side(label: str, **fields: Any) -> ComparedSide:
    given = {"interpreter": HERE, "workload": SELU, **fields}
    return ComparedSide(label=label, title=label, **given)


class Stage:
    """Starts what is planned in processes of `script`."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, script: str, interpreter: Interpreter = HERE
    ) -> None:
        self.folder = folder
        self.batches: list[list[e.Event]] = []
        """What the scheduler passed on, in pieces."""
        engine = folder / "engine.py"
        engine.write_text(script)
        monkeypatch.setattr(engine_process, "ENGINE", engine)
        self.path = folder / "s.jaxprof"
        self.scheduler = Scheduler(LogWriter(new_header(), self.path), interpreter, self.batches.append)

    @property
    def told(self) -> Session:
        """The session as far as it was passed on."""
        return fold(self.scheduler.writer.header, [event for batch in self.batches for event in batch])

    def run(self, planned: Sequence[PlannedRun]) -> Session:
        """The session of these runs, as its file has it."""
        self.scheduler.add(planned)
        self.scheduler.run()
        self.scheduler.close()
        return load(self.path, Session)

    def run_until(
        self, planned: Sequence[PlannedRun], reached: Callable[[], object], then: Callable[[], object]
    ) -> None:
        """Runs in a thread; does what comes `then` once something is `reached`, and returns when all is over."""
        self.scheduler.add(planned)
        thread = threading.Thread(target=self.scheduler.run)
        thread.start()
        try:
            until(reached)
        finally:
            then()
            thread.join(SECONDS)
        assert not thread.is_alive()

    def in_phase(self, run: str, phase: str) -> bool:
        found = self.told.runs.get(run)
        return found is not None and found.current_phase == phase
