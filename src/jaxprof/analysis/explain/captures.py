"""Captures and profiles to be explained: where the time of the steps of the devices went, and what is doubtful."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jaxprof.analysis.explain.catalogue import find_entry
from jaxprof.analysis.explain.commands import command
from jaxprof.analysis.explain.model import Abstention, FindingCost, RankedFinding, Scope
from jaxprof.analysis.steps import causes_text
from jaxprof.units import counted, percent, seconds

if TYPE_CHECKING:
    from jaxprof.events import StepParts, StepTimes, TrustCheck
    from jaxprof.session import Run

_WORTH: Final = 0.1
"""Share of the steps from which a part of them is a finding."""
_DOUBTED: Final = (
    "no_kernels", "lost_kernels", "clock", "file", "profiler_error", "dropped", "unmatched", "modules", "slowdown",
    "sum", "unrecorded", "compile", "uneven_steps", "attribution",
)  # fmt: skip
"""Trust rows that say what figures cannot be had; the others qualify figures that are shown beside them."""


@dataclass(frozen=True, slots=True)
class _Part:
    code: str
    words: str
    of: Callable[[StepParts], float]
    whole_program: bool = False
    """Whether only a capture of a whole program shows it: calls that are measured one by one wait on purpose."""
    by_cause: bool = False
    """Whether what the host did meanwhile is its cause."""


_IDLE_FIXES: Final = {
    "compile": "Compile before the steps: the same shapes, dtypes and function objects from the first step on "
    "(jaxprof script FILE.py names what compiled again, and why).",
    "copy": "Place what stays the same on the device once, copy the next batch while the device works (jax.device_put "
    "ahead of the step), and fetch results less often.",
    "launch": "Give each call more to do: several steps in lax.scan, fewer and larger arrays as arguments.",
    "wait": "Do not block in every step: keep results as arrays, and fetch them every N steps or after the loop.",
    "host": "Do it while the device works: prepare the next batch in a thread, worker processes or a queue, and log, "
    "plot or save less often.",
}
"""What to do about the longest cause."""
_PARTS: Final = (
    _Part("device-idle", "the device waited", lambda parts: parts.idle, whole_program=True, by_cause=True),
    _Part("launch-gaps", "gaps between kernels", lambda parts: parts.launch_gaps),
    _Part("exposed-collectives", "waiting for collectives", lambda parts: parts.collectives_exposed),
    _Part("copies-in-steps", "only copying to or from the host", lambda parts: parts.transfers),
)


def step_findings(run: Run, scope: Scope, verify: str, *, whole_program: bool) -> Iterator[RankedFinding]:
    """What the steps of an accelerator's capture went to besides kernels. Of a CPU nothing is said: there the time
    between two recorded ops may be an op that the runtime does not record."""
    steps = run.steps
    if steps is None or all(capture.platform in ("", "cpu") for capture in run.captures.values()):
        return
    if any(_makes_idle_time(row) for event in run.trust.values() for row in event.rows):
        return
    by_device: dict[str, list[StepTimes]] = {}
    for step in steps.steps:
        if step.complete:
            by_device.setdefault(step.device, []).append(step)
    found_by = {device.device: device.found_by or steps.found_by for device in steps.devices}
    for part in _PARTS:
        if part.whole_program and not whole_program:
            continue
        shares = {
            device: (sum(part.of(step.parts) for step in own), sum(step.seconds for step in own), len(own))
            for device, own in by_device.items()
            if found_by.get(device, steps.found_by) != "whole"
        }
        known = {device: took / whole for device, (took, whole, _) in shares.items() if whole > 0}
        device = max(known, key=lambda name: known[name], default="")
        if not device or known[device] < _WORTH:
            continue
        took, _, count = shares[device]
        each = took / count
        others = sum(share >= _WORTH for share in known.values()) - 1
        beside = f" and {counted(others, 'more device')}" if others else ""
        causes = next((each.idle_causes for each in steps.devices if each.device == device and part.by_cause), ())
        meanwhile = f"; meanwhile the host: {causes_text(causes)}" if causes else ""
        yield RankedFinding(
            code=part.code,
            message=f"{part.words}: {seconds(each)} of each step on {device}{beside}, {percent(known[device])} of "
            f"{counted(count, 'step')}{meanwhile}",
            fix=(_IDLE_FIXES.get(causes[0].cause) if causes else None) or find_entry(part.code).fix,
            cost=FindingCost(
                scope=scope, seconds=each if scope == "call" else took, share=known[device], saves_seconds=None
            ),
            verify=verify,
            run=run.id,
        )


def _makes_idle_time(row: TrustCheck) -> bool:
    """Whether pauses of the device may be kernels that are missing, or stand at a wrong time."""
    return (row.code == "lost_kernels" and row.verdict != "good") or (row.code == "clock" and row.verdict == "bad")


def capture_abstentions(run: Run, name: str) -> Iterator[Abstention]:
    """The worst of what makes a capture doubtful, and how many more doubts there are."""
    rows = [row for event in run.trust.values() for row in event.rows if row.verdict in ("bad", "doubt")]
    rows = [row for row in rows if row.code in _DOUBTED and (row.code, row.verdict) != ("clock", "doubt")]
    if rows:
        row, *others = sorted(rows, key=lambda row: (row.verdict != "bad", _DOUBTED.index(row.code)))
        more = f" ({counted(len(others), 'more doubt')})" if others else ""
        yield Abstention(row.code, f"{run.id}: {row.message}{more}", command("show", name, "--run", run.id, "--trust"))
