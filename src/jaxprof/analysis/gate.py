"""Limits on exact facts: by how much each may grow between a baseline and what is there now, and whether it did.

A fact that a side does not know is undecided, never within. Two programs of another size, device or precision are not
the same measurement, and leave every limit undecided.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from jaxprof.analysis.run_difference import FACTS, CollectiveDifference, RunDifference
from jaxprof.errors import UsageError, unknown_name

LimitState: TypeAlias = Literal["within", "passed", "undecided"]
LESS_IS_WORSE: Final = frozenset({"donated"})
"""Facts that must not shrink."""
_LIMIT: Final = re.compile(r"\s*(?P<fact>[a-z_]+)\s*(?::\s*(?P<growth>\d+(?:\.\d+)?)\s*%\s*)?")


@dataclass(frozen=True, slots=True)
class GateLimit:
    """How much a fact may grow."""

    fact: str
    """One of `FACTS`."""
    growth: float = 0.0
    """As a share of the baseline: 0.01 allows 1 % more."""

    @property
    def text(self) -> str:
        """As `--fail-on` takes it: `flops:1%`."""
        return f"{self.fact}:{100 * self.growth:g}%" if self.growth else self.fact


@dataclass(frozen=True, slots=True)
class GateBase:
    """What a program is held against, and how the word for it was read."""

    name: str
    """As it was given."""
    reading: Literal["path", "target", "session", "revision"]
    place: str
    """Where it is: a path, a target, the folder of a repository."""
    commit: str = ""
    """Of a revision, its abbreviated hash."""
    dirty: bool = False
    """Of a revision: whether the program beside it has changes that are not committed."""


@dataclass(frozen=True, slots=True)
class GateRow:
    """One limit, applied to one program."""

    label: str
    """The program and its device."""
    limit: GateLimit
    state: LimitState
    before: float | None
    after: float | None
    unit: str
    reason: str = ""
    """Why it is undecided, or what passed the limit where the numbers do not say it."""


@dataclass(frozen=True, slots=True)
class GateResult:
    """All limits, applied."""

    base: GateBase
    rows: tuple[GateRow, ...]

    @property
    def outcome(self) -> LimitState:
        """`passed` where a limit was passed, else `undecided` where one is, else `within`."""
        states = {row.state for row in self.rows}
        return "passed" if "passed" in states else "undecided" if "undecided" in states else "within"


def read_limits(texts: Iterable[str]) -> tuple[GateLimit, ...]:
    """The limits in order. Raises UsageError for one that cannot be read, and for two on the same fact."""
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
    """The limit that `flops:1%` or `kernels` says. Raises UsageError."""
    match = _LIMIT.fullmatch(text)
    if match is None:
        raise UsageError(f"cannot read --fail-on {text!r}", "It looks like --fail-on kernels or --fail-on flops:1%.")
    fact = match["fact"]
    if fact in ("run", "first_run", "trace", "lower", "transfer_in", "transfer_out"):
        raise UsageError(f"--fail-on {fact} is a time", "The gate decides on exact facts; jaxprof ab compares times.")
    if fact not in FACTS:
        raise unknown_name("fact", fact, FACTS)
    return GateLimit(fact, float(match["growth"] or 0) / 100)


def judged(label: str, difference: RunDifference, limits: Iterable[GateLimit]) -> tuple[GateRow, ...]:
    """Each limit applied to two runs, the first the baseline."""
    return tuple(_judged(label, difference, limit) for limit in limits)


def _judged(label: str, difference: RunDifference, limit: GateLimit) -> GateRow:
    fact = difference.fact(limit.fact)
    before, after = (fact.before, fact.after) if fact is not None else (None, None)
    unit = fact.unit if fact is not None else ""

    def row(state: LimitState, reason: str = "") -> GateRow:
        return GateRow(label, limit, state, before, after, unit, reason)

    if difference.unlike:
        return row("undecided", f"not the same measurement: {'; '.join(difference.unlike)}")
    if before is None or after is None:
        side = "either side" if before is None and after is None else "the baseline" if before is None else "this side"
        return row("undecided", f"not known of {side}")
    worse, allowed = after - before, before * limit.growth
    if limit.fact in LESS_IS_WORSE:
        worse = -worse
    if worse > allowed:
        return row("passed")
    if limit.fact == "collectives" and (
        more := [_more(collective) for collective in difference.collectives or () if _grew(collective)]
    ):
        return row("passed", "; ".join(more))
    return row("within")


def _grew(collective: CollectiveDifference) -> bool:
    return (
        collective.before_count is not None
        and collective.after_count is not None
        and collective.after_count > collective.before_count
    )


def _more(collective: CollectiveDifference) -> str:
    over = f" over {collective.group_size} devices" if collective.group_size is not None else ""
    return f"{collective.opcode}{over}: {collective.before_count} → {collective.after_count}"
