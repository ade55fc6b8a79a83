"""One instruction of an HLO computation, as a view over its text."""

from __future__ import annotations

import json
from sys import intern
from typing import TYPE_CHECKING, Final

from jaxprof.hlo.record import Metadata, Record
from jaxprof.hlo.shape import Shape
from jaxprof.hlo.sugar import unsugared
from jaxprof.hlo.syntax import unquote

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jaxprof.hlo.computation import Computation
    from jaxprof.hlo.frames import Frame


class Instruction:
    """One instruction of a computation: a value's name, its shape, and how it comes about."""

    __slots__ = ("_opcode", "computation", "name", "position")
    _opcode: str
    """Set when it was first asked for: the analysis asks ten times, long after the record was forgotten."""

    def __init__(self, computation: Computation, name: str, position: int) -> None:
        self.computation: Final = computation
        self.name: Final = name
        """Without `%`. Unique in a computation of a sound module; a computation may have the same name."""
        self.position: Final = position
        """Its place in the computation, from 0. In a scheduled module this is the order of execution."""

    def __repr__(self) -> str:
        return f"<Instruction {self.computation.name}/{self.name}: {self.opcode}>"

    @property
    def _record(self) -> Record | None:
        return self.computation._record(self.position)

    @property
    def readable(self) -> bool:
        """False where the text could not be read as an instruction: then `opcode` is empty and `text` is all."""
        return self._record is not None

    @property
    def opcode(self) -> str:
        """XLA's word for the operation (`fusion`, `dot`, `get-tuple-element`); empty for an unreadable line.

        `async-start`, `async-update` and `async-done` for wrapped operations, also where the text has the short form
        (`custom-call-start`): `wrapped_opcode` says what is wrapped. `all-reduce-start`, `all-gather-start`,
        `collective-permute-start`, `copy-start` and their dones are opcodes of their own.
        """
        try:
            return self._opcode
        except AttributeError:
            read = self._record
            # Interned, as there are a hundred different ones and perhaps a million instructions.
            self._opcode = intern(unsugared(read.opcode)[0]) if read is not None else ""
            return self._opcode

    @property
    def wrapped_opcode(self) -> str:
        """What an `async-start`, `async-update` or `async-done` wraps; empty for every other opcode."""
        read = self._record
        if read is None:
            return ""
        opcode, wrapped = unsugared(read.opcode)
        if wrapped or not opcode.startswith("async-"):
            return wrapped
        start: Instruction | None = self
        for _ in range(_LONGEST_CHAIN):
            if start is None or start.opcode == "async-start" or not start.operands:
                break
            start = self.computation.get(start.operands[0])
        called = self.computation.module.get(start.called[0]) if start is not None and start.called else None
        return called.root.opcode if called is not None and called.root is not None else ""

    @property
    def shape(self) -> Shape:
        """The type of its value. `Shape.dtype` is empty where the text of the shape could not be read."""
        read = self._record
        return read.shape if read else _NO_SHAPE

    @property
    def operands(self) -> tuple[str, ...]:
        """Names of the instructions of this computation that it takes, in order, with repetitions."""
        read = self._record
        return read.operands if read else ()

    def operand(self, number: int) -> Instruction | None:
        """The instruction that operand `number` names; None where there is no such operand or no such instruction."""
        names = self.operands
        return self.computation.get(names[number]) if -len(names) <= number < len(names) else None

    def operand_instructions(self) -> tuple[Instruction, ...]:
        """The instructions that it takes, in order; names that nothing bears are left out."""
        found = (self.computation.get(name) for name in self.operands)
        return tuple(instruction for instruction in found if instruction is not None)

    @property
    def users(self) -> tuple[Instruction, ...]:
        """The instructions of the same computation that take it, each once, in order."""
        return self.computation.users(self.name)

    @property
    def called(self) -> tuple[str, ...]:
        """Names of the computations that it calls, in XLA's order: a while loop's body, then its condition."""
        read = self._record
        if read is None:
            return ()
        computation = self.computation
        return read.called({} if computation.is_synthetic else computation.module._in_place)

    def called_computations(self) -> tuple[Computation, ...]:
        """The computations that it calls, in order; names that the module does not have are left out."""
        found = (self.computation.module.get(name) for name in self.called)
        return tuple(computation for computation in found if computation is not None)

    @property
    def attributes(self) -> Mapping[str, str]:
        """What follows the operands: name to raw text (quotes and braces kept), in the order of the text."""
        read = self._record
        return read.attributes if read else {}

    def string(self, attribute: str) -> str:
        """An attribute without its quotes and escapes (`custom_call_target`, `kind`, `direction`); empty if absent."""
        return unquote(self.attributes.get(attribute, ""))

    def integers(self, attribute: str) -> tuple[int, ...]:
        """A braced list of integers (`dimensions={0,1}`) or a single one (`index=3`); empty if absent or otherwise."""
        raw = self.attributes.get(attribute, "").strip("{} ")
        try:
            return tuple(int(number) for number in raw.split(",")) if raw else ()
        except ValueError:
            return ()

    @property
    def backend_config(self) -> Mapping[str, object]:
        """The backend's own settings when they are a JSON object, printed bare or as a quoted string; else empty.

        The raw text is `attributes["backend_config"]`.
        """
        raw = unquote(self.attributes.get("backend_config", ""))
        if not raw.lstrip().startswith("{"):
            return {}
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    @property
    def metadata(self) -> Metadata:
        """Where it came from. All fields are empty or 0 where the text says nothing."""
        read = self._record
        return read.metadata if read else Metadata()

    @property
    def stack(self) -> tuple[Frame, ...]:
        """Its stack frames, innermost first: see `Module.stack`."""
        return self.computation.module.stack(self)

    @property
    def literal(self) -> str:
        """What stands in the parentheses of a `constant`, as written, unread; empty for every other opcode."""
        read = self._record
        return read.text[slice(*read.inside)] if read and read.opcode == "constant" else ""

    @property
    def parameter_number(self) -> int | None:
        """N of `parameter(N)`; None for every other opcode."""
        read = self._record
        if read is None or read.opcode != "parameter":
            return None
        number = read.text[slice(*read.inside)].strip()
        return int(number) if number.isdecimal() and len(number) < 19 else None

    @property
    def is_root(self) -> bool:
        """It is the value of its computation."""
        return self.computation.root is self

    @property
    def span(self) -> tuple[int, int]:
        """Where its text begins and ends in `computation.source.text`."""
        return self.computation._span(self.position)

    @property
    def text(self) -> str:
        """Its text as written, without the indentation and what follows its last attribute."""
        start, end = self.span
        return self.computation.source.text[start:end].strip()

    @property
    def line(self) -> int:
        """The number of the line on which it begins, counted from 1."""
        text = self.computation.source.text
        start, end = self.span
        return self.computation._line(end - len(text[start:end].lstrip()))


_NO_SHAPE: Final = Shape(dtype="")
_LONGEST_CHAIN: Final = 64
"""Steps from an `async-done` back to its start: there are seldom more than three, and in a broken text no end."""
