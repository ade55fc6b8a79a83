"""Name the kernels of a GPU run whose capture has no names, with a second child and command buffers off.

XLA runs most of a program on a GPU as command buffers (CUDA graphs), in which a profiler sees kernels without the HLO
op that they belong to. The headline stays the default run's; this capture shows each op's share. Whether it is needed,
and how the two compare, are pure functions over the events of the two captures; `capture` takes it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from jaxprof.analysis.kernels.measured import seconds_without_op
from jaxprof.base.errors import JaxprofError
from jaxprof.base.units import percent, seconds
from jaxprof.engine.protocol.request import RunRequest
from jaxprof.events import (
    CaptureTaken,
    KernelsMeasured,
    PhaseEnded,
    PhaseStarted,
    RunFinished,
    TrustCheck,
    TrustReported,
)
from jaxprof.trace.checks import TRUST

if TYPE_CHECKING:
    from jaxprof.runner.engine_process import EngineRun
    from jaxprof.runner.session_recorder import SessionRecorder

KIND = "attribution"
FLAG = "--xla_gpu_enable_command_buffer="
"""Flag with an empty list, so that no operation goes into a command buffer."""
LIMIT_SECONDS = 300.0
"""The second child is cancelled after this long."""
_KEPT = (CaptureTaken, KernelsMeasured, TrustReported)


def is_needed(
    device: str,
    flags: str,
    capture: CaptureTaken | None,
    measured: KernelsMeasured | None,
    *,
    trust: TrustReported | None = None,
    how: str = "jit",
) -> bool:
    """Return whether the kernels of a run on `device`, under these `XLA_FLAGS`, lack names that a second child could
    provide.

    `capture`, `measured` and `trust` are those of the run itself. Kernels of CUDA graphs have only their own names,
    so only `trust` knows which of them have no op. False if nothing was captured, if command buffers were off
    already, or if the program is not compiled as a whole.
    """
    if device.partition(":")[0] not in ("cuda", "rocm", "gpu") or how != "jit" or capture is None or not capture.events:
        return False
    if FLAG in flags.split() or measured is None:
        return False
    if trust is not None and any(row.code == "unmatched" and row.verdict != "good" for row in trust.rows):
        return True
    named, unnamed = _named_and_unnamed(measured)
    # Less time without a name is not worth a second child.
    return named <= 0 or unnamed / (named + unnamed) > 0.01


def _named_and_unnamed(measured: KernelsMeasured) -> tuple[float, float]:
    """Return the time of the kernels that name their HLO op, and of those that name none, on all devices."""
    named = sum(row.self_seconds for row in measured.rows)
    return named, seconds_without_op(measured.transfers, measured.unattributed_seconds)


def comparison(default: KernelsMeasured | None, named: KernelsMeasured | None) -> TrustCheck | None:
    """Return the row of trust that compares the two captures, a call each; None if one of them is missing."""
    if default is None or named is None or not default.calls or not named.calls:
        return None
    before = sum(_named_and_unnamed(default)) / default.calls
    after = sum(_named_and_unnamed(named)) / named.calls
    if before <= 0 or after <= 0:
        took = f"{seconds(after or None)} a call without command buffers, {seconds(before or None)} with them"
        message = f"the two captures cannot be compared: kernels took {took}"
        return TrustCheck(code="attribution", verdict="unknown", message=message)
    apart = after / before - 1
    return TrustCheck(
        code="attribution",
        verdict="good" if abs(apart) <= 0.1 else "doubt",
        message=f"kernels took {seconds(after)} a call in the capture that names them, without command buffers, and "
        f"{seconds(before)} in the default's: {percent(abs(apart))} {'more' if apart > 0 else 'less'}",
        advice=TRUST["attribution"][1] if abs(apart) > 0.1 else "",
    )


def environment(placed: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the second child: the first one's, with the flag at the end of `XLA_FLAGS`."""
    return {**placed, "XLA_FLAGS": f"{xla_flags(placed)} {FLAG}".strip()}


def xla_flags(placed: Mapping[str, str]) -> str:
    return placed.get("XLA_FLAGS", os.environ.get("XLA_FLAGS", ""))


def capture(session_recorder: SessionRecorder, asked: RunRequest, start: Callable[[], EngineRun]) -> None:
    """Take the second capture of a run, as one of its phases; if it fails, report why instead. `asked`: the request to
    the first child. `start` starts the second one. All that it reports besides the capture belongs to a run that is
    measured already, and is left out."""
    began = time.monotonic()
    session_recorder.emit(PhaseStarted(run=asked.run, phase="capture_attribution"))
    try:
        engine = start()
    except JaxprofError as error:
        session_recorder.emit(untaken(asked.run, error.what))
        return
    engine.keep = lambda event: isinstance(event, _KEPT) and event.kind == KIND
    try:
        engine.send(replace(asked, spec=replace(asked.spec, check=False), attribution=True))
        ended = engine.follow()
    finally:
        engine.close()
    assert isinstance(ended, RunFinished)
    measured = session_recorder.session.runs[asked.run]
    compared = comparison(measured.measured.get("run"), measured.measured.get(KIND))
    trust = measured.trust.get(KIND)
    if ended.status != "ok":
        session_recorder.emit(untaken(asked.run, ended.error or ended.status))
    elif compared is not None and trust is not None:
        session_recorder.emit(replace(trust, seq=0, monotonic_seconds=0.0, rows=[*trust.rows, compared]))
    took = time.monotonic() - began
    session_recorder.emit(PhaseEnded(run=asked.run, phase="capture_attribution", seconds=took))


def untaken(run: str, why: str) -> TrustReported:
    row = TrustCheck(code="not_captured", message=f"not captured: {why}")
    return TrustReported(run=run, kind=KIND, rows=[row])
