"""A text of any size to be shown: its lines by number, how to move through it, and a search.

The text is not split or copied: a line is sliced when it is shown. Building a document counts its lines. Moves in HLO
use its model, and parse only the computation at the line, even in a module of a million instructions. A search goes
piece by piece, so that its thread can be stopped and lets others work; its matches are offsets in an array, eight bytes
each. Empty matches do not count.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from jaxprof.hlo.analysis.origin import HloSourceLocation
from jaxprof.hlo.model import Computation
from jaxprof.hlo.places import LineOrigin, Origins
from jaxprof.hlo.source import Source
from jaxprof.units import integer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jaxprof.hlo.model import Instruction, Module


class Document:
    """One text with its lines, counted from 0."""

    def __init__(self, text: str, origins: Origins | None = None) -> None:
        """`origins` has where the lines of a program came from; None for plain text."""
        self.source = Source(text)
        self._origins = origins or {}
        self.is_program = origins is not None
        self.line_count = max(1, self.source.line_count)
        self.left_at = 0
        """The line at which the reader left it."""

    def line(self, number: int) -> str:
        """Return line `number`; empty outside of the text."""
        return next(iter(self.source.lines(number + 1, 1)), "") if number >= 0 else ""

    def origin(self, number: int) -> LineOrigin | None:
        """Return where line `number` came from; None if the text does not say."""
        return self._origins.get(number)

    def offset(self, number: int) -> int:
        """Return where line `number` begins in the text."""
        return self.source.offset(number + 1)

    def number(self, offset: int) -> int:
        """Return the line that holds the character at `offset`."""
        return self.source.line(offset) - 1


class HloDocument(Document):
    """The text of one or several HLO modules, with the ways through it by names."""

    def __init__(self, modules: Sequence[Module]) -> None:
        self.modules = tuple(modules)
        super().__init__(modules[0].source.text, {})

    def origin(self, number: int) -> LineOrigin | None:
        instruction = self.instruction(number)
        if instruction is None:
            return None
        stack = instruction.stack
        place = HloSourceLocation(stack[0].file, stack[0].line) if stack and stack[0].file else None
        return LineOrigin(place, instruction.metadata.first_name) or None

    @cached_property
    def _computations(self) -> list[Computation]:
        computations = (computation for module in self.modules for computation in module.computations.values())
        return sorted((each for each in computations if not each.is_synthetic), key=_begin)

    def computation(self, number: int) -> Computation | None:
        """Return the computation that line `number` belongs to."""
        begin, end = self.offset(number), self.offset(number + 1)
        at = bisect_right(self._computations, max(begin, end - 1), key=_begin) - 1
        found = self._computations[at] if at >= 0 else None
        return found if found is not None and begin <= found.span[2] else None

    def instruction(self, number: int) -> Instruction | None:
        """Return the instruction that line `number` belongs to; None in a header or an end, and outside of
        computations."""
        computation = self.computation(number)
        line = self.line(number)
        at = self.offset(number) + len(line) - len(line.lstrip())
        if computation is None or not line.strip() or not computation.span[1] <= at < computation.span[2]:
            return None
        place = bisect_right(computation.instructions, at, key=_begin) - 1
        return computation.instructions[place] if place >= 0 else None

    def line_of(self, item: Instruction | Computation) -> int | None:
        """Return the line on which an instruction or computation begins; None if the text has it only in another
        form."""
        computation = item if isinstance(item, Computation) else item.computation
        return None if computation.is_synthetic else item.line - 1

    def targets(self, number: int) -> dict[str, int]:
        """Return what line `number` refers to, with the lines that define it: what it calls, then its operands."""
        instruction = self.instruction(number)
        if instruction is None:
            return {}
        both: tuple[Instruction | Computation, ...] = (
            *instruction.called_computations(),
            *instruction.operand_instructions(),
        )
        return {item.name: line for item in both if (line := self.line_of(item)) is not None}


def _begin(item: Instruction | Computation) -> int:
    return item.span[0]


_PIECE = 1 << 18
"""Characters per piece. A piece takes about a millisecond, during which the thread holds the interpreter lock."""
MOST = 1_000_000
"""Most matches kept; a search with more of them is marked as incomplete."""


@dataclass(frozen=True, slots=True)
class Hits:
    """The matches of a search."""

    pattern: re.Pattern[str]
    offsets: array[int]
    """Offsets of the matches, ascending."""
    complete: bool = True
    """False if there are more matches than are kept."""

    def words(self, index: int | None) -> str:
        """Return the state of the search: `3 of 128`, `none` or `1 000 000 or more`."""
        if not self.offsets:
            return "none"
        shown = integer(len(self.offsets)) + ("" if self.complete else " or more")
        return f"{index + 1} of {shown}" if index is not None else shown


def search(text: str, pattern: re.Pattern[str], wanted: Callable[[], bool] = lambda: True) -> Hits | None:
    """Return the matches of a pattern in a text; None once the search is no longer `wanted`. Blocks: for threads."""
    offsets, at = array("Q"), 0
    while at < len(text) and len(offsets) < MOST:
        if not wanted():
            return None
        end = text.find("\n", min(at + _PIECE, len(text)))
        end = len(text) if end < 0 else end + 1
        found = (match for match in pattern.finditer(text, at, end) if match.end() > match.start())
        offsets.extend(match.start() for match in found)
        at = end
    return Hits(pattern, offsets[:MOST], complete=len(offsets) < MOST)
