"""Derive which kernel reads which other kernel's result: the arrays that go through memory between two kernels.

Values are followed through everything that launches nothing (bitcasts, tuples and their elements, the second halves of
asynchronous pairs) and, across a border that no fusion crosses, into and out of loops, branches and calls.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterator
from functools import cached_property
from typing import TypeAlias

from jaxprof.frozen import frozen
from jaxprof.hlo.analysis.cost.library import ANNOTATIONS
from jaxprof.hlo.analysis.dataflow import renamed
from jaxprof.hlo.analysis.kernels import Kernel, analysis_of
from jaxprof.hlo.model import Computation, Instruction, Module

_DEEPEST = 64


ArrayKey: TypeAlias = Hashable
"""An instruction, with the indices of a member if it gives a tuple."""


@frozen
class ArrayValue:
    """An array that an instruction makes: its value, or one member of the tuple that it gives."""

    instruction: Instruction
    member: tuple[int, ...]
    """Indices into a tuple, outermost first; empty for an array."""
    crossed: bool = False
    """Whether a border of control flow lies between the array and its reader."""


@frozen
class Passage:
    """An array that one kernel writes and another reads."""

    producer: Kernel
    consumer: Kernel
    value: ArrayValue
    operand: str
    """Name of the consumer's operand through which the array comes."""
    number: int
    """Index of the first operand of the consumer with this name."""
    bytes_read: int
    """Bytes that one execution of the consumer reads of the array."""


def flow_of(module: Module) -> Flow:
    """Return which kernel of `module` reads which array of which other kernel."""
    return module.once(Flow)


class Flow:
    """Passages of one module."""

    def __init__(self, module: Module) -> None:
        table = self._table = analysis_of(module)
        self._kernels: dict[Computation, list[Kernel | None]] = {}
        """Kernels of each computation by the position of their instruction: a tenth of the memory of a dictionary."""
        for kernel in table.kernels:
            holder = kernel.instruction.computation
            if holder not in self._kernels:
                self._kernels[holder] = [None] * len(holder.instructions)
            self._kernels[holder][kernel.instruction.position] = kernel
        self._callers = {
            edge.callee: edge.caller for edges in reversed(table.execution.edges.values()) for edge in edges
        }
        self._readers: dict[Computation, array[int]] | None = None
        self._readers_of_members: dict[ArrayKey, int] = {}
        self.outputs: set[ArrayKey] = self._outputs()
        """Arrays that the program returns."""

    def kernel(self, instruction: Instruction) -> Kernel | None:
        """Return the kernel that an instruction is, or None."""
        held = self._kernels.get(instruction.computation)
        return held[instruction.position] if held is not None else None

    @cached_property
    def passages(self) -> Passages:
        """Every array that one kernel writes and another reads, grouped by reader."""
        return Passages(self)

    def readers(self, value: ArrayValue) -> int:
        """Return how many kernels read an array that a kernel makes."""
        if self._readers is None:
            self._readers = {holder: array("L", bytes(array("L").itemsize * len(held)))
                             for holder, held in self._kernels.items()}  # fmt: skip
            consumer: Kernel | None = None
            read: set[ArrayKey] = set()
            for passage in self.passages:
                if passage.consumer is not consumer:
                    consumer, read = passage.consumer, set()
                key = array_key(passage.value)
                if key in read:
                    continue
                read.add(key)
                if passage.value.member:
                    self._readers_of_members[key] = self._readers_of_members.get(key, 0) + 1
                else:
                    made = passage.value.instruction
                    self._readers[made.computation][made.position] += 1
        if value.member:
            return self._readers_of_members.get(array_key(value), 0)
        counts = self._readers.get(value.instruction.computation)
        return counts[value.instruction.position] if counts is not None else 0

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """Kernels of the module, in execution order."""
        return self._table.kernels

    def passages_to(self, consumer: Kernel) -> Iterator[Passage]:
        """Yield the arrays that a kernel reads."""
        for name, size in consumer.operand_bytes:
            operand = consumer.instruction.computation.get(name)
            value = self.origin(operand, ()) if operand is not None else None
            producer = self.kernel(value.instruction) if value is not None else None
            if value is not None and producer is not None:
                number = consumer.instruction.operands.index(name)
                yield Passage(producer, consumer, value, name, number, size)

    def origin(self, instruction: Instruction | None, member: tuple[int, ...]) -> ArrayValue | None:
        """Return the kernel's value, program input or constant that `instruction` stands for; None if it cannot be
        followed."""
        crossed = False
        for _ in range(_DEEPEST):
            if instruction is None:
                return None
            opcode = instruction.opcode
            if former := renamed(instruction, member):
                instruction, member = former
            elif _only_marks(instruction, opcode):
                instruction = instruction.operand(0)
            elif opcode == "parameter":
                caller = self._callers.get(instruction.computation.name)
                if caller is None:
                    return ArrayValue(instruction, member, crossed)
                crossed = True
                instruction = _argument(caller, instruction)
            elif opcode in ("while", "call"):
                crossed = True
                instruction = instruction.called_root
            else:
                return ArrayValue(instruction, member, crossed)
        return None

    def _outputs(self) -> set[ArrayKey]:
        entry = self._table.module.entry
        root = entry.root if entry is not None else None
        if root is None:
            return set()
        results = root.operand_instructions() if root.opcode == "tuple" else (root,)
        values = [self.origin(result, ()) for result in results]
        return {array_key(value) for value in values if value is not None}


