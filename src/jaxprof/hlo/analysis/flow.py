"""Which kernel's result which other kernel reads: the arrays that go through memory between two kernels.

Values are followed through what launches nothing (bitcasts, tuples and their elements, the second halves of
asynchronous pairs) and, across a border that no fusion crosses, into and out of loops, branches and calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.library import ANNOTATIONS
from jaxprof.hlo.analysis.opcodes import FINISHING

if TYPE_CHECKING:
    from jaxprof.hlo.analysis.kernels import Kernel, KernelTable
    from jaxprof.hlo.model import Instruction

_THROUGH: Final = FINISHING | {"bitcast", "opt-barrier", "optimization-barrier", "add-dependency", "domain"}
_DEEPEST: Final = 64


@dataclass(frozen=True, slots=True)
class Value:
    """An array that an instruction makes: itself, or one member of the tuple that it gives."""

    instruction: Instruction
    member: tuple[int, ...]
    """Indices into a tuple, outermost first; empty for an array."""
    crossed: bool = False
    """On the way from its reader to it a border of control flow was passed."""


@dataclass(frozen=True, slots=True)
class Passage:
    """An array that one kernel writes and another reads."""

    producer: Kernel
    consumer: Kernel
    value: Value
    operand: str
    """The name of the consumer's operand through which it comes."""
    bytes_read: int
    """What one execution of the consumer reads of it."""


class Flow:
    """The passages of one module."""

    def __init__(self, table: KernelTable) -> None:
        self._table = table
        self._kernels = {
            (launch.instruction.computation.name, launch.instruction.name): kernel
            for launch, kernel in zip(table.launches, table.kernels, strict=True)
        }
        self._callers = {
            edge.callee: edge.caller for edges in reversed(table.execution.edges.values()) for edge in edges
        }
        self.passages = tuple(self._passages())
        self.readers: dict[tuple[str, str, tuple[int, ...]], set[tuple[str, str]]] = {}
        """For each array (computation, kernel, member) the kernels that read it."""
        for passage in self.passages:
            key = array_key(passage.value)
            self.readers.setdefault(key, set()).add((passage.consumer.computation, passage.consumer.name))
        self.outputs: set[tuple[str, str, tuple[int, ...]]] = self._outputs()
        """The arrays that the program returns."""

    def kernel(self, instruction: Instruction) -> Kernel | None:
        """The kernel that an instruction is, or None."""
        return self._kernels.get((instruction.computation.name, instruction.name))

    def _passages(self) -> list[Passage]:
        found: list[Passage] = []
        for launch, consumer in zip(self._table.launches, self._table.kernels, strict=True):
            for name, size in consumer.operand_bytes:
                operand = launch.instruction.computation.get(name)
                value = self.origin(operand, ()) if operand is not None else None
                producer = self.kernel(value.instruction) if value is not None else None
                if value is not None and producer is not None:
                    found.append(Passage(producer, consumer, value, name, size))
        return found

    def origin(self, instruction: Instruction | None, member: tuple[int, ...]) -> Value | None:
        """The kernel's value, program input or constant that `instruction` stands for; None where it is lost."""
        crossed = False
        for _ in range(_DEEPEST):
            if instruction is None:
                return None
            opcode = instruction.opcode
            if opcode == "get-tuple-element":
                member = (*instruction.integers("index")[:1], *member)
                instruction = instruction.operand(0)
            elif opcode == "tuple" and member:
                instruction, member = instruction.operand(member[0]), member[1:]
            elif opcode in _THROUGH or _only_marks(instruction, opcode):
                instruction = instruction.operand(0)
            elif opcode == "parameter":
                caller = self._callers.get(instruction.computation.name)
                if caller is None:
                    return Value(instruction, member, crossed)
                crossed = True
                instruction = _argument(caller, instruction)
            elif opcode in ("while", "call"):
                crossed = True
                called = instruction.called_computations()
                instruction = called[0].root if called else None
            else:
                return Value(instruction, member, crossed)
        return None

    def _outputs(self) -> set[tuple[str, str, tuple[int, ...]]]:
        entry = self._table.module.entry
        root = entry.root if entry is not None else None
        if root is None:
            return set()
        results = root.operand_instructions() if root.opcode == "tuple" else (root,)
        values = [self.origin(result, ()) for result in results]
        return {array_key(value) for value in values if value is not None}


def _only_marks(instruction: Instruction, opcode: str) -> bool:
    """A custom call that runs nothing and gives its one operand on."""
    return (
        opcode == "custom-call"
        and len(instruction.operands) == 1
        and instruction.string("custom_call_target") in ANNOTATIONS
    )


def array_key(value: Value) -> tuple[str, str, tuple[int, ...]]:
    """An array's identity within its module."""
    return value.instruction.computation.name, value.instruction.name, value.member


def _argument(caller: Instruction, parameter: Instruction) -> Instruction | None:
    """What the caller hands to a parameter: of a conditional the branch's own operand, of a loop its first state."""
    if caller.opcode == "conditional":
        names = caller.called
        try:
            branch = names.index(parameter.computation.name)
        except ValueError:
            return None
        return caller.operand(1 + branch)
    return caller.operand(parameter.parameter_number or 0)
