"""An HLO module as values: modules hold computations, computations hold instructions, each read on first use.

The model is a view of the module's text. Opening a module costs an index (`jaxprof.hlo.text.parse`); a computation is
split into instructions when these are first requested, and an instruction's parts are read on request, so a module of a
million instructions costs only what is used. Values do not change once made. Names are XLA's own. What cannot be read
keeps its text and is listed by `jaxprof.hlo.kernels.notices`; nothing here raises on malformed text.
"""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property, wraps
from sys import intern
from typing import Final, NamedTuple, TypeVar, cast

from jaxprof.base.grouping import grouped
from jaxprof.base.text import whole_number
from jaxprof.base.values import not_collecting
from jaxprof.hlo.shape import Shape, parse_shape
from jaxprof.hlo.source import Frame, Problem, Source, Tables, own_frame
from jaxprof.hlo.text import end_of_brackets, operand_names, record, unquote, unsugar
from jaxprof.hlo.text.record import UNREADABLE, Metadata, Record

Derived = TypeVar("Derived")

_ALIAS = re.compile(r"\{([\d,\s]*)\}\s*:\s*\(\s*(\d{1,18})")
_NUMBER = re.compile(r"\d{1,18}")

_LARGE = 1 << 20  # characters: collecting garbage among so many new instructions takes longer than making them
_REMEMBERED = 16384
"""Instructions whose parts a module keeps at once, about 20 MB for any module. They are dropped together."""


