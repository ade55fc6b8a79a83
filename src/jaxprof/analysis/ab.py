"""The sides of a comparison in a session: their times, how each compares with A, and whether their results agree.

Results are compared array by array, as the engines wrote them. Both measures of an error are relative to the largest
magnitude of the array, as in the check of a run (`workloads.check`): the relative error, and the number of ULPs, the
distance between neighbouring numbers of the dtype at that magnitude. Compared number by number, a sum whose terms
cancel would be thousands of ULPs off without being wrong.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxprof.analysis.run_result import RunResult, result
from jaxprof.analysis.speedup import compared
from jaxprof.events import ComparisonPlanned, ResultsCompared, SideSpec, WarningRaised, finite
from jaxprof.session import Run, Session
from jaxprof.session.run import UNLIKE_RESULTS
from jaxprof.stats.comparison import MARGIN, TimeComparison
from jaxprof.units import counted

if TYPE_CHECKING:
    import numpy

    from jaxprof.analysis.session_difference import SessionDifference
    from jaxprof.engine.protocol.request import KeptLeaf

_ACCEPTED = {
    "float64": 1e-10,
    "complex128": 1e-10,
    "float32": 1e-4,
    "complex64": 1e-4,
    "float16": 1e-2,
    "bfloat16": 5e-2,
}
"""Largest difference between two ways to compute the same, relative to the largest magnitude. Narrower float dtypes:
0.25."""
_MANTISSA_BITS = {
    "float64": 52, "complex128": 52, "float32": 23, "complex64": 23, "float16": 10, "bfloat16": 7,
    "float8_e4m3fn": 3, "float8_e5m2": 2,
}  # fmt: skip
_LEAST_EXPONENT = {"float64": -1022, "complex128": -1022, "float16": -14, "float8_e4m3fn": -6, "float8_e5m2": -14}
"""Exponent of the smallest normal number; other dtypes have float32's, -126."""


def agreement(baseline: Path, other: Path) -> ResultsCompared | None:
    """Compare two kept results; None if one of them was not kept."""
    first, second = _load(baseline), _load(other)
    if first is None or second is None:
        return None
    return compare_results(first, second)


def unlike_warning(run: str, baseline: str, agreement: ResultsCompared | None) -> WarningRaised | None:
    """Return the warning that a session keeps if the result of `run` differs from that of the side `baseline`."""
    if agreement is None or agreement.agree:
        return None
    if not agreement.alike:
        return WarningRaised(
            run=run,
            code=UNLIKE_RESULTS,
            message=f"the result is not like {baseline}'s: {agreement.note}",
            advice="Programs with different results do not do the same work: make both return the same arrays.",
        )
    return WarningRaised(
        run=run,
        code="results_differ",
        message=f"the result differs from {baseline}'s {agreement.how_far}",
        advice="Another precision, order of sums or seed may explain it; a mistake may, too.",
    )


def compare_results(
    baseline: list[tuple[KeptLeaf, numpy.ndarray[Any, Any]]], other: list[tuple[KeptLeaf, numpy.ndarray[Any, Any]]]
) -> ResultsCompared:
    """Compare arrays with their descriptions, in the order of their trees."""
    if unlike := difference([leaf for leaf, _ in baseline], [leaf for leaf, _ in other]):
        return ResultsCompared(alike=False, agree=False, relative=None, ulps=None, note=unlike)
    worst, where, agree, ulps = 0.0, "", True, None
    for (leaf, right), (_, got) in zip(baseline, other, strict=True):
        relative, apart = _errors(right, got, leaf.dtype)
        if leaf.dtype in _MANTISSA_BITS and apart is not None:
            ulps = max(ulps or 0, apart)
        agree = agree and relative <= accepted_error(leaf.dtype)
        if relative > worst:
            worst, where = relative, leaf.path
    largest = finite(worst)
    return ResultsCompared(
        alike=True, agree=agree, relative=largest, ulps=None if largest is None else ulps, where=where
    )


def difference(baseline: list[KeptLeaf], other: list[KeptLeaf]) -> str:
    """Describe how two trees differ; empty if they have arrays of the same dtypes and shapes."""
    if len(baseline) != len(other):
        return f"{counted(len(baseline), 'array')} and {counted(len(other), 'array')}"
    for ours, theirs in zip(baseline, other, strict=True):
        if ours.spec != theirs.spec:
            return f"{ours.path}: {ours.spec} and {theirs.spec}" if ours.path else f"{ours.spec} and {theirs.spec}"
    return ""


def accepted_error(dtype: str) -> float:
    """Return how far two computations of an array of that dtype may differ, relative to its largest magnitude."""
    return _ACCEPTED.get(dtype, 0.25 if dtype.startswith("float") else 0.0)


