"""Differences between any two sides: pairs of things that belong together, and figures of both sides.

The comparisons of sessions, runs, modules, kernels, buffers, ledgers, jobs and findings are built from these, as are
the limits of `gate` and the points of `history`. The name of a figure, its unit, and whether more of it is worse are
defined once, in `FACTS` and `TIMES`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeAlias, TypeVar

Unit: TypeAlias = Literal["", "flop", "byte", "second", "rate"]
"""Unit of a figure; empty for a count, `rate` for a number per second."""
Existence: TypeAlias = Literal["same", "changed", "new", "gone"]
Paired = TypeVar("Paired")


@dataclass(frozen=True, slots=True)
class Compared:
    """Description of a compared figure. Figures in seconds are measured; all others are exact and have no noise."""

    title: str
    """Title of the figure in a table."""
    unit: Unit
    less_is_worse: bool = False


FACTS: Final[dict[str, Compared]] = {
    "kernels": Compared("kernels", ""),
    "launches": Compared("kernel launches", ""),
    "flops": Compared("FLOPs", "flop"),
    "bytes": Compared("bytes accessed", "byte"),
    "transcendentals": Compared("transcendentals", ""),
    "product_bytes": Compared("operands of products", "byte"),
    "peak": Compared("peak memory", "byte"),
    "argument": Compared("arguments", "byte"),
    "output": Compared("outputs", "byte"),
    "temporary": Compared("temporaries", "byte"),
    "constant": Compared("constants", "byte"),
    "donated": Compared("donated memory", "byte", less_is_worse=True),
    "code": Compared("generated code", "byte"),
    "collectives": Compared("collectives", ""),
    "collective_bytes": Compared("bytes exchanged", "byte"),
    "compiles": Compared("compiles", ""),
}
"""Exact facts of a compiled program, by code. `product_bytes` counts the operands of matrix products and convolutions
in the dtypes that the program requests: the CPU compiler computes 16-bit floats in float32, which hides an upcast."""
TIMES: Final[dict[str, Compared]] = {
    "run": Compared("time of a call", "second"),
    "first_run": Compared("first call", "second"),
    "trace": Compared("trace", "second"),
    "lower": Compared("lower", "second"),
    "compile": Compared("compile", "second"),
}
"""Phases of a call, by code."""


@dataclass(frozen=True, slots=True)
class Pair(Generic[Paired]):
    """Things of two sides that belong together; if only one side has one, the other is None."""

    status: Existence
    before: Paired | None
    after: Paired | None

    @property
    def either(self) -> Paired:
        """The thing of the second side; if it is gone, that of the first."""
        one = self.after if self.after is not None else self.before
        assert one is not None
        return one

    def part(self, figure: str) -> float:
        """Return the contribution to the difference of a figure's sums (such as `bytes`): after minus before."""
        before, after = (0 if side is None else getattr(side, figure) for side in (self.before, self.after))
        return float(after - before)


@dataclass(frozen=True, slots=True)
class FigureDifference:
    """One figure of both sides; None is unknown."""

    code: str
    """Code of the figure: an exact fact (`flops`), a stage of a compilation, or a state of a program."""
    before: float | None
    after: float | None
    unit: Unit = ""
    estimate: bool = False
    """Whether the figure was derived from the schedule, because the executable's own figure is missing."""

    @property
    def differs(self) -> bool | None:
        """Whether the sides differ; None if a side is unknown."""
        return None if self.before is None or self.after is None else self.before != self.after

    @property
    def status(self) -> Existence | None:
        """Status of the difference; None if a side is unknown."""
        return None if self.differs is None else "changed" if self.differs else "same"

    @property
    def growth(self) -> float | None:
        """Difference as a share of the first side: 0.1 is 10 % more. None if unknown, or if only the first side is
        0."""
        if self.before is None or self.after is None:
            return None
        if self.before == self.after:
            return 0.0
        return self.after / self.before - 1 if self.before else None


@dataclass(frozen=True, slots=True)
class EnvironmentDifference:
    """One property of the environment on both sides, as text; None if it was not reported."""

    name: str
    before: str | None
    after: str | None

    @property
    def differs(self) -> bool:
        """Whether the sides differ; a property that only one side reported differs."""
        return self.before != self.after


def figures(
    before: Mapping[str, float | None], after: Mapping[str, float | None], unit: Unit = ""
) -> tuple[FigureDifference, ...]:
    """Return the figures that either side has, in the order of the first side."""
    return tuple(FigureDifference(code, before.get(code), after.get(code), unit) for code in {**before, **after})


def exact_facts(
    before: Mapping[str, float | None], after: Mapping[str, float | None], *, estimate: bool = False
) -> tuple[FigureDifference, ...]:
    """Return the facts that either side knows, in the order of `FACTS`."""
    both = ((code, before.get(code), after.get(code), fact.unit) for code, fact in FACTS.items())
    return tuple(FigureDifference(*row, estimate) for row in both if row[1] is not None or row[2] is not None)


def environments(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[EnvironmentDifference, ...]:
    """Return everything that either side reported, differences first."""
    rows = [EnvironmentDifference(name, before.get(name), after.get(name)) for name in {**before, **after}]
    return tuple(sorted(rows, key=lambda row: not row.differs))


def pairs(
    ours: Sequence[Paired],
    theirs: Sequence[Paired],
    keys: Sequence[Callable[[Paired], Hashable]],
    content: Callable[[Paired], object],
) -> list[Pair[Paired]]:
    """Return the pairs of `paired` with their status; pairs with equal `content` are the same."""
    rows: list[Pair[Paired]] = []
    for before, after in paired(ours, theirs, keys):
        if before is None or after is None:
            rows.append(Pair("new" if before is None else "gone", before, after))
        else:
            rows.append(Pair("same" if content(before) == content(after) else "changed", before, after))
    return rows


def paired(
    ours: Sequence[Paired], theirs: Sequence[Paired], keys: Sequence[Callable[[Paired], Hashable]]
) -> list[tuple[Paired | None, Paired | None]]:
    """Pair items with equal keys, first by the first key; a key of None matches nothing. The pairs are in the order of
    `theirs`, with unmatched items of `ours` at the end. Each item is in one pair."""
    partner: dict[int, Paired] = {}
    left, right = list(enumerate(ours)), list(enumerate(theirs))
    for key in keys:
        waiting: dict[Hashable, list[int]] = defaultdict(list)
        for number, one in reversed(left):
            waiting[key(one)].append(number)
        waiting.pop(None, None)
        taken: set[int] = set()
        for number, other in right:
            same = waiting.get(key(other))
            if same:
                taken.add(same[-1])
                partner[number] = ours[same.pop()]
        left = [item for item in left if item[0] not in taken]
        right = [item for item in right if item[0] not in partner]
    return [*((partner.get(number), other) for number, other in enumerate(theirs)), *((one, None) for _, one in left)]