class Instruction:
    """One instruction of a computation: a value's name, its shape, and how it is computed."""

    __slots__ = ("_opcode", "_shape", "computation", "name", "position")

    def __init__(
        self, computation: Computation, name: str, position: int, opcode: str | None = None, shape: Shape | None = None
    ) -> None:
        self.computation: Final = computation
        self.name: Final = name
        """Name without `%`. Unique in a computation of a well-formed module; a computation may have the same name."""
        self.position: Final = position
        """Position in the computation, from 0. In a scheduled module this is the order of execution."""
        self._opcode = opcode
        self._shape = shape

    def __repr__(self) -> str:
        return f"<Instruction {self.computation.name}/{self.name}: {self.opcode}>"

    @property
    def parts(self) -> Record:
        """The instruction's text split into parts, which the properties below read."""
        computation = self.computation
        start = (computation._cut or computation._split()).starts[self.position]
        return computation._remembered.get(start) or computation._read(self.position)

    @property
    def readable(self) -> bool:
        """False if the text could not be read as an instruction; then `opcode` is empty and only `text` is known."""
        return self.parts is not UNREADABLE

    @property
    def opcode(self) -> str:
        """XLA's word for the operation (`fusion`, `dot`, `get-tuple-element`); empty for an unreadable line.

        Wrapped operations have `async-start`, `async-update` and `async-done`, even if the text has the short form
        (`custom-call-start`); `wrapped_opcode` says what is wrapped. `all-reduce-start`, `all-gather-start`,
        `collective-permute-start`, `copy-start` and their dones are opcodes of their own.
        """
        if self._opcode is None:
            self._learn()
        assert self._opcode is not None
        return self._opcode

    def _learn(self) -> None:
        """Read the opcode and the shape once: the analysis needs both ten times, long after the record is dropped."""
        parts = self.parts
        self._opcode, self._shape = self.computation.module._read_head((parts.shape_text, parts.opcode))

    @property
    def wrapped_opcode(self) -> str:
        """Opcode that an `async-start` wraps; empty for every other opcode, and if the text does not show it."""
        if self.opcode != "async-start":
            return ""
        root = self.called_root
        return unsugar(self.parts.opcode)[1] or (root.opcode if root is not None else "")

    @property
    def shape(self) -> Shape:
        """Type of the value. `Shape.dtype` is empty if the text of the shape could not be read.

        Instructions of a module whose shapes are written alike share one object.
        """
        if self._shape is None:
            self._learn()
        assert self._shape is not None
        return self._shape

    @property
    def operands(self) -> tuple[str, ...]:
        """Names of the instructions of this computation that it takes, in order, with repetitions."""
        return self.parts.operands

    @property
    def inside(self) -> tuple[int, int]:
        """Bounds of the text between the parentheses after the opcode, in `computation.source.text`."""
        computation = self.computation
        start = (computation._cut or computation._split()).inside[self.position]
        return (start, computation.source.text.index(")", start)) if start else self.parts.inside

    @property
    def tail(self) -> str | None:
        """Text after the operands, with the end of the line; None unless shape and operands are plain."""
        computation = self.computation
        cut, text = computation._cut or computation._split(), computation.source.text
        start = cut.inside[self.position]
        return text[text.index(")", start) + 1 : cut.starts[self.position + 1]] if start else None

    def operand(self, number: int) -> Instruction | None:
        """Return the instruction that operand `number` names; None if there is no such operand or no such
        instruction."""
        names = self.operands
        return self.computation.get(names[number]) if -len(names) <= number < len(names) else None

    def operand_instructions(self) -> tuple[Instruction, ...]:
        """Return the instructions that it takes, in order; names without an instruction are left out."""
        instructions = (self.computation.get(name) for name in self.operands)
        return tuple(instruction for instruction in instructions if instruction is not None)

    @property
    def users(self) -> tuple[Instruction, ...]:
        """Distinct instructions of the same computation that take this one, in order."""
        return self.computation.users(self.name)

    @property
    def called(self) -> tuple[str, ...]:
        """Names of the computations that it calls, in XLA's order: a while loop's body, then its condition."""
        computation = self.computation
        return self.parts.callees({} if computation.is_synthetic else computation.module._implied)

    def callees(self) -> tuple[Computation, ...]:
        """Return the computations that it calls, in order; names that the module lacks are left out."""
        computations = (self.computation.module.get(name) for name in self.called)
        return tuple(computation for computation in computations if computation is not None)

    @property
    def called_root(self) -> Instruction | None:
        """Root of the first computation that it calls: what a fusion, a call, a loop's body or a reduction's combiner
        returns. None if the module has no such computation."""
        called = self.callees()
        return called[0].root if called else None

    @property
    def attributes(self) -> Mapping[str, str]:
        """Attributes after the operands, from name to raw text (with quotes and braces), in text order."""
        return self.parts.attributes

    def string(self, attribute: str) -> str:
        """Return an attribute without its quotes and escapes (`custom_call_target`, `kind`, `direction`); empty if
        absent."""
        return unquote(self.attributes.get(attribute, ""))

    def integers(self, attribute: str) -> tuple[int, ...]:
        """Return a braced list of integers (`dimensions={0,1}`) or a single one (`index=3`); empty if absent or
        otherwise."""
        raw = self.attributes.get(attribute, "").strip("{} ")
        try:
            return tuple(int(number) for number in raw.split(",")) if raw else ()
        except ValueError:
            return ()

    @property
    def backend_config(self) -> Mapping[str, object]:
        """The backend's own settings if they are a JSON object, printed bare or as a quoted string; else empty.

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
        """Where the instruction came from. All fields are empty or 0 if the text says nothing."""
        return self.parts.metadata

    @property
    def stack(self) -> tuple[Frame, ...]:
        """Stack frames, innermost first: see `Module.stack_of`."""
        return self.computation.module.stack_of(self.metadata)

    @property
    def locations(self) -> tuple[int, ...]:
        """Numbers of the locations of the stack's frames; two calls on one line have different ones. Empty for a stack
        that is not in the module's table."""
        return self.computation.module.tables.locations(self.metadata.stack_frame_id)

    @property
    def origin(self) -> tuple[str, str, int | None]:
        """JAX's operation, and the file and line of the user's code that it came from; for an argument its name. Empty
        or None if the text does not say."""
        frame = own_frame(self.stack)
        file, line = (frame.file, frame.line) if frame is not None else ("", None)
        return self.metadata.first_name, file, line

    @property
    def literal(self) -> str:
        """Text in the parentheses of a `constant`, as written; empty for every other opcode."""
        read = self.parts
        return read.text[slice(*read.inside)] if read.opcode == "constant" else ""

    @property
    def parameter_number(self) -> int | None:
        """N of `parameter(N)`; None for every other opcode."""
        read = self.parts
        if read.opcode != "parameter":
            return None
        return whole_number(read.text[slice(*read.inside)].strip())

    @property
    def is_root(self) -> bool:
        """Whether this is the value of its computation."""
        return self.computation.root is self

    @property
    def span(self) -> tuple[int, int]:
        """Bounds of the text in `computation.source.text`."""
        return self.computation._span(self.position)

    @property
    def text(self) -> str:
        """Text as written, without the indentation and what follows the last attribute."""
        start, end = self.span
        return self.computation.source.text[start:end].strip()

    @property
    def line(self) -> int:
        """Number of the line on which the instruction begins, counted from 1."""
        source = self.computation.source
        start, end = self.span
        return source.line(end - len(source.text[start:end].lstrip()))


