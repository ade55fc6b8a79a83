"""Origins of all kernels of a module at once, as columns of numbers: to filter, sort and group by them.

`Kernel.origins` keeps values for each kernel that was asked, and reads the module's instructions one by one. Half a
million kernels have a few thousand different origins: here each origin is kept once, and a kernel is a few numbers.
Reading them still takes seconds, so it can be cancelled.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from jaxprof.hlo import not_collecting
from jaxprof.hlo.analysis.origin import HloSourceLocation, origins, sources_of
from jaxprof.hlo.read.plain import plain_instructions
from jaxprof.hlo.read.record import read_metadata

if TYPE_CHECKING:
    from jaxprof.hlo.analysis.kernels import Kernel
    from jaxprof.hlo.model import Computation, Instruction

_PAGE: Final = 16384
"""Kernels between two checks for cancellation."""
_MOST_KNOWN: Final = 1 << 14
"""Most distinct metadata of kernels whose origins are remembered while they are read."""
_DEEPEST: Final = 8
"""Most nested fusions, as `kinds.fused` follows them."""

Place = tuple[str, HloSourceLocation | None]
"""`op_name` and `source` of an origin."""


class OriginColumns:
    """Origins of each kernel, by the kernel's number."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        """All distinct places, in the order of their first occurrence."""
        self._starts = array("I", [0])
        self._place_numbers = array("I")
        """Places of kernel n at `_starts[n]` to `_starts[n + 1]`, in the order of `Kernel.origins`."""
        self._sources = array("i")
        """For each kernel the place whose line is its `source`; -1 if it has none."""

    def __len__(self) -> int:
        return len(self._starts) - 1

    def of(self, number: int) -> Sequence[int]:
        """Return the numbers of the places of one kernel, its own first."""
        return self._place_numbers[self._starts[number] : self._starts[number + 1]]

    def first(self, number: int) -> int:
        """Return the number of the place that is a kernel's own; -1 if the text says nothing."""
        start = self._starts[number]
        return self._place_numbers[start] if start < self._starts[number + 1] else -1

    def source(self, number: int) -> int:
        """Return the number of the place whose line is the `source` of a kernel; -1 if it has none."""
        return self._sources[number]

    def having(self, test: Callable[[Place], bool]) -> bytearray:
        """Return for each kernel 1 if one of its places passes the test, else 0. Each place is tested once."""
        passing = bytearray(map(test, self.places))
        passed = bytearray(len(self))
        if any(passing):
            held, starts = self._place_numbers, self._starts
            for number in range(len(self)):
                for at in range(starts[number], starts[number + 1]):
                    if passing[held[at]]:
                        passed[number] = 1
                        break
        return passed

    def _add(self, places: Sequence[int], source: int) -> None:
        self._place_numbers.extend(places)
        self._sources.append(source)
        self._starts.append(len(self._place_numbers))


def origin_columns(kernels: Sequence[Kernel], cancelled: Callable[[], bool] = lambda: False) -> OriginColumns | None:
    """Read the origins of all kernels of a module; None if `cancelled` returned True. May take seconds, so run it in a
    thread."""
    with not_collecting():
        return _read(kernels, cancelled)


def _read(kernels: Sequence[Kernel], cancelled: Callable[[], bool]) -> OriginColumns | None:
    columns = OriginColumns()
    numbers: dict[Place, int] = {}
    remembered: dict[tuple[str, ...], tuple[tuple[int, ...], int]] = {}
    for done, kernel in enumerate(kernels):
        if done % _PAGE == 0 and cancelled():
            return None
        texts = _metadata(kernel.instruction)
        numbered = remembered.get(texts) if texts is not None else None
        if numbered is None:
            places = _places(kernel.instruction, texts)
            first = next(iter(sources_of([source for _, source in places])), None)
            numbered = (
                tuple([numbers.setdefault(place, len(numbers)) for place in places]),
                next((numbers[place] for place in places if first is not None and place[1] == first), -1),
            )
            if texts is not None:
                if len(remembered) >= _MOST_KNOWN:
                    remembered.clear()
                remembered[texts] = numbered
        columns._add(*numbered)
    columns.places = list(numbers)
    return columns


def _places(instruction: Instruction, texts: tuple[str, ...] | None) -> list[Place]:
    """Return the origins of a kernel, from its metadata or, if that is not plain, from its instructions."""
    if texts is not None:
        own, *inside = map(read_metadata, texts)
    else:
        from jaxprof.hlo.analysis.kinds import fused

        own = instruction.metadata
        inside = [held.metadata for held in fused(instruction)]
    all_origins = origins(own, inside, instruction.computation.module.stack_of)
    return [(origin.op_name, origin.source) for origin in all_origins]


def _metadata(instruction: Instruction) -> tuple[str, ...] | None:
    """Return the metadata of a kernel and of the instructions inside it, as written; None if it is not plain."""
    computation = instruction.computation
    if computation.is_synthetic:
        return None
    plain = plain_instructions(computation.source.text, *instruction.span) or ()
    if len(plain) != 1:
        return None
    (own,) = plain
    texts = [own.metadata]
    if own.called and not _add_held(texts, computation.module.get(own.called), 0):
        return None
    return tuple(texts)


def _add_held(texts: list[str], computation: Computation | None, depth: int) -> bool:
    """Add the metadata of what `kinds.fused` finds in a computation; False if it is not plain."""
    if computation is None or depth > _DEEPEST:
        return True
    if computation.is_synthetic:
        return False
    held = plain_instructions(computation.source.text, *computation.span[1:])
    if held is None:
        return False
    module = computation.module
    for inner in held:
        if inner.opcode == "fusion":
            if not _add_held(texts, module.get(inner.called), depth + 1):
                return False
        elif inner.opcode != "parameter":
            texts.append(inner.metadata)
    return True
