"""A profile that another tool recorded, as the runs of a session: the whole profile, and each program in it.

The profile at a glance is one value, from which the app's first view of a profile and the text report are drawn. It
has the steps on each device: how they were found, how much they differ, and how idle the device was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import mean, median, quantiles
from typing import Final

from jaxprof.analysis.measured import MeasuredKernel, measured
from jaxprof.analysis.run_result import IMPORTED
from jaxprof.errors import JaxprofError
from jaxprof.events import IdleCause, StepParts, StepsDevice, StepsMeasured, StepTimes, TrustCheck
from jaxprof.session import Run, Session
from jaxprof.text import safe
from jaxprof.units import percent

FOUND_BY: Mapping[str, str] = {
    "annotation": "their annotations",
    "modules": "the executions of the program that took the longest",
    "whole": "nothing: the whole recording is one",
}
"""What marks the steps, by `StepsMeasured.found_by`."""

_CAUSES: Final = {
    "compile": "it traced or compiled",
    "copy": "it copied",
    "launch": "it was calling programs",
    "wait": "it waited for the device",
    "host": "it did other work",
    "unknown": "unknown",
}
"""What the host did, by `IdleCause.cause`."""
_CAUSE_WORTH: Final = 0.05
"""Share of the idle time below which a cause is not named."""


@dataclass(frozen=True, slots=True)
class DeviceSteps:
    """The steps on one device. Times in seconds; None if unknown."""

    device: str
    found_by: str
    """As `StepsMeasured.found_by`."""
    count: int
    """Number of all steps, including those that the profile cuts off or does not list."""
    complete: int
    """Number of steps in the figures below: neither the truncated ones nor the last execution, whose end no other one
    marks."""
    median_seconds: float | None
    minimum_seconds: float | None
    maximum_seconds: float | None
    quartiles_seconds: tuple[float, float] | None
    """A quarter of the steps are shorter than the first figure, a quarter longer than the second; for four steps or
    more."""
    span_seconds: float | None
    """Time of the whole profile, steps or not."""
    busy_seconds: float | None
    """The part of that in which the device worked."""
    idle_seconds: float | None

    @property
    def idle_share(self) -> float | None:
        """Share of the whole profile, in 0..1."""
        if self.idle_seconds is None or not self.span_seconds:
            return None
        return self.idle_seconds / self.span_seconds


def device_steps(event: StepsMeasured | None) -> tuple[DeviceSteps, ...]:
    """The steps on each device, in the order of the profile; empty if there is no step."""
    if event is None:
        return ()
    lengths: dict[str, list[float]] = {}
    counts: dict[str, int] = {}
    for row in event.steps:
        counts[row.device] = counts.get(row.device, 0) + 1
        if row.complete and row.to_next:
            lengths.setdefault(row.device, []).append(row.seconds)
    by_device = {steps.device: steps for steps in event.devices}
    return tuple(
        _of(by_device.get(device) or StepsDevice(device=device), event.found_by, counts.get(device, 0),
            lengths.get(device, []))
        for device in dict.fromkeys([*by_device, *counts])
    )  # fmt: skip


def causes_text(causes: Sequence[IdleCause]) -> str:
    """`it copied 61 %, it did other work 39 % (mostly load_batch)`; empty where no cause is known."""
    whole = sum(cause.seconds for cause in causes)
    named = [
        f"{_CAUSES.get(cause.cause, cause.cause)} {percent(cause.seconds / whole)}"
        + (f" (mostly {safe(cause.name)})" if cause.name else "")
        for cause in causes
        if whole > 0 and cause.seconds >= _CAUSE_WORTH * whole
    ]
    return ", ".join(named)


def mean_step(steps: Sequence[StepTimes]) -> StepTimes:
    """The mean length of these steps and of each of their parts. Raises StatisticsError if there is no step."""
    return StepTimes(
        name="mean",
        start_seconds=0.0,
        seconds=mean(step.seconds for step in steps),
        parts=StepParts(
            **{item.name: mean(getattr(step.parts, item.name) for step in steps) for item in fields(StepParts)}
        ),
        collectives_overlapped_seconds=mean(step.collectives_overlapped_seconds for step in steps),
    )


def _of(measured: StepsDevice, found_by: str, count: int, lengths: Sequence[float]) -> DeviceSteps:
    cuts = quantiles(lengths, n=4, method="inclusive") if len(lengths) >= 4 else None
    return DeviceSteps(
        device=measured.device,
        found_by=measured.found_by or found_by,
        count=measured.steps or count,
        complete=len(lengths),
        median_seconds=median(lengths) if lengths else None,
        minimum_seconds=min(lengths, default=None),
        maximum_seconds=max(lengths, default=None),
        quartiles_seconds=(cuts[0], cuts[2]) if cuts is not None else None,
        span_seconds=measured.span_seconds,
        busy_seconds=measured.busy_seconds,
        idle_seconds=measured.idle_seconds,
    )


VERDICTS: Final = ("bad", "doubt", "unknown", "good")
"""The grades of the trust rows, the worst first."""
_MEMORY_OF: Final = 8
"""Number of programs whose memory is derived: this requires reading their HLO."""


@dataclass(frozen=True, slots=True)
class ProfileProgram:
    """A program that ran."""

    run: str
    """The id of its run."""
    name: str
    program: str | None
    """Its id in the profile, in decimal digits."""
    calls: int | None
    seconds: float
    """Self time of its kernels, on all devices."""
    share: float | None
    """Share of the self time of all programs, in 0..1."""
    has_hlo: bool
    peak_bytes: int | None
    """Peak of its memory, where its HLO gives it."""
    peak_is_estimate: bool


@dataclass(frozen=True, slots=True)
class ProfileOverview:
    """A profile at a glance."""

    run: str
    """The id of the run of the whole."""
    label: str
    platform: str
    seconds: float | None
    """From its first event to its last."""
    events: int | None
    bytes: int | None
    devices: tuple[DeviceSteps, ...]
    kernels: tuple[tuple[str, MeasuredKernel], ...]
    """The kernels of all programs, each with the id of its run, the longest self time first, with their shares of the
    whole."""
    programs: tuple[ProfileProgram, ...]
    unattributed_seconds: Mapping[str, float]
    trust: tuple[TrustCheck, ...]
    """The rows, the worst first."""


def is_whole(run: Run) -> bool:
    """Whether the run is a whole profile rather than one of its programs: no program has trust rows of its own."""
    return run.plan.how == IMPORTED and IMPORTED in run.trust


def programs_of(session: Session, run: Run) -> list[Run]:
    """The runs with the HLO of the kernels in the timeline of `run`, those that took the longest first.

    For a whole profile, its programs, which were recorded after it; for any other run, the run itself.
    """
    if not is_whole(run):
        return [run]
    programs: list[Run] = []
    inside = False
    for other in session.runs.values():
        if other is run:
            inside = True
        elif inside and other.plan.how == IMPORTED and not is_whole(other):
            programs.append(other)
        elif inside:
            break
    return programs


def with_hlo(session: Session, run: Run) -> Run:
    """The run itself; for a whole profile, the program with HLO that took the longest, or the run where no program has
    HLO."""
    return next((program for program in programs_of(session, run) if "hlo" in program.texts), run)


def overview(session: Session, run: Run) -> ProfileOverview:
    """The profile whose whole is `run`. Reads the HLO of its longest programs, so call it in a thread."""
    capture = run.captures.get(IMPORTED)
    programs = programs_of(session, run)
    of_whole = measured(session, run.id)
    kernels = [(run.id, kernel) for kernel in (of_whole.kernels if of_whole is not None else ())]
    took: dict[str, float] = {}
    for program in programs:
        of_program = measured(session, program.id)
        own = of_program.kernels if of_program is not None else ()
        took[program.id] = sum(kernel.self_seconds for kernel in own)
        kernels += [(program.id, kernel) for kernel in own]
    whole = sum(kernel.self_seconds for _, kernel in kernels)
    shared = [
        (run_id, replace(kernel, share=kernel.self_seconds / whole if whole > 0 else None))
        for run_id, kernel in kernels
    ]
    order = {verdict: number for number, verdict in enumerate(VERDICTS)}
    rows = [row for event in run.trust.values() for row in event.rows]
    return ProfileOverview(
        run=run.id,
        label=run.label,
        platform=capture.platform if capture is not None else "",
        seconds=capture.wall_seconds if capture is not None else None,
        events=capture.events if capture is not None else None,
        bytes=capture.bytes if capture is not None else None,
        devices=device_steps(run.steps),
        kernels=tuple(sorted(shared, key=lambda pair: -pair[1].self_seconds)),
        programs=tuple(
            _program(session, program, took[program.id], whole, memory=number < _MEMORY_OF)
            for number, program in enumerate(programs)
        ),
        unattributed_seconds=of_whole.unattributed_seconds if of_whole is not None else {},
        trust=tuple(sorted(rows, key=lambda row: order.get(row.verdict, order["unknown"]))),
    )


def _program(session: Session, run: Run, seconds: float, whole: float, *, memory: bool) -> ProfileProgram:
    from jaxprof.analysis.memory import buffers_of

    picture = None
    if memory and "hlo" in run.texts:
        try:
            picture = buffers_of(session, run.id)
        except JaxprofError:  # the HLO view says why it cannot be read
            picture = None
    event = run.measured.get(IMPORTED)
    program = run.plan.parameters.get("program")
    return ProfileProgram(
        run=run.id,
        name=run.plan.workload,
        program=None if program is None else str(program),
        calls=event.calls if event is not None else None,
        seconds=seconds,
        share=seconds / whole if whole > 0 else None,
        has_hlo="hlo" in run.texts,
        peak_bytes=picture.peak_bytes if picture is not None else None,
        peak_is_estimate=picture.is_estimate if picture is not None else False,
    )
