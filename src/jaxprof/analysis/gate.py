"""Limits on facts and times: how much each may grow over a baseline, and whether it did.

A fact that a side does not know is undecided, never within its limit. Two programs of different size, device or
precision are not the same measurement, and leave every limit undecided. A time is decided only if both sides were
measured in turns, by the whole interval of its growth.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from jaxprof.analysis.difference import FACTS, TIMES, Compared, FigureDifference
from jaxprof.analysis.run_difference import CollectiveDifference, RunDifference
from jaxprof.errors import UsageError, unknown_name
from jaxprof.stats.comparison import LimitState, TimeComparison
from jaxprof.units import counted

if TYPE_CHECKING:
    from jaxprof.analysis.ab import AbResult
    from jaxprof.analysis.run_result import RunResult
    from jaxprof.analysis.session_difference import PhaseDifference
    from jaxprof.session import Run

_LIMIT: Final = re.compile(r"\s*(?P<fact>[a-z_]+)\s*(?::\s*(?P<growth>\d+(?:\.\d+)?)\s*%\s*)?")


@dataclass(frozen=True, slots=True)
class GateLimit:
    """Limit on the growth of a fact or a time."""

    fact: str
    """One of `FACTS` or `TIMES`."""
    growth: float = 0.0
    """Allowed growth as a share of the baseline: 0.01 allows 1 % more."""

    @property
    def is_time(self) -> bool:
        """Whether the limit is on a time."""
        return self.fact in TIMES

    @property
    def figure(self) -> Compared:
        """The figure that the limit is on."""
        return {**FACTS, **TIMES}[self.fact]

    @property
    def text(self) -> str:
        """The limit as `--fail-on` takes it, such as `flops:1%`."""
        return f"{self.fact}:{100 * self.growth:g}%" if self.growth else self.fact


@dataclass(frozen=True, slots=True)
class GateBase:
    """What a program is compared with, and how its name was interpreted."""

    name: str
    """Name as the user gave it."""
    reading: Literal["path", "target", "session", "revision"]
    place: str
    """Location: a path, a target, or the folder of a repository."""
    commit: str = ""
    """Abbreviated hash of a revision; otherwise empty."""
    dirty: bool = False
    """Whether the working tree has uncommitted changes, for a revision."""


@dataclass(frozen=True, slots=True)
class GateRow:
    """One limit, applied to one program."""

    label: str
    """The program and its device, as text."""
    limit: GateLimit
    state: LimitState
    figure: FigureDifference
    reason: str = ""
    """Why the row is undecided, or what exceeded the limit if the numbers do not show it."""
    growth: float | None = None
    """Growth of a time as a share, from its samples; None if not measured together."""
    growth_low: float | None = None
    """Lower end of the 95 % interval of `growth`; the intervals of all times of one gate hold together."""
    growth_high: float | None = None
    launches_to_decide: int | None = None
    """Number of further launches that would decide an undecided time; None if unknown."""


@dataclass(frozen=True, slots=True)
class GateResult:
    """Results of all limits."""

    base: GateBase
    rows: tuple[GateRow, ...]
    """Exact facts first, then times."""
    notes: tuple[str, ...] = ()
    """Notes to read before the rows."""
    measured: AbResult | None = None
    """Comparison that the times rest on."""

    @property
    def outcome(self) -> LimitState:
        """`passed` if any limit was exceeded, else `undecided` if any is, else `within`."""
        states = {row.state for row in self.rows}
        return "passed" if "passed" in states else "undecided" if "undecided" in states else "within"


def read_limits(texts: Iterable[str]) -> tuple[GateLimit, ...]:
    """Return the limits in order. Raises UsageError for an unreadable limit, and for two on the same fact."""
    limits: dict[str, GateLimit] = {}
    for text in texts:
        limit = read_limit(text)
        before = limits.setdefault(limit.fact, limit)
        if before != limit:
            raise UsageError(
                f"--fail-on {limit.fact} is given twice, as {before.text} and {limit.text}", "Keep one of them."
            )
    return tuple(limits.values())


def read_limit(text: str) -> GateLimit:
    """Return the limit in text such as `flops:1%` or `kernels`. Raises UsageError."""
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise UsageError(
            f"cannot read --fail-on {text!r}",
            "It looks like --fail-on kernels, --fail-on flops:1% or --fail-on run:5%.",
        )
    fact = match["fact"]
    growth = float(match["growth"] or 0) / 100
    if fact in TIMES and not growth:
        raise UsageError(f"--fail-on {fact} is a time, and two times are never equal", f"Say by how much: {fact}:5%.")
    if fact not in FACTS and fact not in TIMES:
        raise unknown_name("fact", fact, (*FACTS, *TIMES))
    return GateLimit(fact, growth)


def versions_differ(before: Run, after: Run) -> str:
    """Return a note if two programs were compiled by different versions of jax or jaxlib; otherwise empty."""
    ours, theirs = (versions_of(run) for run in (before, after))
    if ours == theirs or not ours or not theirs:
        return ""
    return f"compiled by different versions, which changes programs by itself: base {ours}; now {theirs}"


def of_another_file(before: Run, after: Run) -> str:
    """Return a note if a kept program of the same name was compiled from another file; otherwise empty."""
    ours, theirs = before.plan.target, after.plan.target
    if ours == theirs or not ours or not theirs or before.plan.workload != after.plan.workload:
        return ""
    return f"the base was compiled from {ours}, and what is there now from {theirs}"


def arguments_differ(before: Sequence[str], after: Sequence[str]) -> str:
    """Return a note if two programs are called with different arrays, so that their facts reflect the sizes; otherwise
    empty."""
    ours, theirs = Counter(before), Counter(after)
    if ours == theirs or not before or not after:
        return ""
    gone, new = (", ".join(sorted(difference.elements())) or "nothing" for difference in (ours - theirs, theirs - ours))
    return f"called with other arguments: {gone} in the base; {new} now"


def versions_of(run: Run) -> str:
    """Return the versions that compiled a program, as `jax 0.10.2, jaxlib 0.10.2`; empty if they were not reported."""
    environment = run.environment
    if environment is None or environment.jax is None:
        return ""
    return f"jax {environment.jax}, jaxlib {environment.jaxlib or 'unknown'}"


def judged(label: str, difference: RunDifference, limits: Iterable[GateLimit]) -> tuple[GateRow, ...]:
    """Apply each limit on a fact to two runs, the first being the baseline."""
    return tuple(_judge_fact(label, difference, limit) for limit in limits if not limit.is_time)


def judged_times(label: str, compared: AbResult, limits: Iterable[GateLimit]) -> tuple[GateRow, ...]:
    """Apply each limit on a time to B, measured in turns with A. Reads the HLO of both."""
    wanted = [limit for limit in limits if limit.is_time]
    (versus,) = compared.versus
    phases = {phase.code: phase for phase in compared.difference(versus).runs[0].phases}
    rows: list[GateRow] = []
    for limit in wanted:
        phase = phases.get(limit.fact)
        if phase is None:
            reason = versus.times.refusal or "not known of either side"
            rows.append(GateRow(label, limit, "undecided", FigureDifference(limit.fact, None, None, "second"), reason))
            continue
        times = phase.times
        if limit.fact != "run" and times.launches == 1:
            once = "it happens once in a process, and there was one launch: --launches 5 has five"
            times = replace(times, refusal=once)
        rows.append(_judge_time(label, limit, phase, replace(times, family=len(wanted))))
    return tuple(rows)


def judged_apart(label: str, before: RunResult, after: RunResult, limits: Iterable[GateLimit]) -> tuple[GateRow, ...]:
    """Return each limit on a time as undecided, because the two were not measured in turns."""
    reason = "not measured together: --base REV measures both in turns"
    ours, theirs = before.phase_seconds, after.phase_seconds
    times = [limit for limit in limits if limit.is_time]
    figures = [FigureDifference(each.fact, ours.get(each.fact), theirs.get(each.fact), "second") for each in times]
    return tuple(GateRow(label, each, "undecided", figure, reason) for each, figure in zip(times, figures, strict=True))


def _judge_time(label: str, limit: GateLimit, phase: PhaseDifference, times: TimeComparison) -> GateRow:
    state, reason = times.within(limit.growth)
    low, high = times.growth_interval or (None, None)
    more = times.launches_until(lambda more: more.within(limit.growth)[0] != "undecided") if reason else None
    return GateRow(label, limit, state, phase, reason, times.growth, low, high, more)


def _judge_fact(label: str, difference: RunDifference, limit: GateLimit) -> GateRow:
    figure = difference.fact(limit.fact) or FigureDifference(limit.fact, None, None, limit.figure.unit)
    before, after = figure.before, figure.after

    def row(state: LimitState, reason: str = "") -> GateRow:
        return GateRow(label, limit, state, figure, reason)

    if difference.unlike:
        return row("undecided", f"not the same measurement: {'; '.join(difference.unlike)}")
    if before is None or after is None:
        side = "either side" if before is None and after is None else "the baseline" if before is None else "this side"
        return row("undecided", f"not known of {side}")
    worse, allowed = after - before, before * limit.growth
    if limit.figure.less_is_worse:
        worse = -worse
    if worse > allowed:
        return row("passed")
    if limit.fact == "collectives" and (
        more := [_growth_text(collective) for collective in difference.collectives or () if _grew(collective)]
    ):
        return row("passed", "; ".join(more))
    return row("within")


def _grew(collective: CollectiveDifference) -> bool:
    return (
        collective.before_count is not None
        and collective.after_count is not None
        and collective.after_count > collective.before_count
    )


def _growth_text(collective: CollectiveDifference) -> str:
    over = f" over {counted(collective.group_size, 'device')}" if collective.group_size is not None else ""
    return f"{collective.opcode}{over}: {collective.before_count} → {collective.after_count}"
