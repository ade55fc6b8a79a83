"""The sides of a comparison in a session: their times, how each compares with A, and whether their results agree.

Results are compared array by array, as the engines wrote them. An error is relative to the largest magnitude of the
array, as in the check of a run (`workloads.check`): compared number by number, a sum whose terms cancel would be far
off without being wrong.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from string import digits
from typing import TYPE_CHECKING, Any

from jaxprof.analysis.runs.run_result import RunResult, result
from jaxprof.analysis.runs.speedup import AbVersus, ab_versus
from jaxprof.base.units import counted
from jaxprof.base.values import frozen
from jaxprof.events import ComparisonPlanned, ResultsCompared, SideSpec, WarningRaised, finite
from jaxprof.session import Run, Session
from jaxprof.session.run import UNLIKE_RESULTS
from jaxprof.stats.comparison import MARGIN

if TYPE_CHECKING:
    import numpy

    from jaxprof.engine.protocol.request import KeptLeaf

_ACCEPTED = {
    "float64": 1e-10,
    "complex128": 1e-10,
    "float32": 1e-4,
    "complex64": 1e-4,
    "float16": 1e-2,
    "bfloat16": 5e-2,
}
"""Largest difference of two ways to compute the same, over the largest magnitude. Narrower dtypes: 0.25."""


def agreement(baseline: Path, other: Path, *, other_widths: bool = False) -> ResultsCompared | None:
    """Compare two kept results, in the order of their trees; None if one of them was not kept. `other_widths`: whether
    the same numbers may be float64 in one of them and float32 in the other."""
    first, second = _load(baseline), _load(other)
    if first is None or second is None:
        return None
    shapes = [
        [replace(leaf, dtype=leaf.dtype.rstrip(digits if other_widths else "")) for leaf, _ in side]
        for side in (first, second)
    ]
    if unlike := difference(*shapes):
        return ResultsCompared(alike=False, agree=False, relative=None, note=unlike)
    worst, where, agree = 0.0, "", True
    for (leaf, right), (_, got) in zip(first, second, strict=True):
        relative = _relative_error(right, got)
        accepted = _ACCEPTED.get(leaf.dtype, 0.25 if leaf.dtype.startswith("float") else 0.0)
        agree = agree and relative <= accepted
        if relative > worst:
            worst, where = relative, leaf.path
    return ResultsCompared(alike=True, agree=agree, relative=finite(worst), where=where)


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


def difference(baseline: list[KeptLeaf], other: list[KeptLeaf]) -> str:
    """Describe how two trees differ; empty if they have arrays of the same dtypes and shapes."""
    if len(baseline) != len(other):
        return f"{counted(len(baseline), 'array')} and {counted(len(other), 'array')}"
    for ours, theirs in zip(baseline, other, strict=True):
        if ours.spec != theirs.spec:
            return f"{ours.path}: {ours.spec} and {theirs.spec}" if ours.path else f"{ours.spec} and {theirs.spec}"
    return ""


def _relative_error(right: Any, got: Any) -> float:
    """Return an array's largest error over its largest magnitude; infinite if a number is finite on one side only."""
    import numpy as np

    if right.size == 0 or np.array_equal(right, got, equal_nan=right.dtype.kind in "fc"):
        return 0.0
    if right.dtype.kind == "c":
        right, got = (np.ascontiguousarray(array).view(array.real.dtype) for array in (right, got))
    if right.dtype.kind != "f":
        with np.errstate(all="ignore"):
            differences = np.abs(right.astype(np.float64) - got.astype(np.float64))
            largest = float(np.abs(right.astype(np.float64)).max()) or 1.0
        return max(float(differences.max()) / largest, 5e-324)  # they differ, even if float64 does not show it
    wide, other = right.astype(np.float64), got.astype(np.float64)
    same = (wide == other) | (np.isnan(wide) & np.isnan(other))
    known = np.isfinite(wide) & np.isfinite(other)
    if not (same | known).all():
        return math.inf
    with np.errstate(all="ignore"):
        error = float(np.where(same, 0.0, np.abs(wide - other)).max())
    return error / (float(np.max(np.abs(wide), initial=0.0, where=known)) or 1.0)


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


@frozen
class AbResult:
    session: Session
    plan: ComparisonPlanned
    """What is compared, and how."""
    sides: tuple[RunResult, ...]
    """All sides, beginning with A."""
    versus: tuple[AbVersus, ...]
    """B compared with A, C compared with A, and so on."""

    @property
    def baseline(self) -> Run:
        return self.sides[0].run

    @property
    def failed(self) -> tuple[RunResult, ...]:
        return tuple(side for side in self.sides if side.run.status != "ok")


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
        versus=tuple(ab_versus(session, first, run) for run in others),
    )


def sides_beside(session: Session, run: Run) -> list[Run]:
    """Return all sides of the comparison that `run` belongs to, A first; empty if it is not a side."""
    first = run.plan.baseline or run.id
    return [side for side in session.runs.values() if run.plan.side and first in (side.id, side.plan.baseline)]


def ab_results(session: Session) -> list[AbResult]:
    """Return the comparisons of a session, in the order of the plan."""
    return [ab_result(session, run.id) for run in session.runs.values() if run.plan.side and not run.plan.baseline]
