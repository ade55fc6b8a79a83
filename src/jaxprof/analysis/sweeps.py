"""Runs of one workload over a range of sizes: lines to plot, and where one variant overtakes the baseline."""

from __future__ import annotations

import math
from itertools import pairwise

from jaxprof.analysis.run_result import RunResult, result
from jaxprof.frozen import frozen
from jaxprof.grouping import grouped
from jaxprof.session import Session
from jaxprof.stats.comparison import Verdict
from jaxprof.units import integer


@frozen
class SweepLine:
    """One variant on one device over ascending sizes; only the points that have a figure."""

    variant: str
    device: str
    sizes: tuple[float, ...]
    results: tuple[RunResult, ...]

    @property
    def label(self) -> str:
        """Label of the line, such as `jit cpu:0`."""
        return f"{self.variant} {self.device}"


@frozen
class Crossover:
    """Where a variant overtakes the baseline or falls behind it: between two sizes at which the order is certain."""

    label: str
    size: float | None
    """Size interpolated between `low` and `high` on a log-log scale, an estimate; None if the order never changes."""
    low: float | None
    high: float | None
    verdict: Verdict = "faster"
    """Verdict at the largest size at which one is certain."""
    certain: int = 1
    """Number of sizes at which the verdict is certain."""
    measured: int = 1
    """Number of sizes measured."""

    def sentence(self, parameter: str) -> str:
        """Return text such as `jit cpu:0 is faster from n ≈ 12 000 (between 10 000 and 31 623)`."""
        if self.verdict == "same":
            return f"{self.label} is as fast as the baseline at the sizes measured"
        if self.verdict == "inconclusive":
            return f"{self.label} and the baseline cannot be told apart at the sizes measured"
        if self.size is None or self.low is None or self.high is None:
            if self.certain < self.measured:
                return (
                    f"{self.label} is {self.verdict} at {self.certain} of {self.measured} sizes, unclear at the others"
                )
            return f"{self.label} is {self.verdict} at every size measured"
        rounded = round(self.size, 1 - math.floor(math.log10(self.size)))
        between = f"(between {integer(self.low)} and {integer(self.high)})"
        return f"{self.label} is {self.verdict} from {parameter} ≈ {integer(rounded)} {between}"


@frozen
class SweepGroup:
    """One workload swept over one parameter."""

    workload: str
    parameter: str
    baseline: SweepLine | None
    lines: tuple[SweepLine, ...]
    """All lines, including the baseline."""

    def crossovers(self) -> list[Crossover]:
        """Return, for every other line, the size at which it overtakes the baseline or falls behind it."""
        if self.baseline is None:
            return []
        return [
            crossover
            for line in self.lines
            if line is not self.baseline
            if (crossover := _crossover(self.baseline, line))
        ]


def sweep_groups(session: Session) -> list[SweepGroup]:
    """Return the sweeps of a session: workloads in which exactly one numeric parameter takes several values."""
    by_workload = grouped((run.plan.workload, result(session, run.id)) for run in session.runs.values())
    groups = []
    for workload, members in by_workload.items():
        parameter = _swept(members)
        if parameter:
            groups.append(_group(workload, parameter, members))
    return groups


def _swept(members: list[RunResult]) -> str:
    values: dict[str, set[object]] = {}
    for member in members:
        for name, value in member.run.plan.parameters.items():
            values.setdefault(name, set()).add(value)
    varying = [name for name, seen in values.items() if len(seen) > 1]
    numeric = all(isinstance(value, int | float) for name in varying for value in values[name])
    return varying[0] if len(varying) == 1 and numeric else ""


def _group(workload: str, parameter: str, members: list[RunResult]) -> SweepGroup:
    points: dict[tuple[str, str], dict[float, RunResult]] = {}
    baseline_key: tuple[str, str] | None = None
    for member in members:
        key = (member.run.plan.variant, member.run.plan.device)
        if not member.run.plan.baseline:
            baseline_key = key
        if member.summary is not None:
            points.setdefault(key, {})[float(member.run.plan.parameters[parameter])] = member
    lines: dict[tuple[str, str], SweepLine] = {}
    for key, at in points.items():
        sizes = tuple(sorted(at))
        lines[key] = SweepLine(key[0], key[1], sizes, tuple(at[size] for size in sizes))
    baseline = lines.get(baseline_key) if baseline_key is not None else None
    return SweepGroup(workload, parameter, baseline, tuple(lines.values()))


def _crossover(baseline: SweepLine, line: SweepLine) -> Crossover | None:
    """Return the verdict from sizes whose intervals allow one, without a crossing if the two cannot be separated."""
    certain: list[tuple[float, float]] = []
    verdicts: list[str] = []
    for size, point in zip(line.sizes, line.results, strict=True):
        if point.versus is None or size not in baseline.sizes:
            continue
        faster = point.versus.speedup
        verdicts.append(faster.verdict)
        if faster.verdict in ("faster", "slower") and faster.ratio is not None:
            certain.append((size, faster.ratio))
    if not certain:
        tie: Verdict = "same" if set(verdicts) == {"same"} else "inconclusive"
        return Crossover(line.label, None, None, None, tie) if verdicts else None
    verdict: Verdict = "faster" if certain[-1][1] > 1 else "slower"
    for (low, before), (high, after) in reversed(list(pairwise(certain))):
        if (before > 1) != (after > 1) and low > 0:
            share = math.log(before) / (math.log(before) - math.log(after))
            size = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
            return Crossover(line.label, size, low, high, verdict)
    return Crossover(line.label, None, None, None, verdict, len(certain), len(line.sizes))
