"""Ways through HLO text, by way of its model: definitions, users, what an instruction calls, computations as blocks.

Only what is looked at is read: a step through a module of a million instructions reads one computation.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING

from jaxprof.hlo.model import Computation
from jaxprof.tui.programs.document import Name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxprof.hlo.model import Instruction, Module
    from jaxprof.hlo.source import Source

_NAME = re.compile(r"%([\w.\-]+)")
_BARE = re.compile(r"(?<![\w.%\-=\"])([A-Za-z_][\w\-]*(?:\.[\w.\-]*)?\d[\w.\-]*|[A-Za-z_][\w.\-]*(?= = ))(?![\w(\[])")
"""Names of the oldest and of the shortest form of HLO text, which have no `%`: with a number, or before a `=`."""
_CALLING = frozenset({"fusion", "while", "conditional", "call", "async-start"})


class HloWays:
    """Navigation in the text of one or several modules."""

    def __init__(self, modules: Sequence[Module]) -> None:
        self.modules = tuple(modules)
        self._source: Source = self.modules[0].source

    @cached_property
    def _computations(self) -> list[Computation]:
        found = [
            computation
            for module in self.modules
            for computation in module.computations.values()
            if not computation.is_synthetic
        ]
        return sorted(found, key=lambda computation: computation.span[0])

    @cached_property
    def _starts(self) -> list[int]:
        return [computation.span[0] for computation in self._computations]

    def computation(self, number: int) -> Computation | None:
        """The computation that line `number` belongs to."""
        begin = self._source.offset(number + 1)
        end = self._source.offset(number + 2)
        at = bisect_right(self._starts, max(begin, end - 1)) - 1
        if at < 0:
            return None
        found = self._computations[at]
        return found if begin <= found.span[2] else None

    def instruction(self, number: int) -> Instruction | None:
        """The instruction that line `number` belongs to; None in a header, an end, or outside of computations."""
        computation = self.computation(number)
        if computation is None or not computation.instructions:
            return None
        begin, end = self._source.offset(number + 1), self._source.offset(number + 2)
        line = self._source.text[begin:end]
        at = begin + len(line) - len(line.lstrip())
        if not line.strip() or at < computation.span[1]:
            return None
        instructions = computation.instructions
        place = bisect_right(instructions, at, key=lambda one: one.span[0]) - 1
        if place < 0 or at >= computation.span[2]:
            return None
        return instructions[place]

    def line_of(self, found: Instruction | Computation) -> int | None:
        """The line on which it begins; None where the text has it in another form only."""
        computation = found if isinstance(found, Computation) else found.computation
        return None if computation.is_synthetic else found.line - 1

    def line_of_kernel(self, computation: str, name: str) -> int | None:
        """The line of an instruction that is known by name."""
        for module in self.modules:
            holder = module.get(computation)
            found = holder.get(name) if holder is not None else None
            if found is not None:
                return self.line_of(found)
        return None

    # -- Navigation -------------------------------------------------------------------------------------------

    def names(self, line: str) -> Sequence[Name]:
        metadata = line.find("metadata={")
        end = len(line) if metadata < 0 else metadata
        pattern = _NAME if "%" in line else _BARE
        return [Name(found.start(), found.end(), found[1]) for found in pattern.finditer(line, 0, end)]

    def main_name(self, number: int) -> str:
        instruction = self.instruction(number)
        if instruction is None:
            return ""
        called = instruction.called
        if called and instruction.opcode in _CALLING:
            return called[0]
        return next(iter((*instruction.operands, *called)), "")

    def defined_name(self, number: int) -> str:
        instruction = self.instruction(number)
        if instruction is not None:
            return instruction.name
        computation = self.computation(number)
        return computation.name if computation is not None else ""

    def definition(self, name: str, number: int) -> int | None:
        name = name.lstrip("%")
        computation = self.computation(number)
        if computation is None:
            return None
        instruction = self.instruction(number)
        called = computation.module.get(name)
        if called is not None and instruction is not None and name in instruction.called:
            return self.line_of(called)
        value = computation.get(name)
        found = value if value is not None else called
        return self.line_of(found) if found is not None else None

    def users(self, name: str, number: int) -> Sequence[int]:
        name = name.lstrip("%")
        computation = self.computation(number)
        if computation is None:
            return []
        instruction = self.instruction(number)
        is_value = computation.get(name) is not None and (instruction is None or name not in instruction.called)
        found = computation.users(name) if is_value else computation.module.callers.get(name, ())
        lines = [line for user in found if (line := self.line_of(user)) is not None]
        if is_value or lines or computation.get(name) is None:
            return lines
        return [line for user in computation.users(name) if (line := self.line_of(user)) is not None]

    def block(self, number: int) -> tuple[int, int] | None:
        computation = self.computation(number)
        return self._lines(computation) if computation is not None else None

    def blocks(self) -> Sequence[tuple[int, int]]:
        return [self._lines(computation) for computation in self._computations]

    def _lines(self, computation: Computation) -> tuple[int, int]:
        first = self._source.line(computation.span[0]) - 1
        return first, self._source.line(computation.span[2]) - 1

    def statement(self, number: int) -> str:
        instruction = self.instruction(number)
        if instruction is not None:
            return instruction.text
        computation = self.computation(number)
        return computation.header if computation is not None else ""
