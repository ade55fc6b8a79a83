"""A computation of an HLO module: cut into instructions when these are first asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from jaxprof.hlo import record, split
from jaxprof.hlo.instruction import Instruction
from jaxprof.hlo.syntax import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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


class Computation:
    """A function of HLO: instructions in order, one of which, the root, is its value."""

    is_synthetic: bool = False
    """The text has it in a short form only (`custom-call-start`): `source` is a text of its own."""

    def __init__(self, module: Module, name: str, span: tuple[int, int, int], *, is_entry: bool = False) -> None:
        self.module: Final = module
        self.name: Final = name
        """Without `%`."""
        self.span: Final = span
        """Where its header begins, and where the text between its braces begins and ends, in `source.text`."""
        self.is_entry: Final = is_entry

    @property
    def source(self) -> Source:
        """The text in which it lies: the module's, but for a synthetic one."""
        return self.module.source

    def __repr__(self) -> str:
        return f"<Computation {self.name}>"

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.instructions)

    def __getitem__(self, name: str) -> Instruction:
        """The instruction of that name. Raises KeyError."""
        return self._by_name[name]

    def get(self, name: str) -> Instruction | None:
        return self._by_name.get(name)

    @cached_property
    def _pieces(self) -> split.Pieces:
        return split.instructions(self.source.text, *self.span[1:])

    @cached_property
    def instructions(self) -> Sequence[Instruction]:
        """All of them, in the order of the text."""
        return tuple([Instruction(self, name, number) for number, name in enumerate(self._pieces.names)])

    @cached_property
    def _by_name(self) -> dict[str, Instruction]:
        # Reversed, so that of two with one name (a broken module) the first is found.
        return {instruction.name: instruction for instruction in reversed(self.instructions)}

    def _span(self, position: int) -> tuple[int, int]:
        starts = self._pieces.starts
        return starts[position], starts[position + 1]

    @cached_property
    def _known(self) -> dict[int, Record | None]:
        return self.module._known

    def _record(self, position: int) -> Record | None:
        starts = self._pieces.starts
        start = starts[position]
        known = self._known
        try:
            return known[start]
        except KeyError:
            if len(known) >= _REMEMBERED:
                known.clear()
            found = known[start] = record.read(self.source.text, start, starts[position + 1])
            return found

    @cached_property
    def root(self) -> Instruction | None:
        """The instruction marked ROOT, or the last one; None for an empty computation."""
        marked = self._pieces.root
        if not self.instructions:
            return None
        return self.instructions[marked if marked is not None else -1]

    @cached_property
    def parameters(self) -> tuple[Instruction, ...]:
        """Its parameters by number."""
        found = [instruction for instruction in self.instructions if instruction.opcode == "parameter"]
        return tuple(sorted(found, key=lambda instruction: instruction.parameter_number or 0))

    @cached_property
    def _users(self) -> dict[str, list[Instruction]]:
        found: dict[str, list[Instruction]] = {}
        for instruction in self.instructions:
            for name in dict.fromkeys(instruction.operands):
                found.setdefault(name, []).append(instruction)
        return found

    def users(self, name: str) -> tuple[Instruction, ...]:
        """The instructions that take the value `name`, each once, in order. The first call reads all operands."""
        return tuple(self._users.get(name, ()))

    @property
    def header(self) -> str:
        """The line (or lines) before its opening brace: name and signature, as written."""
        start, body, _ = self.span
        return self.source.text[start : max(body - 1, start)].strip()

    @property
    def line(self) -> int:
        """The number of the line on which its header begins."""
        return self.source.line(self.span[0])

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

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """The lines in it that could not be read. Reads every instruction."""
        return tuple(
            Problem(instruction.line, "not an instruction", instruction.text[:200])
            for instruction in self.instructions
            if not instruction.readable
        )


class SyntheticComputation(Computation):
    """A computation that the text leaves out, with a text made for it."""

    is_synthetic = True

    def __init__(self, module: Module, name: str, source: Source, span: tuple[int, int, int]) -> None:
        super().__init__(module, name, span)
        self._source: Final = source

    @property
    def source(self) -> Source:
        return self._source

    @cached_property
    def _known(self) -> dict[int, Record | None]:
        return {}
