"""Limits on facts and times: how much each may grow over a baseline, and whether it did.

A fact that a side does not know is undecided, never within its limit. Two programs of different size, device or
precision are not the same measurement, and leave every limit undecided. A time is decided only if both sides were
measured in turns, by the whole interval of its growth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from jaxprof.analysis.runs.run_result import result
from jaxprof.base.errors import UsageError
from jaxprof.base.grouping import pair_up
from jaxprof.base.units import counted
from jaxprof.base.values import frozen
from jaxprof.findings.compare import FigureDifference
from jaxprof.findings.compare.session_difference import (
    PhaseDifference,
    RunDifference,
    ab_difference,
    arguments_of,
    measurement,
    run_difference,
)
from jaxprof.session import Run, Session
from jaxprof.stats.comparison import LimitState, TimeComparison

if TYPE_CHECKING:
    from jaxprof.analysis.runs.ab import AbResult

Program: TypeAlias = "tuple[Session, Run]"
"""A compiled program: a run, with its session."""


@frozen
class GateLimit:
    """Limit on the growth of a fact or a time."""

    fact: str
    """Key of the fact, or code of the phase."""
    growth: float = 0.0
    """Allowed growth as a share of the baseline: 0.01 allows 1 % more."""
    is_time: bool = False
    less_is_worse: bool = False
    """Whether the fact must not shrink; otherwise it must not grow."""

    @property
    def text(self) -> str:
        """The limit as `--fail-on` takes it, such as `flops:1%`."""
        return f"{self.fact}:{100 * self.growth:g}%" if self.growth else self.fact


@frozen
class GateBase:
    """What a program is compared with, and how its name was interpreted."""

    name: str
    """Name as the user gave it."""
    reading: Literal["path", "target", "session", "revision"]
    location: str
    """Location: a path, a target, or the folder of a repository."""
    commit: str = ""
    """Abbreviated hash of a revision; otherwise empty."""
    dirty: bool = False
    """Whether the working tree has uncommitted changes, for a revision."""


@frozen
class GateRow:
    """One limit, applied to one program."""

    label: str
    """The program and its device, as text."""
    limit: GateLimit
    state: LimitState
    figure: FigureDifference
    reason: str = ""
    """Why the row is undecided, or what exceeded the limit if the numbers do not show it."""
    times: TimeComparison | None = None
    """Comparison that a time rests on; None if not measured together. The intervals of all times of one gate hold
    together."""
    launches_to_decide: int | None = None
    """Number of further launches that would decide an undecided time; None if unknown."""

    @property
    def growth(self) -> float | None:
        """Growth as a share of the baseline; that of a time comes from its samples."""
        if self.limit.is_time:
            return self.times.growth if self.times is not None else None
        return self.figure.growth


@frozen
class GateResult:
    base: GateBase
    rows: tuple[GateRow, ...]
    """Exact facts first, then times."""
    notes: tuple[str, ...] = ()
    """Notes to read before the rows."""
    measured: AbResult | None = None
    """Comparison that the times rest on."""

    @property
    def outcome(self) -> LimitState:
        states = {row.state for row in self.rows}
        if "exceeded" in states:
            return "exceeded"
        return "undecided" if "undecided" in states else "within"


def judge_programs(
    base: GateBase, before: Sequence[Program], after: Sequence[Program], limits: Sequence[GateLimit]
) -> tuple[list[GateRow], list[str]]:
    """Apply the limits to each program of `after`, compared with its own of `before`: facts first, then times, which
    are undecided because the two were not measured in turns. Return the rows, and the notes to read before them. Raises
    UsageError if the base has no program on a device, or none of these programs."""
    kinds = {run.device_kind: run for _, run in before}
    for _, run in after:
        if run.device_kind not in kinds:
            hint = f"It has programs on {', '.join(kinds)}; --device compiles for another."
            raise UsageError(f"{base.name} has no program on {run.device_kind}", hint)
    found = pair_programs(before, after)
    held = [(old, new) for old, new in found if old is not None and new is not None]
    if not held:
        has, wanted = (", ".join(f"{run.id} {run.label}" for _, run in side[:10]) for side in (before, after))
        raise UsageError(f"{base.name} has none of these programs: {wanted}", f"It has {has}.")
    rows = [
        row for pair in held for row in judge_facts(label_of(pair[1][1]), run_difference(*pair[0], *pair[1]), limits)
    ]
    times = [limit for limit in limits if limit.is_time]
    for pair in held if times else ():
        ours, theirs = (result(session, run.id).phase_seconds for session, run in pair)
        for limit in times:
            figure = FigureDifference(limit.fact, ours.get(limit.fact), theirs.get(limit.fact))
            reason = "not measured together: --base REV measures both in turns"
            rows.append(GateRow(label_of(pair[1][1]), limit, "undecided", figure, reason))
    notes = [note for pair in held for note in _notes(*pair, is_kept=base.reading == "session")]
    notes += [f"not in the base: {new[1].label}" for old, new in found if old is None and new is not None]
    return rows, list(dict.fromkeys(filter(None, notes)))


def label_of(run: Run) -> str:
    return f"{run.plan.workload} {run.plan.variant} {run.plan.device}"


def pair_programs(before: Sequence[Program], after: Sequence[Program]) -> list[tuple[Program | None, Program | None]]:
    """Pair programs by device, name and variant, those of the same measurement first. The only programs of a device
    belong together, whatever they are called."""
    counts = [Counter(run.device_kind for _, run in side) for side in (before, after)]

    def alone(program: Program) -> Hashable:
        kind = program[1].device_kind
        return kind if all(count[kind] == 1 for count in counts) else None

    keys: list[Callable[[Program], Hashable]] = [
        lambda program: (program[1].plan.workload, measurement(program[1])),
        lambda program: (program[1].device_kind, program[1].plan.workload, program[1].plan.variant),
        lambda program: (program[1].device_kind, program[1].plan.workload),
        alone,
    ]
    return pair_up(before, after, keys)


def _notes(before: Program, after: Program, *, is_kept: bool) -> Iterator[str]:
    """Yield what else differs between two programs: the versions that compiled them, the arrays that they are called
    with, so that their facts reflect the sizes, and the file of a base that `is_kept`. Unknown differs from nothing."""
    then, now = before[1].plan, after[1].plan
    known = [each for _, run in (before, after) if (each := run.environment) is not None and each.jax is not None]
    versions = [f"jax {each.jax}, jaxlib {each.jaxlib or 'unknown'}" for each in known]
    if len(versions) == 2 and versions[0] != versions[1]:
        yield "compiled by different versions, which changes programs by itself: base {}; now {}".format(*versions)
    gone, new = Counter(arguments_of(*before)), Counter(arguments_of(*after))
    if gone and new and gone != new:
        less, more = (", ".join(sorted(each.elements())) or "nothing" for each in (gone - new, new - gone))
        yield f"called with other arguments: {less} in the base; {more} now"
    if is_kept and then.target and now.target and then.target != now.target and then.workload == now.workload:
        yield f"the base was compiled from {then.target}, and what is there now from {now.target}"


def judge_facts(label: str, difference: RunDifference, limits: Iterable[GateLimit]) -> tuple[GateRow, ...]:
    """Apply each limit on a fact to two runs, the first being the baseline."""
    rows: list[GateRow] = []
    for limit in limits:
        if limit.is_time:
            continue
        figure = difference.facts.get(limit.fact) or FigureDifference(limit.fact, None, None)
        state, reason = _judge_fact(figure, difference, limit)
        rows.append(GateRow(label, limit, state, figure, reason))
    return tuple(rows)


def _judge_fact(figure: FigureDifference, difference: RunDifference, limit: GateLimit) -> tuple[LimitState, str]:
    """Return whether a fact is within its limit, and the reason if the numbers do not show it."""
    before, after = figure.before, figure.after
    if difference.unlike:
        return "undecided", f"not the same measurement: {'; '.join(difference.unlike)}"
    if before is None or after is None:
        side = "the baseline" if before is None else "this side"
        if before is None and after is None:
            side = "either side"
        return "undecided", f"not known of {side}"
    worse = before - after if limit.less_is_worse else after - before
    if worse > before * limit.growth:
        return "exceeded", ""
    # the sum hides a collective that grew while another one shrank
    more: list[str] = []
    for one in (difference.collectives or ()) if limit.fact == "collectives" else ():
        if one.before_count is not None and one.after_count is not None and one.after_count > one.before_count:
            over = f" over {counted(one.group_size, 'device')}" if one.group_size is not None else ""
            more.append(f"{one.opcode}{over}: {one.before_count} → {one.after_count}")
    return ("exceeded", "; ".join(more)) if more else ("within", "")


def judge_times(label: str, compared: AbResult, limits: Iterable[GateLimit]) -> tuple[GateRow, ...]:
    """Apply each limit on a time to B, measured in turns with A. Reads the HLO of both."""
    wanted = [limit for limit in limits if limit.is_time]
    (versus,) = compared.versus
    phases = {phase.code: phase for phase in ab_difference(compared, versus).runs[0].phases}
    rows: list[GateRow] = []
    for limit in wanted:
        phase = phases.get(limit.fact)
        if phase is None:
            reason = versus.times.refusal or "not known of either side"
            rows.append(GateRow(label, limit, "undecided", FigureDifference(limit.fact, None, None), reason))
            continue
        times = replace(phase.times, family=len(wanted))
        if limit.fact != "run" and times.launches == 1:
            once = "it happens once in a process, and there was one launch: --launches 5 has five"
            times = replace(times, refusal=once)
        rows.append(_judge_time(label, limit, phase, times))
    return tuple(rows)


def _judge_time(label: str, limit: GateLimit, phase: PhaseDifference, times: TimeComparison) -> GateRow:
    state, reason = times.within(limit.growth)
    more = times.launches_until(lambda more: more.within(limit.growth)[0] != "undecided") if reason else None
    return GateRow(label, limit, state, phase, reason, times, more)
