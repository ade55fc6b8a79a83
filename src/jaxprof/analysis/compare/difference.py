"""Figures of two sides and how they differ, for every comparison and the limits of `gate`.

The name of a figure, its unit, and whether more of it is worse are defined once, in `FACTS` and `TIMES`. Things of two
sides are paired by `pairs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, Literal, TypeAlias, TypeVar

from jaxprof.base.values import frozen

Value = TypeVar("Value")
Unit: TypeAlias = Literal["", "flop", "byte", "second", "rate"]
"""Unit of a figure; empty for a count, `rate` for a number per second."""


@frozen
class Compared:
    """Description of a compared figure. Figures in seconds are measured; all others are exact and have no noise."""

    title: str
    """Title of the figure in a table."""
    unit: Unit
    less_is_worse: bool = False


FACTS: dict[str, Compared] = {
    "kernels": Compared("kernels", ""),
    "kernel_launches": Compared("kernel launches", ""),
    "flops": Compared("FLOPs", "flop"),
    "accessed_bytes": Compared("bytes accessed", "byte"),
    "transcendentals": Compared("transcendentals", ""),
    "product_bytes": Compared("operands of products", "byte"),
    "peak_bytes": Compared("peak memory", "byte"),
    "argument_bytes": Compared("arguments", "byte"),
    "output_bytes": Compared("outputs", "byte"),
    "temporary_bytes": Compared("temporaries", "byte"),
    "constant_bytes": Compared("constants", "byte"),
    "alias_bytes": Compared("donated memory", "byte", less_is_worse=True),
    "generated_code_bytes": Compared("generated code", "byte"),
    "collectives": Compared("collectives", ""),
    "collective_bytes": Compared("bytes exchanged", "byte"),
    "compiles": Compared("compiles", ""),
}
"""Exact facts of a compiled program, by the key that they have in every table. `product_bytes` counts the operands of
matrix products and convolutions in the dtypes that the program requests: the CPU compiler computes 16-bit floats in
float32, which hides an upcast."""
TIMES: dict[str, Compared] = {
    "run": Compared("time of a call", "second"),
    "first_run": Compared("first call", "second"),
    "trace": Compared("trace", "second"),
    "lower": Compared("lower", "second"),
    "compile": Compared("compile", "second"),
}
"""Phases of a call, by code."""


@frozen
class Difference(Generic[Value]):
    """One property of both sides, such as an entry of the environment or the dtype of a kernel; None if a side does not
    have it."""

    code: str
    """Name of the property."""
    before: Value | None
    after: Value | None

    @property
    def differs(self) -> bool | None:
        """Whether the sides differ; a property that only one side has differs."""
        return self.before != self.after


@frozen
class FigureDifference(Difference[float]):
    """One figure of both sides; None is unknown. Its code is an exact fact (`flops`), a phase of a call, a stage of a
    compilation, or a state of a program."""

    unit: Unit = ""
    estimate: bool = False
    """Whether the figure was derived from the schedule, because the executable's own figure is missing."""

    @property
    def differs(self) -> bool | None:
        """Whether the sides differ; None if a side is unknown."""
        return None if self.before is None or self.after is None else self.before != self.after

    @property
    def growth(self) -> float | None:
        """Difference as a share of the first side: 0.1 is 10 % more. None if unknown, or if only the first side is
        0."""
        if self.before is None or self.after is None:
            return None
        if self.before == self.after:
            return 0.0
        return self.after / self.before - 1 if self.before else None


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


def environments(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Difference[str], ...]:
    """Return everything that either side reported, differences first."""
    rows = [Difference(name, before.get(name), after.get(name)) for name in {**before, **after}]
    return tuple(sorted(rows, key=lambda row: not row.differs))