class _Cut(NamedTuple):
    """A computation's text split into instructions: number n is from `starts[n]` to `starts[n + 1]`."""

    instructions: tuple[Instruction, ...]
    starts: array[int]
    inside: array[int]
    root: Instruction | None


class Computation:
    """A function of HLO: instructions in order, one of which, the root, is its value."""

    # A large module has a hundred thousand of these: slots, and no cached properties, which need a dictionary each.
    __slots__ = (
        "_by_name", "_cut", "_parameters", "_remembered", "_users", "is_entry", "module", "name", "source", "span",
    )  # fmt: skip

    def __init__(
        self,
        module: Module,
        name: str,
        span: tuple[int, int, int],
        is_entry: bool = False,
        source: Source | None = None,
    ) -> None:
        self.module: Final = module
        self.name: Final = name
        """Name without `%`."""
        self.span: Final = span
        """Start of the header, and bounds of the text between the braces, in `source.text`."""
        self.is_entry: Final = is_entry
        self.source: Final = source or module.source
        """Text that holds the computation: the module's, except for a synthetic computation."""
        self._remembered: dict[int, Record] = module._remembered if source is None else {}
        """Parts of the instructions that were read, by their offset in `source`."""
        self._cut: _Cut | None = None
        self._by_name: dict[str, Instruction] | None = None
        self._parameters: tuple[Instruction, ...] | None = None
        self._users: dict[str, tuple[Instruction, ...]] | None = None

    def __repr__(self) -> str:
        return f"<Computation {self.name}>"

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self.instructions)

    def __getitem__(self, name: str) -> Instruction:
        """Return the instruction of that name. Raises KeyError."""
        return self.by_name[name]

    @property
    def by_name(self) -> Mapping[str, Instruction]:
        """Instructions by name. The first one, if a malformed module has two of one name."""
        if self._by_name is None:
            self._by_name = {instruction.name: instruction for instruction in reversed(self.instructions)}
        return self._by_name

    def get(self, name: str) -> Instruction | None:
        return self.by_name.get(name)

    def named(self, inside: str) -> list[Instruction] | None:
        """Return the instructions that an operand list names; None if one of them is missing."""
        get, names = self.by_name.get, inside[1:].split(", %")  # as XLA prints them
        found = list(map(get, names))
        if None in found or "" in names or inside[0] != "%":
            found = list(map(get, operand_names(inside)))
        return None if None in found else cast("list[Instruction]", found)

    @property
    def is_synthetic(self) -> bool:
        """Whether the text has it only in a short form (`custom-call-start`); `source` is then a text of its own."""
        return self.source is not self.module.source

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """All instructions, in text order."""
        return (self._cut or self._split()).instructions

    def _split(self) -> _Cut:
        with not_collecting() if self.span[2] - self.span[1] > _LARGE else nullcontext():
            names, heads, starts, inside, root = record.split_instructions(self.source.text, *self.span[1:])
            known: dict[record.Head, tuple[str | None, Shape | None]] = {None: (None, None)}
            known |= {head: self.module._read_head(head) for head in set(heads) if head is not None}
            instructions = tuple(
                [Instruction(self, name, number, *known[heads[number]]) for number, name in enumerate(names)]
            )
        root_instruction = instructions[-1 if root is None else root] if instructions else None
        self._cut = _Cut(instructions, starts, inside, root_instruction)
        return self._cut

    def at(self, offset: int) -> Instruction | None:
        """Return the instruction whose text holds the character at `offset` of `source`; None before the first."""
        cut = self._cut or self._split()
        position = bisect_right(cut.starts, offset) - 1
        return cut.instructions[position] if 0 <= position < len(cut.instructions) else None

    def forget(self) -> None:
        """Free the memory of the instructions: they are split again, as new objects, on the next request."""
        self._cut = self._by_name = self._parameters = self._users = None

    def _span(self, position: int) -> tuple[int, int]:
        starts = (self._cut or self._split()).starts
        return starts[position], starts[position + 1]

    def _read(self, position: int) -> Record:
        start, end = self._span(position)
        remembered = self._remembered
        if len(remembered) >= _REMEMBERED:
            remembered.clear()
        parts = remembered[start] = record.read(self.source.text, start, end) or UNREADABLE
        return parts

    @property
    def root(self) -> Instruction | None:
        """Instruction marked ROOT, or the last one; None for an empty computation."""
        return (self._cut or self._split()).root

    @property
    def parameters(self) -> tuple[Instruction, ...]:
        if self._parameters is None:
            unordered = [instruction for instruction in self.instructions if instruction.opcode == "parameter"]
            self._parameters = tuple(sorted(unordered, key=lambda instruction: instruction.parameter_number or 0))
        return self._parameters

    def users(self, name: str) -> tuple[Instruction, ...]:
        """Return the distinct instructions that take the value `name`, in order. The first call reads all operands."""
        if self._users is None:
            takers = grouped(
                (operand, instruction)
                for instruction in self.instructions
                for operand in dict.fromkeys(instruction.operands)
            )
            self._users = {operand: tuple(users) for operand, users in takers.items()}
        return self._users.get(name, ())

    @property
    def line(self) -> int:
        """Number of the line on which the header begins."""
        return self.source.line(self.span[0])


