"""Names for the kernels of a GPU run whose capture has none: a second child, with command buffers off.

XLA runs most of a program on a GPU as command buffers (CUDA graphs), in which a profiler sees kernels without the HLO
op that they belong to. The headline stays what it is by default; this capture says which op took which share. Whether
it is needed, and how the two compare, are pure functions over the events of the two captures; `capture` takes it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from jaxprof.engine.request import RunRequest
from jaxprof.errors import JaxprofError
from jaxprof.events import (
    CaptureTaken,
    Event,
    KernelsMeasured,
    PhaseEnded,
    PhaseStarted,
    RunFinished,
    TrustReported,
)
from jaxprof.units import percent, seconds
from jaxprof.worker.journal import BATCH_SECONDS
from jaxprof.worker.process import EngineProcess

if TYPE_CHECKING:
    from jaxprof.session import Run
    from jaxprof.worker.interpreter import Interpreter
    from jaxprof.worker.journal import Journal

KIND: Final = "attribution"
FLAG: Final = "--xla_gpu_enable_command_buffer="
"""With nothing after it: no operation goes into a command buffer."""
UNNAMED_SHARE: Final = 0.01
"""Of the kernels' time: less without a name is not worth a second child."""
LIMIT_SECONDS: Final = 300.0
"""After which the second child is given up."""
_GPUS: Final = ("cuda", "rocm", "gpu")
_KEPT: Final = (CaptureTaken, KernelsMeasured, TrustReported)


def is_needed(
    device: str, flags: str, capture: CaptureTaken | None, measured: KernelsMeasured | None, *, how: str = "jit"
) -> bool:
    """Whether the kernels of a run on `device`, under these `XLA_FLAGS`, lack names that a second child could give.

    `capture` and `measured` are those of the run itself. Not where nothing was captured, where command buffers were
    off already, or where the program is not compiled as a whole.
    """
    if device.partition(":")[0] not in _GPUS or how != "jit" or capture is None or not capture.events:
        return False
    if FLAG in flags.split() or measured is None:
        return False
    named, unnamed = named_seconds(measured), unnamed_seconds(measured)
    return named <= 0 or unnamed / (named + unnamed) > UNNAMED_SHARE


def named_seconds(measured: KernelsMeasured) -> float:
    """Time of kernels that name their HLO op, on all devices."""
    return sum(_number(row.get("self_seconds")) for row in measured.rows)


def unnamed_seconds(measured: KernelsMeasured) -> float:
    """Time of kernels that name none, on all devices; copies are no kernels."""
    copies: dict[str, float] = {}
    for row in measured.transfers:
        device = str(row.get("device", ""))
        copies[device] = copies.get(device, 0.0) + _number(row.get("total_seconds"))
    return sum(max(0.0, time - copies.get(device, 0.0)) for device, time in measured.unattributed_seconds.items())


def comparison(default: KernelsMeasured | None, named: KernelsMeasured | None) -> dict[str, Any] | None:
    """The row of trust that holds the two captures against each other, a call each; None where one is not there."""
    if default is None or named is None or not default.calls or not named.calls:
        return None
    before = (named_seconds(default) + unnamed_seconds(default)) / default.calls
    after = (named_seconds(named) + unnamed_seconds(named)) / named.calls
    if before <= 0 or after <= 0:
        took = f"{seconds(after or None)} a call without command buffers, {seconds(before or None)} with them"
        message = f"the two captures cannot be compared: kernels took {took}"
        return {"code": "attribution", "verdict": "unknown", "message": message, "advice": ""}
    apart = after / before - 1
    return {
        "code": "attribution",
        "verdict": "good" if abs(apart) <= 0.1 else "doubt",
        "message": f"kernels took {seconds(after)} a call in the capture that names them, without command buffers, and "
        f"{seconds(before)} in the default's: {percent(abs(apart))} {'more' if apart > 0 else 'less'}",
        "advice": "Take shares from the former, and times of the whole from the latter." if abs(apart) > 0.1 else "",
    }


def environment(placed: Mapping[str, str]) -> dict[str, str]:
    """The environment of the second child: that of the first, with the flag at the end of `XLA_FLAGS`."""
    return {**placed, "XLA_FLAGS": f"{xla_flags(placed)} {FLAG}".strip()}


def xla_flags(placed: Mapping[str, str]) -> str:
    """The `XLA_FLAGS` that a child with this environment has."""
    return placed.get("XLA_FLAGS", os.environ.get("XLA_FLAGS", ""))


def request(of: RunRequest) -> RunRequest:
    """What the second child is asked for: the capture alone."""
    return replace(of, attribution=True, check=False, keep_trace="")


def follow(process: EngineProcess, asked: RunRequest, poll_seconds: float) -> Iterator[Event]:
    """The events of the second child's capture, as they come; at the end why there is none, if it failed.

    Everything else that the child says is of a run that is measured already, and is left out.
    """
    process.send(asked)
    deadline = time.monotonic() + LIMIT_SECONDS
    while True:
        items = process.read(poll_seconds)
        for item in items:
            if isinstance(item, _KEPT) and item.kind == KIND:
                yield replace(item, run=asked.run)
            elif isinstance(item, RunFinished):
                if item.status != "ok":
                    yield untaken(asked.run, item.error or item.status)
                return
        if not items and not process.alive:
            yield untaken(asked.run, "cancelled" if process.cancelled else process.explain().what)
            return
        if time.monotonic() > deadline and not process.cancelled:
            process.cancel()


def capture(
    journal: Journal,
    known: Run,
    asked: RunRequest,
    interpreter: Interpreter,
    placed: Mapping[str, str],
    hold: Callable[[EngineProcess | None], object],
) -> None:
    """Takes the second capture of the run `known`, as a phase of it; why there is none is told in its place.

    `asked` and `placed` are the request and the environment of the first child; `hold` is told of the child that goes
    on, so that it can be cancelled, and of its end.
    """
    began = time.monotonic()
    journal.emit(PhaseStarted(run=asked.run, phase="capture_attribution"))
    try:
        process = EngineProcess(interpreter, environment(placed))
    except JaxprofError as error:
        journal.emit(untaken(asked.run, error.what))
        return
    hold(process)
    kernels = known.measured.get("run")
    try:
        for event in follow(process, request(asked), BATCH_SECONDS):
            compared = comparison(kernels, known.measured.get(KIND))
            if isinstance(event, TrustReported) and compared is not None:
                event = replace(event, rows=[*event.rows, compared])
            journal.emit(event)
            journal.flush_when_due()
    except JaxprofError as error:
        journal.emit(untaken(asked.run, error.what))
    finally:
        hold(None)
        process.close()
        took = time.monotonic() - began
        journal.emit(PhaseEnded(run=asked.run, phase="capture_attribution", seconds=took))


def untaken(run: str, why: str) -> TrustReported:
    """That the names could not be had."""
    row = {"code": "not_captured", "verdict": "unknown", "message": f"not captured: {why}", "advice": ""}
    return TrustReported(run=run, kind=KIND, rows=[row])


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
