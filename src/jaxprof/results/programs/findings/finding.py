"""A finding about a program as a value, and the one way to make one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from jaxprof.events import Compiled
from jaxprof.results.programs.parts import LineTime
from jaxprof.results.programs.places import Place

TINY_OPERATIONS: Final = 10
"""A program of at most so many operations: compiling it (some 10 ms or more) is never paid back by what it saves."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is worth changing in a program."""

    code: str
    message: str
    advice: str
    """What to change, and where."""
    where: Place | None
    """The line to change; None where there is no such line."""
    seconds: float | None = None
    """What it cost in this run, where that can be told."""
    estimate: bool = False
    """Whether it rests on samples of the stack, and not on what JAX announced."""
    others: tuple[Place, ...] = ()
    """More lines that it is about."""


def finding(
    code: str,
    message: str,
    advice: str,
    places: tuple[Place | None, ...],
    *,
    seconds: float | None = None,
    estimate: bool = False,
) -> Finding:
    """A finding at `places`: each once, those that are not known left out."""
    known = tuple(dict.fromkeys(place for place in places if place is not None))
    return Finding(code, message, advice, known[0] if known else None, seconds, estimate, known[1:])


def is_single(row: Compiled) -> bool:
    """Whether it is an operation that was called outside any jit: a primitive, or a small function of a library, such
    as `jnp.where`, which is jitted on its own."""
    return row.op_by_op or (row.library and row.operations is not None and row.operations <= TINY_OPERATIONS)


def seconds_by_place(lines: Iterable[LineTime]) -> dict[Place, float]:
    """The time at each line of the source, whatever it called there; the longest first."""
    found: dict[Place, float] = {}
    for line in lines:
        found[line.place] = found.get(line.place, 0.0) + line.seconds
    return dict(sorted(found.items(), key=lambda one: -one[1]))
