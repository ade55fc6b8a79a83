"""A profile recorded by another tool, as the runs of a session: the whole profile, and each program in it.

The overview of a profile is one value, which both the app's first view of a profile and the text report show. It has
the steps on each device: how they were found, how much they differ, and how idle the device was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from statistics import mean, median, quantiles
from typing import TYPE_CHECKING

from jaxprof.analysis.kernels import MeasuredKernel
from jaxprof.analysis.kernels.measured import kernels_together, measure_kernels
from jaxprof.base.errors import JaxprofError
from jaxprof.base.grouping import grouped, totals
from jaxprof.base.values import frozen
from jaxprof.events import StepParts, StepsDevice, StepsMeasured, StepTimes
from jaxprof.session import Run, Session
from jaxprof.session.run import IMPORTED

if TYPE_CHECKING:
    from jaxprof.analysis.kernels.memory import MemoryPicture

FOUND_BY: Mapping[str, str] = {
    "annotation": "their annotations",
    "modules": "the executions of the program that took the longest",
    "whole": "nothing; the whole recording counts as one step",
}
"""What marks the steps, by `StepsMeasured.found_by`."""


@frozen
class DeviceSteps:
    """Steps on one device. Times are in seconds; None is unknown."""

    device: str
    found_by: str
    """How the steps were found, as in `StepsMeasured.found_by`."""
    count: int
    """Number of all steps, including those that the profile cuts off or does not list."""
    complete: int
    """Number of steps in the figures below, without truncated ones and the last, whose end nothing marks."""
    median_seconds: float | None
    minimum_seconds: float | None
    maximum_seconds: float | None
    quartiles_seconds: tuple[float, float] | None
    """Lower and upper quartile of the steps' lengths; None for fewer than four steps."""
    span_seconds: float | None
    """Time of the whole profile, inside and outside steps."""
    busy_seconds: float | None
    """Part of the span in which the device worked."""
    idle_seconds: float | None

    @property
    def idle_share(self) -> float | None:
        if self.idle_seconds is None or not self.span_seconds:
            return None
        return self.idle_seconds / self.span_seconds


def device_steps(event: StepsMeasured | None) -> tuple[DeviceSteps, ...]:
    """Return the steps on each device, in the order of the profile; empty if there is no step."""
    if event is None:
        return ()
    counts = totals((row.device, 1) for row in event.steps)
    lengths = grouped((row.device, row.seconds) for row in event.steps if row.complete and row.to_next)
    by_device = {steps.device: steps for steps in event.devices}
    by_device |= {device: StepsDevice(device=device) for device in counts if device not in by_device}
    figures = []
    for device, steps in by_device.items():
        seconds = lengths.get(device, [])
        cuts = quantiles(seconds, n=4, method="inclusive") if len(seconds) >= 4 else None
        figures.append(
            DeviceSteps(
                device=device,
                found_by=steps.found_by or event.found_by,
                count=steps.steps or counts.get(device, 0),
                complete=len(seconds),
                median_seconds=median(seconds) if seconds else None,
                minimum_seconds=min(seconds, default=None),
                maximum_seconds=max(seconds, default=None),
                quartiles_seconds=(cuts[0], cuts[2]) if cuts is not None else None,
                span_seconds=steps.span_seconds,
                busy_seconds=steps.busy_seconds,
                idle_seconds=steps.idle_seconds,
            )
        )
    return tuple(figures)


def mean_step(steps: Sequence[StepTimes]) -> StepTimes:
    """Return the mean length of these steps and of each of their parts. Raises StatisticsError if there is no step."""
    return StepTimes(
        name="mean",
        start_seconds=0.0,
        seconds=mean(step.seconds for step in steps),
        parts=StepParts(
            **{item.name: mean(getattr(step.parts, item.name) for step in steps) for item in fields(StepParts)}
        ),
        collectives_overlapped_seconds=mean(step.collectives_overlapped_seconds for step in steps),
    )


@frozen
class ProfileProgram:
    """A program that ran during the profile."""

    run: Run
    seconds: float
    """Self time of its kernels on all devices, in seconds."""
    share: float | None
    """Share of the self time of all programs, from 0 to 1."""
    memory: MemoryPicture | None
    """Memory of the program; None without HLO, and for all but the longest programs."""

    @property
    def has_hlo(self) -> bool:
        return "hlo" in self.run.texts


@frozen
class ProfileOverview:
    run: Run
    devices: tuple[DeviceSteps, ...]
    kernels: tuple[tuple[str, MeasuredKernel], ...]
    """Kernels of all programs, each with the id of its run and its share of the whole; longest self time first."""
    programs: tuple[ProfileProgram, ...]
    unattributed_seconds: Mapping[str, float]


def is_whole(run: Run) -> bool:
    """Return whether the run is a whole profile, not one of its programs, which have no trust checks."""
    return run.plan.how == IMPORTED and IMPORTED in run.trust


def programs_of(session: Session, run: Run) -> list[Run]:
    """Return the runs with the HLO of the kernels in the timeline of `run`, longest time first. For a whole profile
    these are its programs, which were recorded after it; for any other run, the run itself."""
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
    """Return the run; for a whole profile, its longest program with HLO, or the run if no program has HLO."""
    return next((program for program in programs_of(session, run) if "hlo" in program.texts), run)


def overview(session: Session, run: Run) -> ProfileOverview:
    """Return the overview of the profile whose whole is `run`. Reads HLO: call it in a thread."""
    from jaxprof.analysis.kernels.memory import memory_of_run

    programs = programs_of(session, run)
    of_whole = measure_kernels(session, run.id)
    kernels = kernels_together(session, [run.id, *(program.id for program in programs)])
    by_run = totals((run_id, kernel.self_seconds) for run_id, kernel in kernels)
    whole = sum(by_run.values())
    listed = []
    for number, program in enumerate(programs):
        picture = None
        # Deriving the memory of a program requires reading its HLO.
        if number < 8 and "hlo" in program.texts:
            with suppress(JaxprofError):  # the HLO view says why it cannot be read
                picture = memory_of_run(session, program.id)
        seconds = by_run.get(program.id, 0.0)
        listed.append(ProfileProgram(program, seconds, seconds / whole if whole > 0 else None, picture))
    return ProfileOverview(
        run=run,
        devices=device_steps(run.steps),
        kernels=tuple(kernels),
        programs=tuple(listed),
        unattributed_seconds=of_whole.unattributed_seconds if of_whole is not None else {},
    )
