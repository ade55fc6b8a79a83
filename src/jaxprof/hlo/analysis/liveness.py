"""How much memory a scheduled module needs at each of its instructions, worked out from the text: an estimate.

What each computation holds at each of its instructions is worked out in `liveness_scope`; here it is put together.

The peak is what must be alive at once. XLA's assignment takes more: it holds the outputs from the beginning (where it
can it lets temporaries use their places), aligns, leaves gaps, and keeps the branches of a conditional apart. On the
programs of the tests it takes up to a third more, and never less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.execution import Execution
from jaxprof.hlo.analysis.liveness_scope import Place, Scope, Spaces
from jaxprof.hlo.analysis.platform import platform_of

if TYPE_CHECKING:
    from jaxprof.hlo.model import Module

MOST_POINTS: Final = 4096
"""Of the live size over the schedule: a longer schedule is thinned, and every peak is kept."""
MOST_VALUES: Final = 512
"""Values that are listed, the largest first."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value that takes memory, with where it came from."""

    bytes: int
    kind: str
    """`argument`, `output`, `temporary` or `constant`."""
    instruction: str
    shape: str
    op_name: str
    file: str
    line: int | None
    at_peak: bool
    """It is there at the instruction at which most is."""


@dataclass(frozen=True, slots=True)
class Liveness:
    """What the schedule of a module tells about its memory."""

    peak_bytes: int
    """The highest of `live_bytes`: the least that the module can do with in this order."""
    parts: Mapping[str, int]
    """Bytes of each kind at that instruction, which add up to `peak_bytes`."""
    values: tuple[Value, ...]
    """The largest first, at most `MOST_VALUES`."""
    live_bytes: tuple[int, ...]
    """After each instruction of the entry, in order; an output counts from where it is made. At most `MOST_POINTS`."""


def liveness(module: Module) -> Liveness | None:
    """The memory of `module`; None where its order is not the order of execution, or it has no entry."""
    if not module.is_scheduled or module.entry is None:
        return None
    execution = Execution(module)
    spaces = Spaces(tpu=platform_of(module) == "tpu")
    done: dict[str, Scope] = {}
    for name in execution.post_order():
        computation = module.get(name)
        if computation is not None:
            inner: dict[str, list[Scope]] = {}
            for edge in execution.edges[name]:
                if edge.callee in done:
                    inner.setdefault(edge.caller.name, []).append(done[edge.callee])
            done[name] = Scope(computation, inner, spaces, is_entry=computation is module.entry)
    return _summary(module, done)


def _summary(module: Module, scopes: Mapping[str, Scope]) -> Liveness | None:
    entry = scopes.get(module.entry.name) if module.entry is not None else None
    if entry is None:
        return None
    every = [place for scope in scopes.values() for place in scope.places if place.kind != "given" and place.bytes]
    argument, constant = (
        sum(place.bytes for place in every if place.kind == kind) for kind in ("argument", "constant")
    )
    both = entry.over_schedule()
    highest = max(range(len(both)), key=both.__getitem__, default=0)
    temporary = entry.alive[highest] if both else 0
    output = both[highest] - temporary if both else 0
    parts = {"argument": argument, "output": output, "temporary": temporary, "constant": constant}
    at_peak = {id(place) for place in entry.at(highest)}
    every.sort(key=lambda place: -place.bytes)
    values = tuple(
        _value(place, at_peak=place.kind in ("argument", "constant") or id(place) in at_peak)
        for place in every[:MOST_VALUES]
    )
    live = [size + argument + constant for size in both]
    return Liveness(sum(parts.values()), parts, values, thinned(live))


def _value(place: Place, *, at_peak: bool) -> Value:
    maker = place.maker
    stack = maker.stack
    known = stack[0] if stack and stack[0].file else None
    return Value(
        bytes=place.bytes,
        kind=place.kind,
        instruction=maker.name,
        shape=str(place.shape),
        op_name=maker.metadata.op_name.partition(";")[0],
        file=known.file if known is not None else "",
        line=known.line if known is not None else None,
        at_peak=at_peak,
    )


def thinned(sizes: Sequence[int], most: int = MOST_POINTS) -> tuple[int, ...]:
    """At most `most` points: of each stretch the highest, so that no peak is lost."""
    if len(sizes) <= most:
        return tuple(sizes)
    edges = [number * len(sizes) // most for number in range(most + 1)]
    return tuple(max(sizes[low:high]) for low, high in pairwise(edges))
