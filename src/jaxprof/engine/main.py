"""The engine's main loop: takes requests from the control pipe, answers on the event pipe, ends when the control pipe
is closed.

Four threads share the work. The main thread makes the timed calls, near the bottom of its stack
(`measure.sampling.Execute` says why). The worker serves the requests in order and runs everything else. Another thread
reads the requests, and cancels, and another one sends heartbeats. Only `EventPipe` is shared by all, and has the only
lock. The process never prints. It ends when the control pipe is closed; the client ends it where a call exceeds the
hard cap.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from jaxprof.base.errors import DoesNotFitError
from jaxprof.base.files import write_all
from jaxprof.engine.measure.control import Reporter, RunControl
from jaxprof.engine.measure.failure import conclude, failure_of
from jaxprof.engine.protocol.request import (
    CancelRequest,
    CompileRequest,
    DescribeRequest,
    DevicesRequest,
    EmptyCallRequest,
    EngineAnswer,
    InputsRequest,
    OpenTraceRequest,
    Request,
    RunRequest,
    TurnRequest,
    TurnsOverRequest,
    decode_request,
)
from jaxprof.events import Event, Heartbeat, encode
from jaxprof.events.base import encode_bounded
from jaxprof.events.runs import in_pieces

HEARTBEAT_SECONDS = 1.0
END_GRACE_SECONDS = 0.5
"""How long a run may take to stop by itself after the client has gone."""


class EventPipe:
    """Writes events as lines. Lines of several threads never mix; a forked child writes nothing.

    If the reader has gone, nothing is written any more. The reader also closes the control pipe, which ends the
    process.
    """

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._broken = False

    def send(self, event: Event, run: str = "") -> None:
        """Write `event` with the current time, and with `run` if it names none."""
        if run and not event.run:
            event = replace(event, run=run)
        for part in in_pieces(replace(event, monotonic_seconds=time.monotonic())):
            self._write(encode(part))

    def answer(self, answer: EngineAnswer) -> None:
        self._write(encode_bounded({"type": "answer", **asdict(answer)}))

    def _write(self, line: bytes) -> None:
        if os.getpid() != self._owner:  # checked before the lock: a fork may have copied the lock while it was held
            return
        with self._lock:
            if not self._broken:
                try:
                    write_all(self._descriptor, line + b"\n")
                except OSError:
                    self._broken = True


class MainThread:
    """Runs work of other threads that belongs on the main one: timed calls, and the import of a user's module."""

    def __init__(self) -> None:
        self._work: SimpleQueue[tuple[Callable[[], Any], SimpleQueue[tuple[Any, BaseException | None]]] | None]
        self._work = SimpleQueue()

    def __call__(self, work: Callable[[], Any]) -> Any:
        """Return the result of `work`, or raise what it raised; for calls from another thread."""
        outcome: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self._work.put((work, outcome))
        result, error = outcome.get()
        if error is not None:
            raise error
        return result

    def stop(self) -> None:
        self._work.put(None)

    def serve(self) -> None:
        """Work until `stop`; for a call from the main thread."""
        while (item := self._work.get()) is not None:
            work, outcome = item
            try:
                outcome.put((work(), None))
            except BaseException as error:  # noqa: BLE001 - it is raised again in the thread that sent the work
                outcome.put((None, error))


