"""The sides of one comparison: their times and exact facts, how each compares with A, and whether they agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jaxprof.analysis.agreement import Agreement
from jaxprof.analysis.run_result import RunResult, result
from jaxprof.analysis.session_difference import SessionDifference, session_difference
from jaxprof.analysis.speedup import compared
from jaxprof.session import Session
from jaxprof.stats import TimeComparison, Verdict


@dataclass(frozen=True, slots=True)
class AbVersus:
    """One side against A."""

    label: str
    times: TimeComparison
    margin: float
    results: Agreement | None
    """None: the two results could not be compared."""
    difference: SessionDifference
    """What else is different, exact facts first; A is `before`."""

    @property
    def verdict(self) -> Verdict:
        """What may be said of it."""
        return self.times.verdict(self.margin)

    @property
    def reason(self) -> str:
        """Why nothing may be said; empty otherwise."""
        return self.times.reason(self.margin)


@dataclass(frozen=True, slots=True)
class AbResult:
    """A comparison as a whole."""

    sides: tuple[RunResult, ...]
    """A, A', B..."""
    versus: tuple[AbVersus, ...]
    """B against A, C against A..."""
    control: AbVersus | None
    """A' against A."""

    @property
    def failed(self) -> tuple[RunResult, ...]:
        """The sides whose run did not end well."""
        return tuple(side for side in self.sides if side.run.status != "ok")


def ab_result(session: Session, margin: float, results: Mapping[str, Agreement | None]) -> AbResult | None:
    """The comparison that `session` holds; None if it holds none. `margin`: what counts as the same, as a share.
    `results`: by a side's label, its result beside A's."""
    runs = [run for run in session.runs.values() if run.plan.side]
    if not runs:
        return None
    baseline, *others = runs
    versus = [
        AbVersus(
            label=run.plan.side,
            times=compared(session, baseline, run),
            margin=margin,
            results=results.get(run.plan.side),
            difference=session_difference(session, session, run_before=baseline.id, run_after=run.id),
        )
        for run in others
    ]
    return AbResult(
        sides=tuple(result(session, run.id) for run in runs),
        versus=tuple(side for side, run in zip(versus, others, strict=True) if not run.plan.is_control),
        control=next((side for side, run in zip(versus, others, strict=True) if run.plan.is_control), None),
    )
