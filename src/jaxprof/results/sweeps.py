"""Runs of one workload over a range of sizes: lines to plot, and where one variant overtakes the baseline."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from jaxprof.results.derive import RunResult, result
from jaxprof.session import Session
from jaxprof.stats import speedup
from jaxprof.units import integer


@dataclass(frozen=True, slots=True)
class SweepLine:
    """One variant on one device over the sizes, ascending; only the points that have a figure."""

    variant: str
    device: str
    sizes: tuple[float, ...]
    results: tuple[RunResult, ...]

    @property
    def label(self) -> str:
        """`jit cpu:0`."""
        return f"{self.variant} {self.device}"


@dataclass(frozen=True, slots=True)
class Crossover:
    """Where a variant overtakes the baseline, or falls behind it: between two sizes at which the order is certain."""

    label: str
    size: float | None
    """Interpolated between the two sizes on a log-log scale; an estimate. None where the order never changes."""
    low: float | None
    high: float | None
    verdict: str = "faster"
    """At the largest sizes: `faster`, `slower`, or `cannot be told apart`."""

    @property
    def always_faster(self) -> bool:
        """Whether it is faster at the largest sizes measured."""
        return self.verdict == "faster"

    def sentence(self, parameter: str) -> str:
        """In words, e.g. `jit cpu:0 is faster from n ≈ 12 000 (between 10 000 and 31 623)`."""
        if self.verdict not in ("faster", "slower"):
            return f"{self.label} and the baseline cannot be told apart at the sizes measured"
        if self.size is None or self.low is None or self.high is None:
            return f"{self.label} is {self.verdict} at every size measured"
        rounded = round(self.size, 1 - math.floor(math.log10(self.size)))
        between = f"(between {integer(self.low)} and {integer(self.high)})"
        return f"{self.label} is {self.verdict} from {parameter} ≈ {integer(rounded)} {between}"


@dataclass(frozen=True, slots=True)
class SweepGroup:
    """One workload swept over one parameter."""

    workload: str
    parameter: str
    baseline: SweepLine | None
    lines: tuple[SweepLine, ...]
    """All lines, the baseline's among them."""

    def crossovers(self) -> list[Crossover]:
        """For every other line, where it overtakes the baseline (or falls behind it)."""
        if self.baseline is None:
            return []
        return [found for line in self.lines if line is not self.baseline if (found := _crossover(self.baseline, line))]


def sweep_groups(session: Session) -> list[SweepGroup]:
    """The sweeps in a session: workloads of which exactly one numeric parameter takes several values."""
    by_workload: dict[str, list[RunResult]] = {}
    for run in session.runs.values():
        by_workload.setdefault(run.plan.workload, []).append(result(session, run.id))
    groups = []
    for workload, found in by_workload.items():
        parameter = _swept(found)
        if parameter:
            groups.append(_group(workload, parameter, found))
    return groups


def _swept(found: list[RunResult]) -> str:
    values: dict[str, set[object]] = {}
    for one in found:
        for name, value in one.run.plan.parameters.items():
            values.setdefault(name, set()).add(value)
    varying = [name for name, seen in values.items() if len(seen) > 1]
    numeric = all(isinstance(value, int | float) for name in varying for value in values[name])
    return varying[0] if len(varying) == 1 and numeric else ""


def _group(workload: str, parameter: str, found: list[RunResult]) -> SweepGroup:
    points: dict[tuple[str, str], dict[float, RunResult]] = {}
    baseline_key: tuple[str, str] | None = None
    for one in found:
        key = (one.run.plan.variant, one.run.plan.device)
        if not one.run.plan.baseline:
            baseline_key = key
        if one.summary is not None:
            points.setdefault(key, {})[float(one.run.plan.parameters[parameter])] = one
    lines: dict[tuple[str, str], SweepLine] = {}
    for key, at in points.items():
        sizes = tuple(sorted(at))
        lines[key] = SweepLine(key[0], key[1], sizes, tuple(at[size] for size in sizes))
    baseline = lines.get(baseline_key) if baseline_key is not None else None
    return SweepGroup(workload, parameter, baseline, tuple(lines.values()))


def _crossover(baseline: SweepLine, line: SweepLine) -> Crossover | None:
    """From sizes at which the intervals allow a verdict; where the two cannot be told apart, nothing is said."""
    theirs = dict(zip(baseline.sizes, baseline.results, strict=True))
    certain: list[tuple[float, float]] = []
    compared = False
    for size, one in zip(line.sizes, line.results, strict=True):
        other = theirs.get(size)
        found = speedup(other.run.samples("run"), one.run.samples("run")) if other is not None else None
        if found is None:
            continue
        compared = True
        if found.verdict in ("faster", "slower"):
            certain.append((size, found.ratio))
    if not certain:
        return Crossover(line.label, None, None, None, "cannot be told apart") if compared else None
    verdict = "faster" if certain[-1][1] > 1 else "slower"
    for (low, before), (high, after) in reversed(list(pairwise(certain))):
        if (before > 1) != (after > 1) and low > 0:
            share = math.log(before) / (math.log(before) - math.log(after))
            size = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
            return Crossover(line.label, size, low, high, verdict)
    return Crossover(line.label, None, None, None, verdict)
