"""Check whether the steps that were found can stand for the program's."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Final

from jaxprof.events import TrustCheck
from jaxprof.grouping import grouped, totals
from jaxprof.trace.checks import CLEARLY, row
from jaxprof.trace.steps import STEPS_KEPT, Steps
from jaxprof.units import counted, percent, seconds

_UNRECORDED: Final = 0.2
_UNEVEN: Final = 1.5
"""Factor from the median, up or down, from which a step is another kind of step."""


def steps(steps: Steps) -> Iterator[TrustCheck]:
    """Check how the steps were found, which of them are complete, and how much of the device's time they hold."""
    if not steps.rows:
        yield row("steps", "unknown", "no step was found: nothing ran on a device")
        return
    cut = [step for step in steps.rows if not step.complete]
    how = _how(steps)
    devices = f" on {len(steps.devices)} devices" if len(steps.devices) > 1 else ""
    found = f"{counted(steps.total, 'step')}{devices} found {how}"
    are = "is" if len(cut) == 1 else "are"
    incomplete = f"{counted(len(cut), 'step')} at the edges {are} incomplete; " if cut else ""
    yield row("steps", "doubt" if cut else "good", f"{incomplete}{found}")
    yield from _unlinked(steps)
    yield from _spread(steps)
    if steps.total > STEPS_KEPT:
        yield row("steps_kept", "doubt", f"of {steps.total} steps the first {STEPS_KEPT} of each device are kept")
    busy = steps.inside_seconds + steps.outside_seconds
    share = steps.outside_seconds / busy if busy else 0.0
    if share > CLEARLY:
        yield row(
            "outside_steps",
            "doubt",
            f"{percent(share)} of the devices' busy time is in no step",
            "It was launched by no annotated call: annotate that as well, or read the steps without it."
            if steps.found_by == "annotation"
            else "Other programs ran before the first execution, or after the last.",
        )


def _unlinked(steps: Steps) -> Iterator[TrustCheck]:
    """Check whether the program's annotations are linked to the devices' work."""
    if not steps.unlinked:
        return
    count = max(steps.unlinked.values())
    yield row(
        "unlinked_steps",
        "doubt",
        f"{counted(count, 'step annotation')} of the program cannot be linked to the work of "
        f"{_some([*steps.unlinked])}: steps there are found in another way and are not the annotated ones",
    )


_HOW: Final = {
    "annotation": "by their annotations",
    "modules": "by the executions of the program that took the longest",
    "whole": "by taking the profile as one step, because there are neither step annotations nor program executions",
}


def _how(steps: Steps) -> str:
    """Return how the steps were found, for each device if that differs."""
    ways = grouped((device.found_by, device.device) for device in steps.devices)
    if len(ways) == 1:
        return _HOW[next(iter(ways))]
    return ", ".join(f"on {_some(devices)} {_HOW[way]}" for way, devices in ways.items())


def _some(devices: list[str]) -> str:
    return ", ".join(devices[:3]) + (f" and {len(devices) - 3} more" if len(devices) > 3 else "")


def _spread(steps: Steps) -> Iterator[TrustCheck]:
    """Check whether one step can stand for the others, on the device on which they differ the most."""
    lengths = grouped((step.device, step.seconds) for step in steps.rows if step.complete and step.to_next)
    several = {device: took for device, took in lengths.items() if len(took) > 1}
    if not several:
        yield row("one_step", "doubt", "there is one whole step, so how much steps differ is unknown")
        return
    middles = {device: median(took) for device, took in several.items()}
    ratios = {
        device: max(max(took) / middles[device], middles[device] / max(min(took), 1e-12))
        for device, took in several.items()
        if middles[device]
    }
    device = max(ratios, key=lambda name: ratios[name], default=next(iter(several)))
    took = several[device]
    words = (
        f"steps on {device} took from {seconds(min(took))} to {seconds(max(took))}, "
        f"{seconds(middles[device])} in the middle"
    )
    yield row("uneven_steps", "doubt" if ratios.get(device, 1.0) > _UNEVEN else "good", words)


def unrecorded(steps: Steps) -> Iterator[TrustCheck]:
    """Find time in which a CPU executed a program and no op was recorded; a CPU launches nothing between two ops."""
    parts = [(step.device, step.parts) for step in steps.rows]
    gaps = totals((device, part.launch_gaps) for device, part in parts)
    executing = totals(
        (device, part.kernels + part.transfers + part.collectives_exposed + part.launch_gaps) for device, part in parts
    )
    shares = {device: gap / executing[device] for device, gap in gaps.items() if executing[device]}
    device = max(shares, key=lambda name: shares[name], default="")
    if not device:
        return
    share = shares[device]
    words = f"{percent(share)} of the time in which programs were executed on {device} has no op in the record"
    yield row("unrecorded", "doubt" if share > _UNRECORDED else "good", words)