class Passages:
    """Passages of a module, kept as numbers: a tenth of the memory of values, and a third of the time of following the
    arrays again."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._consumers, self._operands, self._numbers, self._producers = (array("i") for _ in range(4))
        self._bytes = array("q")
        self._values: dict[int, ArrayValue] = {}
        """Passages that are not a plain result in the consumer's own computation."""
        for at, consumer in enumerate(flow.kernels):
            computation = consumer.instruction.computation
            for passage in flow.passages_to(consumer):
                value = passage.value
                if value.member or value.crossed or value.instruction.computation is not computation:
                    self._values[len(self._consumers)] = value
                self._consumers.append(at)
                self._operands.append(computation[passage.operand].position)
                self._numbers.append(passage.number)
                self._producers.append(value.instruction.position)
                self._bytes.append(passage.bytes_read)

    def __iter__(self) -> Iterator[Passage]:
        kernels, flow = self._flow.kernels, self._flow
        numbers = zip(self._consumers, self._operands, self._numbers, self._producers, self._bytes, strict=True)
        for at, (consumed, operand, number, produced, size) in enumerate(numbers):
            consumer = kernels[consumed]
            instructions = consumer.instruction.computation.instructions
            value = self._values.get(at) or ArrayValue(instructions[produced], ())
            producer = flow.kernel(value.instruction)
            if producer is not None:
                yield Passage(producer, consumer, value, instructions[operand].name, number, size)


def _only_marks(instruction: Instruction, opcode: str) -> bool:
    """Return whether the instruction is a custom call that runs nothing and passes its one operand on."""
    return (
        opcode == "custom-call"
        and len(instruction.operands) == 1
        and instruction.string("custom_call_target") in ANNOTATIONS
    )


def array_key(value: ArrayValue) -> ArrayKey:
    """Return an array's identity within its module."""
    return (value.instruction, value.member) if value.member else value.instruction


def _argument(caller: Instruction, parameter: Instruction) -> Instruction | None:
    """Return what the caller passes to a parameter: the branch's own operand for a conditional, the initial state for a
    loop."""
    if caller.opcode == "conditional":
        names = caller.called
        try:
            branch = names.index(parameter.computation.name)
        except ValueError:
            return None
        return caller.operand(1 + branch)
    return caller.operand(parameter.parameter_number or 0)
