"""Run the queue: fresh engine processes measure its runs; their events are numbered, written to the log and passed on.

The scheduler draws nothing and prints nothing. `run` blocks its thread until the queue is empty; everything else may be
called from another thread. Whatever happens to a child, its run is closed in the log and the next one starts.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from jaxprof.base.errors import JaxprofError
from jaxprof.base.operating_system import can_run
from jaxprof.devices.inventory.placement import OF_A_DEVICE, WorkerEnvironment
from jaxprof.engine.protocol.request import OpenTraceRequest
from jaxprof.events import Event, RunFinished, WarningRaised, WorkerStarted
from jaxprof.events.runs import in_pieces
from jaxprof.runner import attribution
from jaxprof.runner.engine_process import MAX_SILENCE_SECONDS, EngineProcess, EngineRun
from jaxprof.runner.interpreter import Interpreter
from jaxprof.runner.planning import PlannedRun
from jaxprof.runner.repository import revisions
from jaxprof.runner.requests import environment_for, plan_event, request_for, timing_request
from jaxprof.runner.session_recorder import DeviceWatch, Listener, RecordingScheduler, SessionRecorder
from jaxprof.runner.turns import Group, Side
from jaxprof.session import LogWriter, Session


class _CancelledError(Exception):
    pass


class Scheduler(RecordingScheduler):
    """Runs a queue of planned runs. One scheduler writes one session."""

    def __init__(
        self, writer: LogWriter, interpreter: Interpreter, listen: Listener, recorder: SessionRecorder | None = None
    ) -> None:
        super().__init__(writer, interpreter, listen, recorder)
        self._placement = environment_for
        self._lock = self._session_recorder.lock
        """Guards the queue, and `_current` with the children of its sides. The thread of `run` reads and closes the
        children without the lock; others only cancel or kill them, with the lock held."""
        self.max_silence_seconds = MAX_SILENCE_SECONDS
        self._queue: deque[tuple[str, PlannedRun]] = deque()
        self._ids: dict[PlannedRun, str] = {}
        self._current: dict[str, Side] = {}
        self._batches, self._blocks = itertools.count(1), itertools.count(1)
        self._closed = False

    @property
    def busy(self) -> bool:
        with self._lock:
            return bool(self._current or self._queue)

    def add(self, planned: Sequence[PlannedRun]) -> list[str]:
        """Add a batch of runs to the queue and emit an event for each; return their ids, in the same order."""
        ids: list[str] = []
        with self._lock:
            batch = next(self._batches)
            for plan in planned:
                run = self._ids[plan] = self._session_recorder.new_id()
                self._queue.append((run, plan))
                ids.append(run)
                self._session_recorder.emit(plan_event(run, plan, self._ids, batch))
                if plan.comparison is not None:
                    self._session_recorder.emit(replace(plan.comparison, run=run))
            self._session_recorder.flush()
        return ids

    def run(self) -> None:
        while True:
            with self._lock:
                if not self._queue or self._closed:
                    self._session_recorder.flush()
                    return
                run, planned = self._queue.popleft()
                group = {run: Side(run, planned)}
                head = planned.baseline or planned
                # What is compared takes turns, so that all of it leaves the queue at once: those that follow with one
                # baseline.
                while _is_measured(planned) and self._queue:
                    run, following = self._queue[0]
                    if following.baseline is not head or not _is_measured(following):
                        break
                    self._queue.popleft()
                    group[run] = Side(run, following)
                self._current = group
            try:
                first = next(iter(self._current.values()))
                if _is_measured(first.plan):
                    sides = list(self._current.values())
                    kept_elsewhere = ((side.run, side.plan.spec.target) for side in sides if not side.plan.stays_at)
                    for revision in revisions(kept_elsewhere):
                        self._session_recorder.emit(revision)
                    Group(
                        sides,
                        self._session_recorder,
                        environment_for=self._environment_for,
                        start=self._engine_run,
                        after_first=self._after_first,
                        next_block=lambda: next(self._blocks),
                    ).measure()
                else:
                    self._run_untimed(first.run, first.plan)
            finally:
                with self._lock:
                    self._current = {}
                    self._session_recorder.flush()

    def cancel(self, run: str) -> None:
        """Cancel a waiting or running run; a second call skips the patience. Other ids are ignored."""
        with self._lock:
            side = self._current.get(run)
            if side is not None:
                side.cancelled = True
                if side.process is not None:
                    side.process.cancel()
                return
            for entry in self._queue:
                if entry[0] == run:
                    self._queue.remove(entry)
                    self._session_recorder.close_run(
                        run, RunFinished(run=run, status="cancelled", error="cancelled before it began")
                    )
                    self._session_recorder.flush()
                    return

    def cancel_all(self) -> None:
        with self._lock:
            waiting = [run for run, _ in self._queue]
            current = list(self._current)
        for run in (*waiting, *current):
            self.cancel(run)

    def close(self, reason: str = "finished") -> None:
        """End the children and close the log with its last event. Runs that wait or run are closed as cancelled."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._queue.clear()
            for side in self._current.values():
                if side.process is not None:
                    side.process.kill()
            from jaxprof.analysis.runs.ceilings import remember  # `hlo` with it: not before the first frame

            self._session_recorder.close(reason, before_the_end=remember)

    def _interpreter(self, planned: PlannedRun) -> Interpreter:
        return planned.interpreter or self.interpreter

    def _environment_for(self, planned: PlannedRun) -> WorkerEnvironment:
        placement = self._placement(planned, self._interpreter(planned))
        environment = {**placement.environment, **planned.environment}
        paths = [variables.get("PYTHONPATH") for variables in (planned.environment, placement.environment)]
        if all(paths):  # a revision's modules, and the compiler for a device that is not here
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        return replace(placement, environment=environment)

    def _engine_run(self, side: Side, placement: WorkerEnvironment, max_seconds: float | None = None) -> EngineRun:
        """Start a worker for the side's run, which `cancel` reaches from now on. `max_seconds`: its hard cap; None for
        what that of the run leaves. Raises JaxprofError."""
        process = EngineProcess(self._interpreter(side.plan), placement.environment)
        watch = DeviceWatch(side.plan.spec.device)
        self._hold(side, process)
        return EngineRun(
            side.run,
            process,
            self._session_recorder,
            watch,
            let_go=lambda: self._hold(side, None),
            placed=OF_A_DEVICE & (placement.environment.keys() - side.plan.environment.keys()),
            max_seconds=max_seconds if max_seconds is not None else side.left_seconds,
            max_silence_seconds=self.max_silence_seconds,
        )

    def _run_untimed(self, run: str, planned: PlannedRun) -> None:
        """Do a run that is not timed (a compile, a profile), from the start of its process to its last event."""
        if planned.profile is not None and not can_run():
            self._read_here(run, planned.profile)
            return
        try:
            placement = self._environment_for(planned)
            engine = self._engine_run(self._current[run], placement)
        except JaxprofError as error:
            self._session_recorder.close_run(run, RunFinished.of(error))
            return
        try:
            self._session_recorder.emit(WorkerStarted(run=run, pid=engine.process.pid, python=engine.process.python))
            for text in placement.notes:
                self._session_recorder.emit(WarningRaised(run=run, code="placement", message=text))
            engine.send(request_for(run, planned, placement.device))
            engine.record_readings()
            finished = engine.follow()
        except JaxprofError as error:
            finished = RunFinished.of(error, "crashed")
        finally:
            engine.close()
        assert isinstance(finished, RunFinished)
        self._session_recorder.close_runs([*engine.made.values(), run], finished)

    def _read_here(self, run: str, profile: OpenTraceRequest) -> None:
        """Read a profile in this thread, on a system without engines (Windows): one that does not fit into memory takes
        jaxprof down with it, and a cancelled reading ends at the next piece of the file."""
        from jaxprof.trace.imported import import_profile

        made: dict[str, str] = {}

        def take(event: Event) -> None:
            for part in in_pieces(event):
                self._session_recorder.take(part, run, made)
            self._session_recorder.flush_when_due()

        def check() -> None:
            if self._closed or self._current[run].cancelled:
                raise _CancelledError

        finished = RunFinished(status="ok")
        try:
            import_profile(
                Path(profile.path), run, take, check,
                profile_run=profile.profile_run, host=profile.host, views=profile.views,
            )  # fmt: skip
        except _CancelledError:
            finished = RunFinished(status="cancelled", error="cancelled")
        except JaxprofError as error:
            finished = RunFinished.of(error)
        except Exception as error:  # noqa: BLE001 - a damaged file can break the reader anywhere: that is the result
            finished = RunFinished(status="failed", error=f"{type(error).__name__}: {error}")
        self._session_recorder.close_runs([*made.values(), run], finished)

    def _after_first(self, side: Side) -> None:
        """Do what is due once, when the first launch of a run and of those beside it has succeeded."""
        # kernels without names are captured again, in a second child that makes them report their names
        if side.placement is not None:
            placement = side.placement
            measured, flags = self.session.runs[side.run], attribution.xla_flags(placement.environment)
            captured, kernels = measured.captures.get("run"), measured.measured.get("run")
            trust, spec = measured.trust.get("run"), side.plan.spec
            if attribution.is_needed(spec.device, flags, captured, kernels, trust=trust, how=spec.how):
                second = replace(placement, environment=attribution.environment(placement.environment))
                request = timing_request(side.run, side.plan, placement.device)
                start = partial(self._engine_run, side, second, attribution.LIMIT_SECONDS)
                attribution.capture(self._session_recorder, request, start)
        baseline = side.plan.baseline
        if baseline is not None and side.plan.keep_output and baseline.keep_output:
            from jaxprof.analysis.runs.ab import agreement, unlike_warning
            from jaxprof.findings.trials import trial_of

            is_expected = trial_of(side.plan.spec.trial).other_numbers
            kept = Path(baseline.keep_output), Path(side.plan.keep_output)
            compared = agreement(*kept, other_widths=is_expected)
            if compared is not None:
                self._session_recorder.emit(replace(compared, run=side.run))
            warning = unlike_warning(side.run, baseline.spec.side, compared)
            if warning is not None and not (is_expected and warning.code == "results_differ"):
                self._session_recorder.emit(warning)

    def _hold(self, side: Side, process: EngineProcess | None) -> None:
        """Set the child that works on a run, which is the one to cancel; None if there is none."""
        with self._lock:
            side.process = process
            if process is not None and self._closed:
                process.kill()


def session_of(
    planned: Sequence[PlannedRun],
    writer: LogWriter,
    interpreter: Interpreter,
    listen: Listener = lambda batch: None,
    begin: Callable[[Scheduler], object] = lambda scheduler: None,
) -> Session:
    """Make these runs, one after the other, and return their session. Blocks. `begin` is called with the scheduler
    before the first one."""
    scheduler = Scheduler(writer, interpreter, listen)
    try:
        scheduler.add(planned)
        begin(scheduler)
        scheduler.run()
    finally:
        scheduler.close()
    return scheduler.session


def _is_measured(planned: PlannedRun) -> bool:
    return not planned.compile_only and planned.profile is None
