"""A text of any size to be shown: its lines by number, its language, and how to move through it.

The text is not split or copied: a line is sliced when it is shown. Building a document reads the text once (for the
number of lines and the widest line). That takes 0.1 s for a million lines, so build a large document in a thread. Moves
in HLO use its model, and parse only the computation at the line, even in a module of a million instructions.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from jaxprof.hlo.model import Computation
from jaxprof.hlo.read.lexer import Language
from jaxprof.hlo.read.syntax import short_text
from jaxprof.hlo.source import Source
from jaxprof.text import columns, safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxprof.hlo.model import Instruction, Module


@dataclass(frozen=True, slots=True)
class Name:
    """A name in a line as shown: from character `start` to before `end`."""

    start: int
    end: int
    text: str


_NAME = re.compile(r"%([\w.\-]+)")
_BARE = re.compile(r"(?<![\w.%\-=\"])([A-Za-z_][\w\-]*(?:\.[\w.\-]*)?\d[\w.\-]*|[A-Za-z_][\w.\-]*(?= = ))(?![\w(\[])")
"""Names in the oldest and the shortest form of HLO text, which have no `%`: they contain a digit, or precede a `=`."""
_CALLING = frozenset({"fusion", "while", "conditional", "call", "async-start"})


class HloNavigation:
    """How to move through the text of one or several HLO modules. Lines count from 0; a target that does not exist is
    None or empty, never an error."""

    def __init__(self, modules: Sequence[Module]) -> None:
        self.modules = tuple(modules)
        self._source: Source = self.modules[0].source

    @cached_property
    def _computations(self) -> list[Computation]:
        computations = [
            computation
            for module in self.modules
            for computation in module.computations.values()
            if not computation.is_synthetic
        ]
        return sorted(computations, key=lambda computation: computation.span[0])

    @cached_property
    def _starts(self) -> list[int]:
        return [computation.span[0] for computation in self._computations]

    def computation(self, number: int) -> Computation | None:
        """Return the computation that line `number` belongs to."""
        begin = self._source.offset(number + 1)
        end = self._source.offset(number + 2)
        at = bisect_right(self._starts, max(begin, end - 1)) - 1
        if at < 0:
            return None
        computation = self._computations[at]
        return computation if begin <= computation.span[2] else None

    def instruction(self, number: int) -> Instruction | None:
        """Return the instruction that line `number` belongs to; None in a header or an end, and outside of
        computations."""
        computation = self.computation(number)
        if computation is None or not computation.instructions:
            return None
        begin, end = self._source.offset(number + 1), self._source.offset(number + 2)
        line = self._source.text[begin:end]
        at = begin + len(line) - len(line.lstrip())
        if not line.strip() or at < computation.span[1]:
            return None
        instructions = computation.instructions
        place = bisect_right(instructions, at, key=lambda instruction: instruction.span[0]) - 1
        if place < 0 or at >= computation.span[2]:
            return None
        return instructions[place]

    def line_of(self, item: Instruction | Computation) -> int | None:
        """Return the line on which an instruction or computation begins; None if the text has it only in another
        form."""
        computation = item if isinstance(item, Computation) else item.computation
        return None if computation.is_synthetic else item.line - 1

    def line_of_kernel(self, computation: str, name: str) -> int | None:
        """Return the line of the instruction `name` in `computation`; None if no module has it."""
        for module in self.modules:
            holder = module.get(computation)
            instruction = holder.get(name) if holder is not None else None
            if instruction is not None:
                return self.line_of(instruction)
        return None

    # -- by name ----------------------------------------------------------------------------------------------

    def names(self, line: str) -> Sequence[Name]:
        """Return the names in a line that can be followed, from left to right."""
        metadata = line.find("metadata={")
        end = len(line) if metadata < 0 else metadata
        pattern = _NAME if "%" in line else _BARE
        return [Name(match.start(), match.end(), match[1]) for match in pattern.finditer(line, 0, end)]

    def main_name(self, number: int) -> str:
        """Return the name to follow from line `number` when none was chosen: what it calls, or its first operand."""
        instruction = self.instruction(number)
        if instruction is None:
            return ""
        called = instruction.called
        if called and instruction.opcode in _CALLING:
            return called[0]
        return next(iter((*instruction.operands, *called)), "")

    def defined_name(self, number: int) -> str:
        """Return the name that line `number` defines; empty if it defines none."""
        instruction = self.instruction(number)
        if instruction is not None:
            return instruction.name
        computation = self.computation(number)
        return computation.name if computation is not None else ""

    def definition(self, name: str, number: int) -> int | None:
        """Return the line where `name`, as line `number` means it, is defined."""
        name = name.lstrip("%")
        computation = self.computation(number)
        if computation is None:
            return None
        instruction = self.instruction(number)
        called = computation.module.get(name)
        if called is not None and instruction is not None and name in instruction.called:
            return self.line_of(called)
        value = computation.get(name)
        defined = value if value is not None else called
        return self.line_of(defined) if defined is not None else None

    def users(self, name: str, number: int) -> Sequence[int]:
        """Return the lines that use `name`, as line `number` means it."""
        name = name.lstrip("%")
        computation = self.computation(number)
        if computation is None:
            return []
        instruction = self.instruction(number)
        is_value = computation.get(name) is not None and (instruction is None or name not in instruction.called)
        users = computation.users(name) if is_value else computation.module.callers.get(name, ())
        lines = [line for user in users if (line := self.line_of(user)) is not None]
        if is_value or lines or computation.get(name) is None:
            return lines
        return [line for user in computation.users(name) if (line := self.line_of(user)) is not None]

    def statement(self, number: int) -> str:
        """Return the whole statement that line `number` belongs to, as written."""
        instruction = self.instruction(number)
        if instruction is not None:
            return instruction.text
        computation = self.computation(number)
        return computation.header if computation is not None else ""


_BLOCK = 1 << 20
_LONG = 1 << 14
"""Non-ASCII lines longer than this are measured in characters, not in columns."""
_GROUP, _GROUPS = 32, 16
"""Lines that are sliced together, because finding the first costs more than the others; and groups in the cache."""


class Document:
    """One text with its lines, counted from 0."""

    def __init__(self, text: str, language: Language | None = None, navigation: HloNavigation | None = None) -> None:
        self.source = Source(text)
        self.language = language
        """The language that colours its lines; None for plain text."""
        self.navigation = navigation
        """How to move through it by names; None for a text without them."""
        self.line_count = max(1, self.source.line_count)
        self._lines: dict[int, list[str]] = {}
        self._short = False
        self.widest = _widest(text)
        """Columns of the widest line; for a very long line, its characters."""

    @property
    def text(self) -> str:
        return self.source.text

    @property
    def short(self) -> bool:
        """Whether lines are shown without metadata and the backend's configuration; `text` always has both."""
        return self._short

    @short.setter
    def short(self, short: bool) -> None:
        self._short = short
        self._lines.clear()

    def line(self, number: int) -> str:
        """Return line `number`; empty outside of the text."""
        if not 0 <= number < self.line_count:
            return ""
        group, place = divmod(number, _GROUP)
        lines = self._lines.get(group)
        if lines is None:
            if len(self._lines) >= _GROUPS:
                self._lines.clear()
            lines = self.source.lines(group * _GROUP + 1, _GROUP)
            lines = self._lines[group] = list(map(short_text, lines)) if self._short else lines
        return lines[place] if place < len(lines) else ""

    def offset(self, number: int) -> int:
        """Return where line `number` begins in the text."""
        return self.source.offset(number + 1)

    def number(self, offset: int) -> int:
        """Return the line that holds the character at `offset`."""
        return self.source.line(offset) - 1


def column(raw: str, offset: int) -> int:
    """Return the column at which character `offset` of a line is shown."""
    return columns(safe(raw[:offset]))


def _widest(text: str) -> int:
    """Return the columns of the widest line. Splits the text block by block, so that only part of the lines exists
    at a time."""
    widest = at = 0
    while at < len(text):
        end = text.find("\n", at + _BLOCK)
        end = len(text) if end < 0 else end
        lines = text[at:end].split("\n")
        if text[at:end].isascii():
            widest = max(widest, max(map(len, lines)))
        else:
            widest = max(widest, max(len(line) if len(line) > _LONG else columns(safe(line)) for line in lines))
        at = end + 1
    return widest
