"""Import a profile from elsewhere as the runs of a session: one for the whole profile, and one for each program that
ran.

The run of the whole profile has the capture, the steps, the timeline, the trust checks, and the times of ops outside
any program's run. A program's run has its HLO and the times of its ops, so every view of a measured run works on it as
well. Runs that are made here are named `program:N`; the client gives them their ids.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from jaxprof.base.grouping import grouped
from jaxprof.base.units import and_more, bytes_, counted
from jaxprof.base.values import frozen
from jaxprof.events import (
    CaptureTaken,
    EnvironmentRead,
    Event,
    KernelsMeasured,
    KernelTimes,
    ProgressMade,
    RunFinished,
    RunPlanned,
    RunSpec,
    StepsMeasured,
    TextRecorded,
    WarningRaised,
)
from jaxprof.trace.buffers import buffers_in
from jaxprof.trace.checks import INCOMPLETE, TRUST
from jaxprof.trace.executions import executions_on
from jaxprof.trace.model import Program, Trace, program_proto
from jaxprof.trace.sources import choose, read_file
from jaxprof.trace.summary import TIMELINE, VIEWS, events_of, op_times, text_of
from jaxprof.trace.trust import unread_text

KIND = "imported"
VARIANT = "profile"
_WITH_HLO = {"kernels", "memory", TIMELINE}
"""Views that need the HLO of the programs."""
PROGRAMS_KEPT = 64
"""Most programs that get a run of their own, the longest first; a session of eager ops can have thousands."""


@frozen
class _Program:
    """A program that ran, with its own rows of the op table."""

    name: Program
    rows: list[KernelTimes]

    @property
    def seconds(self) -> float:
        return sum(row.self_seconds for row in self.rows)

    @property
    def devices(self) -> list[str]:
        return sorted({row.device for row in self.rows})


def import_profile(
    path: Path,
    run: str,
    emit: Callable[[Event], None],
    check: Callable[[], None] = lambda: None,
    *,
    profile_run: str = "",
    host: str = "",
    views: Collection[str] = (),
) -> None:
    """Read the chosen recording at `path` and emit it as runs. The run of the whole profile has the id `run` and is not
    ended here.

    `views`, a selection of `summary.VIEWS`, says what is derived; by default everything. `check` is called regularly,
    and raises to stop the work. Raises FileRefusedError and UsageError.
    """
    wanted = frozenset(views or VIEWS)
    progress = _Progress(emit, check)
    chosen = choose(path, profile_run, host)
    progress.stage(f"reading {chosen.path.name}", 0.0, 0.3, size=chosen.bytes)
    whole = bool(wanted & {"steps", "trust", "compile", TIMELINE})
    trace = read_file(chosen.path, progress.advance, whole=whole)
    if whole:
        progress.stage(f"{len(trace.ready)} device lanes; reading the host's threads", 0.3, 0.5)
        trace.read_rest(progress.advance)
    ops, devices = len(trace.ops), len({lane.device for lane in trace.op_lanes()})
    progress.stage(f"{ops} ops on {counted(devices, 'device')}: adding up times", 0.5, 0.6)
    table = op_times(trace)
    by_program = grouped(((row.module, None if row.program is None else int(row.program)), row) for row in table)
    programs = [_Program(name, rows) for name, rows in by_program.items()]
    programs.sort(key=lambda program: -program.seconds)
    own, rest = programs[:PROGRAMS_KEPT], programs[PROGRAMS_KEPT:]
    # Planned again, now that the devices of the whole profile are known.
    emit(_plan(run, chosen.run.name, sorted({row.device for row in table})))
    emit(_environment(trace))
    if others := sorted(chosen.run.files.keys() - {chosen.host}):
        message = f"this is the profile of {chosen.host}; the recording also has {and_more(others, 5)}"
        emit(WarningRaised(code="other_hosts", message=message, advice="--host NAME opens another one."))
    if trace.problems:
        read = f"{counted(ops, 'op')} on {counted(devices, 'device')} could" if ops else "no op of a device could"
        emit(WarningRaised(code=INCOMPLETE, message=f"{unread_text(trace)}; {read} be read", advice=TRUST["file"][1]))
    rows = [row for program in rest for row in program.rows]
    for event in events_of(trace, KIND, path=str(path), table=rows, views=wanted):
        check()
        emit(replace(event, run=run))
        if isinstance(event, StepsMeasured):
            progress.stage(f"{len(event.steps)} steps, {trace.read} events: the timeline", 0.6, 0.7)
    if rest:
        emit(
            WarningRaised(
                code="many_programs",
                message=f"{len(programs)} programs ran: the {PROGRAMS_KEPT} longest have a run of their own here",
                advice="The times of the others are shown with the whole profile.",
            )
        )
    for number, program in enumerate(own):
        words = f"the HLO of {program.name[0] or 'a program without a name'}, {number + 1} of {len(own)} programs"
        progress.stage(words, 0.7 + 0.3 * number / len(own), 1.0)
        _emit_program(trace, program, f"program:{number + 1}", str(path), emit, with_hlo=bool(wanted & _WITH_HLO))


class _Progress:
    """Current work and its progress, reported no more often than a person can read."""

    def __init__(self, emit: Callable[[Event], None], check: Callable[[], None]) -> None:
        self._emit, self._check = emit, check
        self._note, self._begin, self._end, self._size = "", 0.0, 1.0, 0
        self._reported_at = 0.0

    def stage(self, note: str, begin: float, end: float, *, size: int = 0) -> None:
        """Begin a part of the work, which covers the shares `begin` to `end` of the whole; `size` is its bytes, if
        any."""
        self._note, self._begin, self._end, self._size = note, begin, end, size
        self._report(0.0)

    def advance(self, share: float) -> None:
        """Report this share of the part as done."""
        self._check()
        if time.monotonic() - self._reported_at >= 0.1:  # seconds: no reader is faster
            self._report(share)

    def _report(self, share: float) -> None:
        self._check()
        self._reported_at = time.monotonic()
        read = f": {bytes_(round(share * self._size))} of {bytes_(self._size)}" if self._size else ""
        self._emit(ProgressMade(fraction=self._begin + (self._end - self._begin) * share, note=f"{self._note}{read}"))


def _plan(run: str, name: str, devices: list[str], program: int | None = None) -> RunPlanned:
    return RunPlanned(
        run=run,
        spec=RunSpec(
            workload=name,
            variant=VARIANT,
            how=KIND,
            device=and_more(devices, 1) if devices else "no device",
            parameters={} if program is None else {"program": str(program)},
        ),
    )


def _environment(trace: Trace) -> EnvironmentRead:
    """Return what the profile says about the process and the devices that it was recorded on."""
    from jaxprof.hlo.kernels.cost.peaks import device_of_figures

    devices: list[dict[str, Any]] = []
    for device, facts in trace.devices.items():
        known: dict[str, Any] = {"id": device, "platform": device.partition(":")[0]}
        known |= {ours: facts[theirs] for theirs, ours in _FACTS.items() if facts.get(theirs)}
        if isinstance(clock := facts.get("clock_rate"), int) and clock > 0:
            known["clock_hertz"] = clock * 1000
        if isinstance(peak := facts.get("peak_teraflops_per_second"), float) and peak > 0:
            known["flops_per_second"] = peak * 1e12
        if isinstance(peak := facts.get("peak_hbm_bw_gigabytes_per_second"), float) and peak > 0:
            known["memory_bytes_per_second"] = peak * 1e9
        if "kind" not in known:  # as in the profiles of ROCm
            numbers = [facts.get(name) for name in ("core_count", "memory_size", "memory_bandwidth", "clock_rate")]
            cores, size, bandwidth, kilohertz = (number if isinstance(number, int) else 0 for number in numbers)
            vendor = str(facts.get("device_vendor", ""))
            if peaks := device_of_figures(vendor, cores, size, bandwidth, kilohertz * 1000):
                known["kind"] = f"{peaks.title}, by its figures"
        devices.append(known)
    return EnvironmentRead(
        python="",
        numpy="",
        jax=trace.notes.get("jax_version"),
        jaxlib=trace.notes.get("jaxlib_version"),
        devices=devices,
    )


_FACTS = {
    "device_type_string": "kind",
    "gpu_device_name": "kind",
    "device_vendor": "vendor",
    "core_count": "core_count",
    "memory_size": "memory_limit_bytes",
    "memory_bandwidth": "memory_bytes_per_second",
}
"""Device properties that are kept: the profiler's names and ours."""


