"""A profile that another tool recorded, as the runs of a session: the whole profile, and each program in it.

The profile at a glance is one value, from which the app's first view of a profile and the text report are drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from jaxprof.analysis.measured import MeasuredKernel, measured
from jaxprof.analysis.steps import DeviceSteps, device_steps
from jaxprof.errors import JaxprofError
from jaxprof.events import TrustCheck
from jaxprof.session import Run, Session

IMPORTED: Final = "imported"
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