class Engine:
    """The work of one process. `serve` returns when the client has closed the control pipe."""

    def __init__(self, events: int, control: int) -> None:
        os.set_inheritable(control, False)
        self._pipe, self._orders = EventPipe(events), os.fdopen(control, "rb")
        self._requests: SimpleQueue[Request | ValueError | None] = SimpleQueue()
        """Requests in order; for a line that is not a request, its error; None at the end."""
        self._control = RunControl()
        self._working_on = "start"
        """Run of the current request, or its kind; empty if there is no request."""
        self.main_thread = MainThread()

    def serve(self) -> None:
        """Serve requests until the end, in a thread of its own."""
        try:
            for name, work in (("control", self._read_orders), ("keeper", self._send_heartbeats)):
                threading.Thread(target=work, name=f"jaxprof-{name}", daemon=True).start()
            while (request := self._requests.get()) is not None:
                self._working_on = getattr(request, "run", "") or type(request).__name__
                if isinstance(request, RunRequest | CompileRequest | OpenTraceRequest):
                    self._serve_run(request)
                elif isinstance(request, ValueError):
                    self._pipe.answer(
                        EngineAnswer(error=str(request), hint="The client and the engine have different versions.")
                    )
                elif isinstance(request, DescribeRequest | InputsRequest | DevicesRequest | EmptyCallRequest):
                    try:
                        answer = EngineAnswer(data=self.main_thread(partial(answer_of, request)))
                    except BaseException as error:  # noqa: BLE001 - whatever the user's module raises is the answer
                        failure = failure_of(error)
                        answer = EngineAnswer(error=failure.error, hint=failure.advice)
                    self._pipe.answer(answer)
                self._working_on = ""
        finally:
            self.main_thread.stop()

    def _serve_run(self, request: RunRequest | CompileRequest | OpenTraceRequest) -> None:
        """Emit the events of a run, up to its last one. What it needs is imported first now."""

        def emit(event: Event) -> None:
            self._pipe.send(event, request.run)

        if isinstance(request, RunRequest):
            from jaxprof.engine.measure.run import measure_request

            measure_request(request, emit, self._control, self.main_thread)
        elif isinstance(request, CompileRequest):
            from jaxprof.engine.measure.ahead_of_time import compile_request

            compile_request(request, emit, self._control)
        else:
            # Threads of NumPy's BLAS would spin for 50 ms at their start, and nothing is multiplied in this process.
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
            open_trace(request, emit, self._control)
        self._control = RunControl()

    def _read_orders(self) -> None:
        """Read requests until the client closes the pipe, which is the order to end."""
        for line in self._orders:
            try:
                request = decode_request(line)
            except ValueError as error:
                self._requests.put(error)
                continue
            if isinstance(request, CancelRequest):
                self._control.cancel()
            elif isinstance(request, TurnRequest | TurnsOverRequest):
                self._control.give_turn(request if isinstance(request, TurnRequest) else None)
            else:
                self._requests.put(request)
        # The client has gone: the current run stops, and the process ends even if it does not end by itself.
        self._control.cancel()
        timer = threading.Timer(END_GRACE_SECONDS, os._exit, (0,))
        timer.daemon = True
        timer.start()
        # The kernel's own timer as well, because native code may hold the interpreter's lock indefinitely.
        signal.setitimer(signal.ITIMER_REAL, 2 * END_GRACE_SECONDS)
        self._requests.put(None)

    def _send_heartbeats(self) -> None:
        while True:
            time.sleep(HEARTBEAT_SECONDS)
            self._pipe.send(Heartbeat(run="" if self._control.waits_for_turn else self._working_on))


def open_trace(request: OpenTraceRequest, emit: Callable[[Event], None], control: RunControl) -> None:
    """Emit the runs of the profile and `RunFinished`. Raises nothing."""
    from jaxprof.trace.imported import import_profile

    def work() -> None:
        try:
            import_profile(
                Path(request.path),
                request.run,
                emit,
                control.check,
                profile_run=request.profile_run,
                host=request.host,
                views=request.views,
            )
        except MemoryError:
            what = f"{request.path} does not fit into this machine's memory"
            raise DoesNotFitError(what, "Record fewer steps.") from None

    conclude(Reporter(emit, control), work)


def answer_of(request: DescribeRequest | InputsRequest | DevicesRequest | EmptyCallRequest) -> object:
    """Return the data that a request is for. What it needs is imported first now."""
    if isinstance(request, DescribeRequest):
        from jaxprof.workloads.find import find_all
        from jaxprof.workloads.model import workload_info

        found = (find_all(target, request.arguments, request.inputs_from) for target in request.targets)
        return [asdict(workload_info(workload)) for workloads in found for workload in workloads]
    if isinstance(request, InputsRequest):
        from jaxprof.engine.measure.kept_arrays import describe
        from jaxprof.engine.measure.run import inputs_of

        return describe(inputs_of(request.spec))
    if isinstance(request, DevicesRequest):
        from jaxprof.engine.measure.jax_devices import list_devices

        return list_devices()
    from jaxprof.engine.measure.startup import empty_call_seconds

    return empty_call_seconds(request.arrays, request.numbers)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="jaxprof-engine")
    parser.add_argument("--events-fd", type=int, required=True)
    parser.add_argument("--control-fd", type=int, required=True)
    options = parser.parse_args(arguments)
    sys.argv = [""]  # our arguments do not concern the user's functions, which may read them
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the client handles a ctrl+c at the terminal
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    engine = Engine(options.events_fd, options.control_fd)
    worker = threading.Thread(target=engine.serve, name="jaxprof-worker")
    worker.start()
    engine.main_thread.serve()
    worker.join()
    sys.stdout.flush()
    sys.stderr.flush()