def _emit_program(
    trace: Trace, program: _Program, run: str, path: str, emit: Callable[[Event], None], *, with_hlo: bool
) -> None:
    module, identity = program.name
    emit(_plan(run, module or "program without a name", program.devices, identity))
    emit(replace(_environment(trace), run=run))
    text, problem = text_of(trace, program.name) if with_hlo else (None, "")
    if text is not None:
        emit(TextRecorded(run=run, name="hlo", text=text))
        held = program_proto(trace, *program.name)
        buffers = buffers_in(held.proto, text) if held is not None else None
        if buffers is not None:
            emit(replace(buffers, run=run))
    elif with_hlo:
        emit(WarningRaised(run=run, code="no_hlo", message=f"the kernels of {module} have times only: {problem}"))
    # The executions of the program on its first device; None if they cannot be told apart.
    calls = next(
        (
            len(executed.starts)
            for executed in executions_on(trace, program.devices[0])
            if executed.program == program.name
            or (executed.program[1] is not None and executed.program[1] == program.name[1])
        ),
        None,
    )
    emit(CaptureTaken(run=run, kind=KIND, platform=trace.platform, calls=calls, path=path))
    emit(KernelsMeasured(run=run, kind=KIND, calls=calls, rows=program.rows))
    emit(RunFinished(run=run, status="ok"))
