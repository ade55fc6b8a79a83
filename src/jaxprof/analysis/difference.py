"""What differs between two sides, whatever they are of: things that belong together in pairs, and figures of both.

The comparisons of sessions, runs, modules, kernels, buffers, ledgers, jobs and findings, the limits of `gate` and the
points of `history` are made of these. What a figure is called, its unit, and whether more of it is worse stand here
once, in `FACTS` and `TIMES`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeAlias, TypeVar

Unit: TypeAlias = Literal["", "flop", "byte", "second", "rate"]
"""Empty: a count; `rate`: in a second."""
Existence: TypeAlias = Literal["same", "changed", "new", "gone"]
Paired = TypeVar("Paired")


@dataclass(frozen=True, slots=True)
class Compared:
    """What a figure of both sides is. One in seconds is measured; all others are exact and have no noise."""

    title: str
    """In the words of a table."""
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
"""The exact facts of a compiled program, by code. `product_bytes`: what matrix products and convolutions take, with the
dtypes that the program asks for: CPU's compiler computes 16-bit floats in float32, and hides an upcast."""
TIMES: Final[dict[str, Compared]] = {
    "run": Compared("time of a call", "second"),
    "first_run": Compared("first call", "second"),
    "trace": Compared("trace", "second"),
    "lower": Compared("lower", "second"),
    "compile": Compared("compile", "second"),
}
"""The phases of a call, by code."""


@dataclass(frozen=True, slots=True)
class Pair(Generic[Paired]):
    """What belongs together of two sides; of what only one has, the other is None."""

    status: Existence
    before: Paired | None
    after: Paired | None

    @property
    def either(self) -> Paired:
        """The one of the second side; of one that is gone, that of the first."""
        one = self.after if self.after is not None else self.before
        assert one is not None
        return one

    def part(self, figure: str) -> float:
        """What it adds to the difference of the sums of a figure (`bytes`): after less before."""
        before, after = (0 if side is None else getattr(side, figure) for side in (self.before, self.after))
        return float(after - before)


@dataclass(frozen=True, slots=True)
class FigureDifference:
    """One figure of both sides. None is unknown."""

    code: str
    """What it is of: an exact fact (`flops`), a stage of a compile, a state of a program."""
    before: float | None
    after: float | None
    unit: Unit = ""
    estimate: bool = False
    """Whether it was derived from the schedule, for want of the executable's own figure."""

    @property
    def differs(self) -> bool | None:
        """None where a side is unknown."""
        return None if self.before is None or self.after is None else self.before != self.after

    @property
    def status(self) -> Existence | None:
        """None where a side is unknown."""
        return None if self.differs is None else "changed" if self.differs else "same"

    @property
    def growth(self) -> float | None:
        """The difference as a share of the first: 0.1 is 10 % more. None where a side is unknown, or the first is 0 and
        the second is not."""
        if self.before is None or self.after is None:
            return None
        if self.before == self.after:
            return 0.0
        return self.after / self.before - 1 if self.before else None


@dataclass(frozen=True, slots=True)
class EnvironmentDifference:
    """One thing that was found around both sides, in words. None: it was not reported."""

    name: str
    before: str | None
    after: str | None

    @property
    def differs(self) -> bool:
        """Something that only one side reported differs."""
        return self.before != self.after


def figures(
    before: Mapping[str, float | None], after: Mapping[str, float | None], unit: Unit = ""
) -> tuple[FigureDifference, ...]:
    """The figures that either side has, in the order of the first."""
    return tuple(FigureDifference(code, before.get(code), after.get(code), unit) for code in {**before, **after})


def exact_facts(
    before: Mapping[str, float | None], after: Mapping[str, float | None], *, estimate: bool = False
) -> tuple[FigureDifference, ...]:
    """The facts that either side knows, in the order of `FACTS`."""
    both = ((code, before.get(code), after.get(code), fact.unit) for code, fact in FACTS.items())
    return tuple(FigureDifference(*row, estimate) for row in both if row[1] is not None or row[2] is not None)


def environments(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[EnvironmentDifference, ...]:
    """All that either side reported, what differs first."""
    rows = [EnvironmentDifference(name, before.get(name), after.get(name)) for name in {**before, **after}]
    return tuple(sorted(rows, key=lambda row: not row.differs))


def pairs(
    ours: Sequence[Paired],
    theirs: Sequence[Paired],
    keys: Sequence[Callable[[Paired], Hashable]],
    content: Callable[[Paired], object],
) -> list[Pair[Paired]]:
    """As `paired`, each with its status: those with equal `content` are the same."""
    found: list[Pair[Paired]] = []
    for before, after in paired(ours, theirs, keys):
        if before is None or after is None:
            found.append(Pair("new" if before is None else "gone", before, after))
        else:
            found.append(Pair("same" if content(before) == content(after) else "changed", before, after))
    return found


def paired(
    ours: Sequence[Paired], theirs: Sequence[Paired], keys: Sequence[Callable[[Paired], Hashable]]
) -> list[tuple[Paired | None, Paired | None]]:
    """Pairs whose keys are equal, by the first key first, in order; a key that is None matches nothing.

    In the order of `theirs`, those of `ours` that belong to none at the end. Each is in one pair.
    """
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
