"""The steps on each device of a capture: how they were found, how much they differ, and how idle the device was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from statistics import mean, median, quantiles
from typing import Final

from jaxprof.events import IdleCause, StepParts, StepsDevice, StepsMeasured, StepTimes
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
