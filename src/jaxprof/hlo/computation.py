"""A computation of an HLO module: cut into instructions when these are first asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from jaxprof.hlo import record, split
from jaxprof.hlo.instruction import Instruction
from jaxprof.hlo.syntax import unquote

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator

    from jaxprof.hlo.model import Module
    from jaxprof.hlo.record import Record
    from jaxprof.hlo.source import Source

_REMEMBERED: Final = 16384
"""Instructions whose parts a module keeps at once. They are forgotten together: about 20 MB, whatever the module."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A place that could not be read, and what was expected there. The rest of the module is still read."""

    line: int
    """Counted from 1, in the file or text that was given."""
    message: str
    text: str
    """The beginning of what stands there."""


class _Cut(NamedTuple):
    """A computation's text, cut into instructions: number n lies from `starts[n]` to `starts[n + 1]`."""

    instructions: tuple[Instruction, ...]
    starts: array[int]
    root: Instruction | None


class Computation:
    """A function of HLO: instructions in order, one of which, the root, is its value."""

    # A large module has a hundred thousand of these: slots, and no cached properties, which need a dictionary each.
    __slots__ = ("_by_name", "_cut", "_parameters", "_remembered", "_users", "is_entry", "module", "name", "span")

    def __init__(self, module: Module, name: str, span: tuple[int, int, int], is_entry: bool = False) -> None:
        self.module: Final = module
        self.name: Final = name
        """Without `%`."""
        self.span: Final = span
        """Where its header begins, and where the text between its braces begins and ends, in `source.text`."""
        self.is_entry: Final = is_entry
        self._remembered: dict[int, Record | None] = module._remembered
        """The parts of instructions that were read, by where they begin in `source`."""
        self._cut: _Cut | None = None
        self._by_name: dict[str, Instruction] | None = None
        self._parameters: tuple[Instruction, ...] | None = None
        self._users: dict[str, tuple[Instruction, ...]] | None = None

    def __repr__(self) -> str:
        return f"<Computation {self.name}>"

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.instructions)

    def __getitem__(self, name: str) -> Instruction:
        """The instruction of that name. Raises KeyError."""
        found = self.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def get(self, name: str) -> Instruction | None:
        by_name = self._by_name
        if by_name is None:
            # Reversed, so that of two with one name (a broken module) the first is found.
            by_name = self._by_name = {instruction.name: instruction for instruction in reversed(self.instructions)}
        return by_name.get(name)

    @property
    def source(self) -> Source:
        """The text in which it lies: the module's, but for a synthetic one."""
        return self.module.source

    @property
    def is_synthetic(self) -> bool:
        """The text has it in a short form only (`custom-call-start`): `source` is a text of its own."""
        return False

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """All of them, in the order of the text."""
        return (self._cut or self._cut_up()).instructions

    def _cut_up(self) -> _Cut:
        names, starts, root = split.instructions(self.source.text, *self.span[1:])
        instructions = tuple([Instruction(self, name, number) for number, name in enumerate(names)])
        self._cut = _Cut(instructions, starts, instructions[-1 if root is None else root] if instructions else None)
        return self._cut

    def _span(self, position: int) -> tuple[int, int]:
        starts = (self._cut or self._cut_up()).starts
        return starts[position], starts[position + 1]

    def _record(self, position: int) -> Record | None:
        starts = (self._cut or self._cut_up()).starts
        start = starts[position]
        known = self._remembered
        try:
            return known[start]
        except KeyError:
            if len(known) >= _REMEMBERED:
                known.clear()
            found = known[start] = record.read(self.source.text, start, starts[position + 1])
            return found

    @property
    def root(self) -> Instruction | None:
        """The instruction marked ROOT, or the last one; None for an empty computation."""
        return (self._cut or self._cut_up()).root

    @property
    def parameters(self) -> tuple[Instruction, ...]:
        """Its parameters by number."""
        if self._parameters is None:
            found = [instruction for instruction in self.instructions if instruction.opcode == "parameter"]
            self._parameters = tuple(sorted(found, key=lambda instruction: instruction.parameter_number or 0))
        return self._parameters

    def users(self, name: str) -> tuple[Instruction, ...]:
        """The instructions that take the value `name`, each once, in order. The first call reads all operands."""
        if self._users is None:
            found: dict[str, list[Instruction]] = {}
            for instruction in self.instructions:
                for operand in dict.fromkeys(instruction.operands):
                    found.setdefault(operand, []).append(instruction)
            self._users = {operand: tuple(users) for operand, users in found.items()}
        return self._users.get(name, ())

    @property
    def header(self) -> str:
        """The line (or lines) before its opening brace: name and signature, as written."""
        start, body, _ = self.span
        return self.source.text[start : max(body - 1, start)].strip()

    @property
    def line(self) -> int:
        """The number of the line on which its header begins."""
        return self._line(self.span[0])

    def _line(self, offset: int) -> int:
        return self.source.line(offset)

    @property
    def text(self) -> str:
        """All of it, as written, from the header to the closing brace."""
        start, _, end = self.span
        text = self.source.text
        return text[start : end + (text[end : end + 1] == "}")]

    @property
    def execution_thread(self) -> str:
        """The thread that runs it (`}, execution_thread="host"`); empty for the main one."""
        text = self.source.text
        end = text.find("\n", self.span[2])
        rest = text[self.span[2] : end if end >= 0 else len(text)]
        _, found, value = rest.partition("execution_thread=")
        return unquote(value.strip()) if found else ""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The lines in it that could not be read. Reads every instruction."""
        return tuple(
            Problem(instruction.line, "not an instruction", instruction.text[:200])
            for instruction in self.instructions
            if not instruction.readable
        )


class SyntheticComputation(Computation):
    """A computation that the text leaves out, with a text made for it."""

    __slots__ = ("_line_of_all", "_own_source")

    def __init__(self, module: Module, name: str, source: Source, span: tuple[int, int, int], line: int) -> None:
        """`line` is that of the instruction that stands for it: what every line in it is said to be."""
        super().__init__(module, name, span)
        self._own_source: Final = source
        self._remembered = {}
        self._line_of_all: Final = line

    @property
    def source(self) -> Source:
        return self._own_source

    @property
    def is_synthetic(self) -> bool:
        return True

    def _line(self, offset: int) -> int:
        return self._line_of_all
