"""Derive which kernel reads which other kernel's result: the arrays that go through memory between two kernels.

Values are followed through everything that launches nothing (bitcasts, tuples and their elements, the second halves of
asynchronous pairs) and, across a border that no fusion crosses, into and out of loops, branches and calls.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import TypeAlias

from jaxprof.base.values import frozen
from jaxprof.hlo.kernels.cost.library import runs_nothing
from jaxprof.hlo.kernels.dataflow import other_name
from jaxprof.hlo.kernels.execution import Execution
from jaxprof.hlo.kernels.kernels import Kernel, kernels
from jaxprof.hlo.shape import Shape
from jaxprof.hlo.text.model import Computation, Instruction, Module

_DEEPEST = 64  # names of one value, or a damaged text would be followed in a circle

Member: TypeAlias = tuple[int, ...]
"""Indices into the tuple that a kernel gives, outermost first; empty for an array."""
Array: TypeAlias = "Kernel | tuple[Kernel, Member]"
"""The kernel that makes an array, with the indices of a member if it gives a tuple."""


@frozen
class Passage:
    """An array that one kernel writes and another reads."""

    producer: Kernel
    consumer: Kernel
    member: Member
    crossed: bool
    """Whether a border of control flow lies between the two."""
    number: int
    """Index of the consumer's operand through which the array comes, the first of those with one name."""
    bytes_read: int
    """Bytes that one execution of the consumer reads of the array."""

    @property
    def array(self) -> Array:
        """The array's identity within its module."""
        return _array(self.producer, self.member)

    @property
    def shape(self) -> Shape:
        return self.producer.instruction.shape.member(self.member)


class Flow:
    """All passages of a module, grouped by consumer, in the order of execution: `module.once(Flow)`.

    They are kept as numbers: a tenth of the memory of values, and a third of the time of following the arrays again.
    """

    def __init__(self, module: Module) -> None:
        self._kernels = kernels(module)
        self._numbers: dict[Computation, array[int]] = {}
        """Number of the kernel at each position of a computation, -1 if there is none: less memory than a dictionary.
        """
        for number, kernel in enumerate(self._kernels):
            holder = kernel.instruction.computation
            if holder not in self._numbers:
                self._numbers[holder] = array("i", [-1]) * len(holder.instructions)
            self._numbers[holder][kernel.instruction.position] = number
        calls = reversed(module.once(Execution).edges.values())
        self._callers = {edge.callee: edge.caller for edges in calls for edge in edges}
        self._consumers, self._producers, self._operands = (array("i") for _ in range(3))
        self._bytes = array("q")
        self._ways: dict[int, tuple[Member, bool]] = {}
        """`Passage.member` and `Passage.crossed` by the passage's number, for the few that have either."""
        for number, kernel in enumerate(self._kernels):
            for name, size in kernel.operand_bytes:
                made = self._maker(kernel.instruction.computation[name])
                if made is not None:
                    producer, *way = made
                    if any(way):
                        self._ways[len(self._consumers)] = made[1:]
                    self._consumers.append(number)
                    self._producers.append(producer)
                    self._operands.append(kernel.instruction.operands.index(name))
                    self._bytes.append(size)
        root = module.entry.root if module.entry is not None else None
        results: tuple[Instruction, ...] = (root,) if root is not None else ()
        if root is not None and root.opcode == "tuple":
            results = root.operand_instructions()
        makers = filter(None, map(self._maker, results))
        self.outputs = {_array(self._kernels[number], member) for number, member, _ in makers}
        """Arrays that the program returns."""

    def __iter__(self) -> Iterator[Passage]:
        kernels, ways = self._kernels, self._ways
        columns = zip(self._consumers, self._producers, self._operands, self._bytes, strict=True)
        for at, (consumer, producer, operand, size) in enumerate(columns):
            member, crossed = ways.get(at, ((), False))
            yield Passage(kernels[producer], kernels[consumer], member, crossed, operand, size)

    @cached_property
    def readers(self) -> Counter[Array]:
        """How many kernels read each array."""
        by_consumer = groupby(self, attrgetter("consumer"))
        return Counter(read for _, near in by_consumer for read in {passage.array for passage in near})

    def _maker(self, instruction: Instruction | None) -> tuple[int, Member, bool] | None:
        """Return the number of the kernel that makes what `instruction` stands for, the member of its result, and
        whether a border of control flow lies between; None if no kernel makes it, or it cannot be followed."""
        member: Member = ()
        crossed = False
        for _ in range(_DEEPEST):
            if instruction is None:
                return None
            opcode = instruction.opcode
            if former := other_name(instruction, member):
                instruction, member = former
            elif opcode == "custom-call" and len(instruction.operands) == 1 and runs_nothing(instruction):
                instruction = instruction.operand(0)
            elif opcode == "parameter" and instruction.computation.name in self._callers:
                crossed = True
                name, number = instruction.computation.name, instruction.parameter_number or 0
                caller = self._callers[name]
                if caller.opcode == "conditional":
                    if name not in caller.called:
                        return None
                    number = 1 + caller.called.index(name)  # each branch has its own operand, after the selector
                instruction = caller.operand(number)
            elif opcode in ("while", "call"):
                crossed = True
                instruction = instruction.called_root
            else:
                numbers = self._numbers.get(instruction.computation)
                number = numbers[instruction.position] if numbers is not None else -1
                return (number, member, crossed) if number >= 0 else None
        return None


def _array(maker: Kernel, member: Member) -> Array:
    return (maker, member) if member else maker
