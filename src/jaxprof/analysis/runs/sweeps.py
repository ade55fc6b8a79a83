"""Runs of one workload over a range of sizes: lines to plot, and where one variant overtakes the baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

from jaxprof.analysis.runs.run_result import RunResult, result
from jaxprof.base.grouping import grouped
from jaxprof.base.units import integer
from jaxprof.base.values import frozen
from jaxprof.session import Session


@frozen
class SweepLine:
    """One variant on one device."""

    variant: str
    device: str
    points: Mapping[float, RunResult]
    """Runs that have a time, by size in ascending order."""

    @property
    def label(self) -> str:
        """Label of the line, such as `jit cpu:0`."""
        return f"{self.variant} {self.device}"

    @property
    def medians(self) -> dict[float, float]:
        """Median seconds of a call by size."""
        return {size: run.summary.median for size, run in self.points.items() if run.summary is not None}


@frozen
class SweepGroup:
    """One workload swept over one parameter."""

    workload: str
    parameter: str
    baseline: SweepLine | None
    lines: tuple[SweepLine, ...]
    """All lines, including the baseline."""

    @property
    def sizes(self) -> list[float]:
        """Sizes of all lines, in ascending order."""
        return sorted({size for line in self.lines for size in line.points})

    def crossovers(self) -> list[str]:
        """Return, for every other line, where it overtakes the baseline or falls behind it, such as
        `jit cpu:0 is faster from n ≈ 12 000 (between 10 000 and 31 623)`."""
        if self.baseline is None:
            return []
        others = (line for line in self.lines if line is not self.baseline)
        return [text for line in others if (text := _crossover(self.baseline, line, self.parameter))]


def sweep_groups(session: Session) -> list[SweepGroup]:
    """Return the sweeps of a session: workloads in which exactly one numeric parameter takes several values."""
    by_workload = grouped((run.plan.workload, result(session, run.id)) for run in session.runs.values())
    groups = []
    for workload, members in by_workload.items():
        values: dict[str, set[object]] = {}
        for member in members:
            for name, value in member.run.plan.parameters.items():
                values.setdefault(name, set()).add(value)
        varying = [name for name, seen in values.items() if len(seen) > 1]
        if len(varying) != 1 or not all(isinstance(value, int | float) for value in values[varying[0]]):
            continue
        (parameter,) = varying
        points: dict[tuple[str, str], dict[float, RunResult]] = {}
        baseline_key: tuple[str, str] | None = None
        for member in members:
            key = (member.run.plan.variant, member.run.plan.device)
            if not member.run.plan.baseline:
                baseline_key = key
            if member.summary is not None:
                points.setdefault(key, {})[float(member.run.plan.parameters[parameter])] = member
        lines = {key: SweepLine(*key, dict(sorted(at.items()))) for key, at in points.items()}
        baseline = lines.get(baseline_key) if baseline_key is not None else None
        groups.append(SweepGroup(workload, parameter, baseline, tuple(lines.values())))
    return groups


def _crossover(baseline: SweepLine, line: SweepLine, parameter: str) -> str:
    """Return where a line crosses the baseline, from the sizes whose verdict is certain; empty if there is no verdict
    at all. The size of a crossing is interpolated on a log-log scale between two certain sizes."""
    found = {size: run.versus.speedup for size, run in line.points.items() if run.versus and size in baseline.points}
    certain = [
        (size, times.ratio)
        for size, times in found.items()
        if times.verdict in ("faster", "slower") and times.ratio is not None
    ]
    if not found:
        return ""
    if not certain and {times.verdict for times in found.values()} == {"same"}:
        return f"{line.label} is as fast as the baseline at the sizes measured"
    if not certain:
        return f"{line.label} and the baseline cannot be told apart at the sizes measured"
    verdict = "faster" if certain[-1][1] > 1 else "slower"
    for (low, before), (high, after) in reversed(list(pairwise(certain))):
        if (before > 1) != (after > 1) and low > 0:
            share = math.log(before) / (math.log(before) - math.log(after))
            size = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
            rounded = round(size, 1 - math.floor(math.log10(size)))
            between = f"(between {integer(low)} and {integer(high)})"
            return f"{line.label} is {verdict} from {parameter} ≈ {integer(rounded)} {between}"
    if len(certain) < len(line.points):
        return f"{line.label} is {verdict} at {len(certain)} of {len(line.points)} sizes, unclear at the others"
    return f"{line.label} is {verdict} at every size measured"
