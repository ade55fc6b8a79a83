"""The engine's main loop: takes requests from the control pipe, answers on the event pipe, ends when it is closed.

Three threads serve it. The main one makes the timed calls, near the bottom of its stack (`measure.sampling.Execute`
says why); another reads requests; a third, the worker, does everything else. It never prints. The process ends here,
when the control pipe is closed, and in `Keeper`, when a native call holds the run past its hard cap.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from jaxprof.engine.channel import HEARTBEAT_SECONDS, ControlReader, EventPipe
from jaxprof.engine.request import Answer, CompileRequest, DescribeRequest, DevicesRequest, OpenTraceRequest, RunRequest
from jaxprof.errors import JaxprofError
from jaxprof.events import Event, Heartbeat, RunFinished
from jaxprof.measure.control import RunControl

Result = TypeVar("Result")
END_GRACE_SECONDS = 0.5
"""How long a run may take to stop by itself after the client has gone."""
CAP_GRACE_SECONDS = 2.0
"""How far a single call may run over the hard cap before the process is ended."""


class Keeper(threading.Thread):
    """Says each second that the process is alive, and keeps the hard cap when a call does not come back."""

    def __init__(self, pipe: EventPipe) -> None:
        super().__init__(name="jaxprof-keeper", daemon=True)
        self._pipe = pipe
        self.current: tuple[RunRequest, RunControl] | None = None
        """The run that goes on."""

    def run(self) -> None:
        """For as long as the process lives."""
        while True:
            time.sleep(HEARTBEAT_SECONDS)
            self._pipe.send(Heartbeat())
            current = self.current
            remaining = current[1].remaining_seconds() if current else None
            if current and remaining is not None and remaining < -CAP_GRACE_SECONDS:
                self._end(current[0])

    def _end(self, request: RunRequest) -> None:
        limit = f"{request.max_seconds:g} s" if request.max_seconds is not None else "its cap"
        self._pipe.send(
            RunFinished(
                status="failed",
                error=f"stopped: a single step of the run went on past the hard cap of {limit}",
                advice="Choose a smaller size, or a larger --max-seconds.",
            ),
            run=request.run,
        )
        os._exit(0)


class MainThread:
    """Runs for other threads what is to run on the main one: timed calls, and the import of a user's module."""

    def __init__(self) -> None:
        self._work: SimpleQueue[tuple[Callable[[], Any], SimpleQueue[tuple[Any, BaseException | None]]] | None]
        self._work = SimpleQueue()

    def __call__(self, work: Callable[[], Result], /) -> Result:
        """Called in another thread: the result of `work`, or what it raised."""
        outcome: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self._work.put((work, outcome))
        result, error = outcome.get()
        if error is not None:
            raise error
        value: Result = result
        return value

    def stop(self) -> None:
        """Lets `serve` return."""
        self._work.put(None)

    def serve(self) -> None:
        """Called in the main thread: works until `stop`."""
        while (item := self._work.get()) is not None:
            work, outcome = item
            try:
                outcome.put((work(), None))
            except BaseException as error:  # noqa: BLE001 - it is raised where the work came from
                outcome.put((None, error))


class Engine:
    """One process's work. `serve` returns when the client has closed the control pipe."""

    def __init__(self, events: int, control: int) -> None:
        self._pipe = EventPipe(events)
        self._reader = ControlReader(control, self._cancel, self._end)
        self._keeper = Keeper(self._pipe)
        self._control = RunControl()
        self.main_thread = MainThread()

    def serve(self, *, import_jax: bool) -> None:
        """Works requests until the end. In a thread of its own."""
        try:
            self._serve(import_jax=import_jax)
        finally:
            self.main_thread.stop()

    def _serve(self, *, import_jax: bool) -> None:
        self._reader.start()
        self._keeper.start()
        if import_jax:
            from jaxprof.measure.startup import import_ahead

            import_ahead()
        while (request := self._reader.requests.get()) is not None:
            if isinstance(request, RunRequest):
                self._run(request)
            elif isinstance(request, CompileRequest):
                self._compile(request)
            elif isinstance(request, OpenTraceRequest):
                self._open_trace(request)
            elif isinstance(request, ValueError):
                self._pipe.answer(Answer(error=str(request), advice="The client and the engine are of two versions."))
            elif isinstance(request, DescribeRequest):
                self._reply(partial(_describe, request))
            elif isinstance(request, DevicesRequest):
                self._reply(_devices)

    def _run(self, request: RunRequest) -> None:
        from jaxprof.measure import measure_request

        self._keeper.current = (request, self._control)
        try:
            measure_request(request, self._emitter(request.run), self._control, self.main_thread)
        finally:
            self._keeper.current = None
            self._control = RunControl()

    def _compile(self, request: CompileRequest) -> None:
        from jaxprof.measure.elsewhere import compile_request

        compile_request(request, self._emitter(request.run), self._control)
        self._control = RunControl()

    def _open_trace(self, request: OpenTraceRequest) -> None:
        from jaxprof.engine.opening import open_trace

        open_trace(request, self._emitter(request.run), self._control)
        self._control = RunControl()

    def _emitter(self, run: str) -> Callable[[Event], None]:
        return lambda event: self._pipe.send(event, run)

    def _reply(self, work: Callable[[], object]) -> None:
        """Sends what `work` gives, or the error that it raised: user code is imported in there."""
        from jaxprof.measure.failure import explain

        try:
            answer = Answer(data=self.main_thread(work))
        except JaxprofError as error:
            answer = Answer(error=error.what, advice=error.mend)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the user's module raises is the answer
            failure = explain(error)
            answer = Answer(error=failure.error, advice=failure.advice)
        self._pipe.answer(answer)

    def _cancel(self) -> None:
        self._control.cancel()

    def _end(self) -> None:
        """The client has gone: stop what runs, and if that does not end the process, end it."""
        self._control.cancel()
        timer = threading.Timer(END_GRACE_SECONDS, os._exit, (0,))
        timer.daemon = True
        timer.start()
        # The kernel's own timer as well: native code may hold the interpreter's lock for as long as it likes.
        signal.setitimer(signal.ITIMER_REAL, 2 * END_GRACE_SECONDS)


def _describe(request: DescribeRequest) -> object:
    from jaxprof.workloads.find import find_all
    from jaxprof.workloads.model import card

    found = [workload for target in request.targets for workload in find_all(target, request.arguments)]
    return [asdict(card(workload)) for workload in found]


def _devices() -> object:
    from jaxprof.measure.devices import list_devices

    return list_devices()


def main(arguments: Sequence[str]) -> None:
    """The process, from its arguments to its end."""
    parser = argparse.ArgumentParser(prog="jaxprof-engine")
    parser.add_argument("--events-fd", type=int, required=True)
    parser.add_argument("--control-fd", type=int, required=True)
    parser.add_argument("--import-jax", action="store_true")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a ctrl+c at the terminal is the client's to answer
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    engine = Engine(options.events_fd, options.control_fd)
    worker = threading.Thread(target=partial(engine.serve, import_jax=options.import_jax), name="jaxprof-worker")
    worker.start()
    engine.main_thread.serve()
    worker.join()
    sys.stdout.flush()
    sys.stderr.flush()