def _errors(right: Any, got: Any, dtype: str) -> tuple[float, int | None]:
    """Return the largest relative error of an array, and the largest number of ULPs; None if ULPs cannot be counted."""
    import numpy as np

    if right.size == 0 or np.array_equal(right, got, equal_nan=right.dtype.kind in "fc"):
        return 0.0, 0
    if right.dtype.kind == "c":
        right, got = (np.ascontiguousarray(array).view(array.real.dtype) for array in (right, got))
    if right.dtype.kind != "f":
        with np.errstate(all="ignore"):
            differences = np.abs(right.astype(np.float64) - got.astype(np.float64))
            largest = float(np.abs(right.astype(np.float64)).max()) or 1.0
        return max(float(differences.max()) / largest, 5e-324), None  # they differ, even if float64 does not show it
    wide, other = right.astype(np.float64), got.astype(np.float64)
    same = (wide == other) | (np.isnan(wide) & np.isnan(other))
    known = np.isfinite(wide) & np.isfinite(other)
    if not (same | known).all():
        return math.inf, None
    with np.errstate(all="ignore"):
        error = float(np.where(same, 0.0, np.abs(wide - other)).max())
    largest = float(np.max(np.abs(wide), initial=0.0, where=known))
    exponent = max(math.frexp(largest)[1] - 1, _LEAST_EXPONENT.get(dtype, -126))
    ulp = math.ldexp(1.0, exponent - _MANTISSA_BITS.get(dtype, 23))
    return error / (largest or 1.0), math.ceil(min(error / (ulp or 5e-324), 2.0**62))


def _load(path: Path) -> list[tuple[KeptLeaf, numpy.ndarray[Any, Any]]] | None:
    """Return the arrays of a file that an engine wrote; None if it is missing or unreadable."""
    from zipfile import BadZipFile

    import msgspec
    import numpy as np

    from jaxprof.engine.protocol.request import LEAVES, KeptLeaf

    try:
        with np.load(path, allow_pickle=False) as file:
            leaves = msgspec.convert(json.loads(str(file[LEAVES])), type=list[KeptLeaf])
            return [(leaf, file[f"leaf{number}"]) for number, leaf in enumerate(leaves)]
    except (OSError, EOFError, ValueError, LookupError, BadZipFile, msgspec.ValidationError):
        return None


@dataclass(frozen=True, slots=True)
class AbVersus:
    """One side compared with A."""

    run: Run
    times: TimeComparison

    @property
    def label(self) -> str:
        """Label of the side, such as `B`."""
        return self.run.plan.side


@dataclass(frozen=True, slots=True)
class AbResult:
    """A whole comparison."""

    session: Session
    plan: ComparisonPlanned
    """What is compared, and how."""
    sides: tuple[RunResult, ...]
    """All sides, beginning with A."""
    versus: tuple[AbVersus, ...]
    """B compared with A, C compared with A, and so on."""

    @property
    def baseline(self) -> Run:
        """The run of A."""
        return self.sides[0].run

    @property
    def failed(self) -> tuple[RunResult, ...]:
        """Sides whose run failed."""
        return tuple(side for side in self.sides if side.run.status != "ok")

    def difference(self, versus: AbVersus) -> SessionDifference:
        """Return all other differences, exact facts first; A is `before`. Reads the HLO of both."""
        from jaxprof.analysis.session_difference import session_difference  # only for exact facts

        return session_difference(self.session, self.session, run_before=self.baseline.id, run_after=versus.run.id)


def ab_result(session: Session, baseline: str) -> AbResult:
    """Return the comparison whose first side is the run `baseline`. Raises KeyError for an unknown id."""
    first = session.runs[baseline]
    others = [run for run in session.runs.values() if run.plan.side and run.plan.baseline == baseline]
    plan = first.comparison
    if plan is None:
        sides = [SideSpec(label=run.plan.side, title=run.plan.workload) for run in (first, *others)]
        plan = ComparisonPlanned(sides=sides, margin=MARGIN)
    return AbResult(
        session=session,
        plan=plan,
        sides=tuple(result(session, run.id) for run in (first, *others)),
        versus=tuple(AbVersus(run, compared(session, first, run)) for run in others),
    )


def sides_beside(session: Session, run: Run) -> list[Run]:
    """Return all sides of the comparison that `run` belongs to, A first; empty if it is not a side."""
    first = run.plan.baseline or run.id
    return [side for side in session.runs.values() if run.plan.side and first in (side.id, side.plan.baseline)]


def side_versus(session: Session, before: Run, after: Run) -> AbVersus | None:
    """Return `after` compared with A, if `before` is that A; None for all other runs."""
    if not after.plan.side or session.runs.get(before.id) is not before:
        return None
    if after.plan.baseline != before.id or session.runs.get(after.id) is not after:
        return None
    return AbVersus(after, compared(session, before, after))


def side_title(session: Session, run: Run) -> str:
    """Return the title of a side, such as `B  train.py:step, XLA_FLAGS=...`; empty for a run that is not a side."""
    side = run.plan.side
    first = session.runs.get(run.plan.baseline or run.id)
    specs = first.comparison.sides if first is not None and first.comparison is not None else []
    title = next((spec.title for spec in specs if spec.label == side), run.plan.workload)
    return f"{side}  {title}" if side else ""


def ab_results(session: Session) -> list[AbResult]:
    """Return the comparisons of a session, in the order of the plan."""
    return [ab_result(session, run.id) for run in session.runs.values() if run.plan.side and not run.plan.baseline]
