"""The sides of a comparison in a session: their times, how each compares with A, and whether their results agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxprof.analysis.run_result import RunResult, result
from jaxprof.analysis.speedup import compared
from jaxprof.events import ComparisonPlanned, ResultsCompared, SideSpec
from jaxprof.session import Run, Session
from jaxprof.stats import MARGIN, TimeComparison, Verdict

if TYPE_CHECKING:
    from jaxprof.analysis.session_difference import SessionDifference


@dataclass(frozen=True, slots=True)
class AbVersus:
    """One side against A."""

    run: Run
    times: TimeComparison
    results: ResultsCompared | None
    """None: the two results could not be compared."""

    @property
    def label(self) -> str:
        """Its name: `B`."""
        return self.run.plan.side

    @property
    def verdict(self) -> Verdict:
        """What may be said of it."""
        return self.times.verdict()

    @property
    def reason(self) -> str:
        """Why nothing may be said; empty otherwise."""
        return self.times.reason()


@dataclass(frozen=True, slots=True)
class AbResult:
    """A comparison as a whole."""

    session: Session
    plan: ComparisonPlanned
    """What is compared, and how."""
    sides: tuple[RunResult, ...]
    """A, A', B..."""
    versus: tuple[AbVersus, ...]
    """B against A, C against A..."""
    control: AbVersus | None
    """A' against A."""

    @property
    def baseline(self) -> Run:
        """The run of A."""
        return self.sides[0].run

    @property
    def failed(self) -> tuple[RunResult, ...]:
        """The sides whose run failed."""
        return tuple(side for side in self.sides if side.run.status != "ok")

    def difference(self, versus: AbVersus) -> SessionDifference:
        """What else is different, exact facts first; A is `before`. Reads the HLO of both."""
        from jaxprof.analysis.session_difference import session_difference  # a report without exact facts needs none

        return session_difference(self.session, self.session, run_before=self.baseline.id, run_after=versus.run.id)


def ab_result(session: Session, baseline: str) -> AbResult:
    """The comparison whose first side is the run `baseline`. Raises KeyError for an unknown id."""
    first = session.runs[baseline]
    others = [run for run in session.runs.values() if run.plan.side and run.plan.baseline == baseline]
    versus = [AbVersus(run, compared(session, first, run), run.results) for run in others]
    plan = first.comparison
    if plan is None:
        sides = [SideSpec(label=run.plan.side, title=run.plan.workload) for run in (first, *others)]
        plan = ComparisonPlanned(sides=[side for side in sides if not side.label.endswith("'")], margin=MARGIN)
    return AbResult(
        session=session,
        plan=plan,
        sides=tuple(result(session, run.id) for run in (first, *others)),
        versus=tuple(side for side in versus if not side.run.plan.is_control),
        control=next((side for side in versus if side.run.plan.is_control), None),
    )


def sides_beside(session: Session, run: Run) -> list[Run]:
    """All sides of the comparison that `run` is one of, A first; empty for a run that is no side."""
    first = run.plan.baseline or run.id
    return [side for side in session.runs.values() if run.plan.side and first in (side.id, side.plan.baseline)]


def side_versus(session: Session, before: Run, after: Run) -> AbVersus | None:
    """`after` beside A, where `before` is the A that it was compared with; None for all other runs."""
    if not after.plan.side or after.plan.is_control or session.runs.get(before.id) is not before:
        return None
    if after.plan.baseline != before.id or session.runs.get(after.id) is not after:
        return None
    return AbVersus(after, compared(session, before, after), after.results)


def side_title(session: Session, run: Run) -> str:
    """What a side is, for people: `B  train.py:step, XLA_FLAGS=...`; empty for a run that is no side."""
    side = run.plan.side
    first = session.runs.get(run.plan.baseline or run.id)
    specs = first.comparison.sides if first is not None and first.comparison is not None else []
    title = next((spec.title for spec in specs if spec.label == side.removesuffix("'")), run.plan.workload)
    return f"{side}  {title}" if side else ""


def ab_results(session: Session) -> list[AbResult]:
    """The comparisons that a session holds, in the order of the plan."""
    return [ab_result(session, run.id) for run in session.runs.values() if run.plan.side and not run.plan.baseline]