def once_per_module(work: Callable[[Module], Derived]) -> Callable[[Module], Derived]:
    """Decorate a function of a module: its result is computed once and kept as long as the module."""

    @wraps(work)
    def once(module: Module) -> Derived:
        return module.once(work)

    return once


class Module:
    """One HLO module: the unit that XLA compiles, or has compiled."""

    def __init__(
        self, name: str, source: Source, attributes: Mapping[str, str], span: tuple[int, int], tables: Tables
    ) -> None:
        self.name: Final = name
        """Name; empty for computations without a `HloModule` line."""
        self.source: Final = source
        self.attributes: Final = attributes
        """Attributes of the header line: name to raw text."""
        self.span = span
        """Bounds of the module's text in `source.text`."""
        self.tables: Final = tables
        self.platform = ""
        """The platform of the device that it ran on, if that is known from elsewhere: `cpu`, `gpu`, `tpu`."""
        self.siblings: tuple[Module, ...] = (self,)
        """All modules of the text, in order; this one alone if the text has no others."""
        self._computations: dict[str, Computation] = {}
        self._implied: dict[int, str] = {}
        self._index_problems: list[Problem] = []
        self._remembered: dict[int, Record] = {}
        self._shapes: dict[str, Shape] = {}
        self._derived: dict[object, object] = {}

    def __repr__(self) -> str:
        return f"<Module {self.name}: {len(self._computations)} computations>"

    def _read_head(self, head: tuple[str, str]) -> tuple[str, Shape]:
        """Return the opcode and the shape of an instruction from both as written. All that are alike share one."""
        written, opcode = head
        shape = self._shapes.get(written)
        if shape is None:
            try:
                shape = parse_shape(written)
            except ValueError:
                shape = Shape(dtype="")
            self._shapes[written] = shape
        # Interned, because there are a hundred different opcodes and perhaps a million instructions.
        return intern(unsugar(opcode)[0]), shape

    # The methods with an underscore are for the reader that builds the module, which does not change afterwards.

    def _end(self, end: int) -> None:
        self.span = (self.span[0], end)
        self.tables.end = min(self.tables.end, end)

    def _insert(self, before: Mapping[str, Sequence[Computation]]) -> None:
        # A computation stands before the one that calls it, as in every text of XLA.
        written = list(self._computations.values())
        self._computations.clear()
        for computation in written:
            for extra in (*before.get(computation.name, ()), computation):
                self._computations[extra.name] = extra

    def once(self, work: Callable[[Module], Derived]) -> Derived:
        """Return the result of `work` for this module, computed once and kept as long as the module."""
        try:
            return cast("Derived", self._derived[work])
        except KeyError:
            # two threads that compute it at once both get the first one's result
            return self.remember(work, work(self))

    def remember(self, work: Callable[[Module], Derived], result: Derived) -> Derived:
        """Keep what `once(work)` returns from now on; return what it returned before, if it did."""
        return cast("Derived", self._derived.setdefault(work, result))

    @property
    def computations(self) -> Mapping[str, Computation]:
        """Computations by name, in text order. Each is read on first use."""
        return self._computations

    def __getitem__(self, name: str) -> Computation:
        """Return the computation of that name. Raises KeyError."""
        return self._computations[name]

    def get(self, name: str) -> Computation | None:
        return self._computations.get(name)

    @cached_property
    def entry(self) -> Computation | None:
        """Computation that runs when the module does: the one marked ENTRY, or the last.

        None if the module has none, and if the last one is not marked and takes or gives other arrays than the header
        states: then the text ends before its entry.
        """
        marked = [computation for computation in self._computations.values() if computation.is_entry]
        if marked:
            return marked[-1]
        last = next(reversed(self._computations.values()), None)
        return last if last is None or self._may_be_entry(last) else None

    def _may_be_entry(self, computation: Computation) -> bool:
        """Return whether its parameters and its root match `entry_computation_layout`, as far as both can be read."""
        layout = self.attributes.get("entry_computation_layout", "").removeprefix("{").removesuffix("}")
        end = end_of_brackets(layout, 0, len(layout)) if layout.startswith("(") else -1
        if end < 0:
            return True
        try:
            parameters = parse_shape(layout[:end]).tuple_shapes
            result = parse_shape(layout[end:].removeprefix("->"))
        except ValueError:
            return True
        root = computation.root
        taken = [parameter.shape for parameter in computation.parameters]
        return (
            root is not None
            and [shape.without_layout() for shape in taken] == [shape.without_layout() for shape in parameters]
            and root.shape.without_layout() == result.without_layout()
        )

    @property
    def is_scheduled(self) -> bool:
        """Whether the order of the instructions is the order in which they run."""
        return self.attributes.get("is_scheduled") == "true"

    @property
    def is_optimised(self) -> bool:
        """Whether XLA's passes have run: the module is scheduled, or holds fusions."""
        return self.is_scheduled or self.source.text.find(" fusion(", *self.span) >= 0

    @cached_property
    def aliases(self) -> Mapping[tuple[int, ...], int]:
        """Number of the parameter whose buffer an output reuses (donation), by the output's indices into the result."""
        return {
            tuple(int(number) for number in _NUMBER.findall(index)): int(parameter)
            for index, parameter in _ALIAS.findall(self.attributes.get("input_output_alias", ""))
        }

    @cached_property
    def callers(self) -> Mapping[str, tuple[Instruction, ...]]:
        """Instructions that call each called computation. Reads the whole module once."""
        callers = grouped(
            (name, instruction)
            for computation in self._computations.values()
            for instruction in computation.instructions
            for name in instruction.called
        )
        return {name: tuple(instructions) for name, instructions in callers.items()}

    def stack_of(self, metadata: Metadata) -> tuple[Frame, ...]:
        """Return where an instruction with such metadata was called from, innermost frame first; empty if the text does
        not say.

        A module without tables has at most one frame, from `source_file` and `source_line`.
        """
        frames = self.tables.stack(metadata.stack_frame_id)
        if frames or not metadata.source_file:
            return frames
        return (Frame(metadata.source_file, "", metadata.source_line),)

    @property
    def text(self) -> str:
        return self.source.text[slice(*self.span)]
