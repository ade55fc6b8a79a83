"""The inside of a kernel as an indented tree from its result to its parameters.

A value that is used in several places is shown at its first occurrence, and referred to afterwards. Constants, and
broadcasts of a constant, take no line of their own but appear in the line that uses them. A parameter shows which value
of the calling computation it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jaxprof.hlo.analysis.origin import HloSourceLocation, place_of

if TYPE_CHECKING:
    from jaxprof.hlo.model import Instruction
    from jaxprof.hlo.shape import Shape

_MOST_ROWS: Final = 20_000
_LONGEST_LITERAL: Final = 32
_ANY_ORDER: Final = frozenset({"add", "multiply", "maximum", "minimum", "and", "or", "xor", "reduce", "concatenate"})


@dataclass(frozen=True, slots=True)
class TreeRow:
    """One line of the tree."""

    depth: int
    """Depth of the line; 0 for the result."""
    name: str
    opcode: str
    shape: Shape
    constants: tuple[str, ...]
    """Constant operands, as written; if their position matters (`1 - x`), the other operands are there as `_`."""
    operand: str
    """For a parameter, the name of the value that the caller passes; else empty."""
    seen: bool
    """Whether the value was shown before, with everything below it, so that this line only refers to it."""
    shared: bool
    """Whether more than one instruction uses the value."""
    op_name: str
    source: HloSourceLocation | None
    computation: str
    """Name of the innermost computation that holds the instruction."""
    detail: str = ""
    """Detail beyond the opcode: `LT` of a comparison, `add {1}` of a reduction, a custom call's target."""


def tree(kernel: Instruction) -> tuple[TreeRow, ...]:
    """Return the rows of a kernel's tree; for an instruction that is not a fusion, itself and the names of its
    operands."""
    called = kernel.called_computations() if kernel.opcode == "fusion" else ()
    root = called[0].root if called else None
    if root is not None:
        return tuple(_of_fusion(root, kernel.operands))
    operands = (
        _row(operand, 1, (), operand.name, seen=False, opcode="parameter") for operand in kernel.operand_instructions()
    )
    return (_row(kernel, 0, (), "", seen=False), *operands)


def _of_fusion(root: Instruction, operands: tuple[str, ...]) -> list[TreeRow]:
    """Return the rows of a fused computation. The walk has a stack of its own, because a fusion may be a chain of
    thousands of instructions."""
    rows: list[TreeRow] = []
    shown: set[tuple[str, str]] = set()
    stack: list[tuple[Instruction, int, _Scope]] = [(root, 0, _Scope(operands))]
    while stack and len(rows) < _MOST_ROWS:
        instruction, depth, scope = stack.pop()
        instruction, scope = scope.resolve(instruction)
        if instruction.opcode == "parameter":
            rows.append(_row(instruction, depth, (), scope.operand(instruction), seen=False))
            continue
        inner, constants = _split(instruction)
        key = (instruction.computation.name, instruction.name)
        seen = key in shown and bool(inner)
        rows.append(_row(instruction, depth, constants, "", seen=seen))
        if seen:
            continue
        shown.add(key)
        nested = instruction.called_root if instruction.opcode == "fusion" else None
        if nested is not None:
            stack.append((nested, depth + 1, _Scope(instruction.operands, instruction, scope)))
        else:
            stack.extend((operand, depth + 1, scope) for operand in reversed(inner))
    return rows


@dataclass(frozen=True, slots=True)
class _Scope:
    """What the parameters of a fused computation stand for."""

    operands: tuple[str, ...]
    fusion: Instruction | None = None
    """The inner fusion that the computation belongs to; None for the outermost."""
    outer: _Scope | None = None

    def operand(self, parameter: Instruction) -> str:
        number = parameter.parameter_number
        return self.operands[number] if number is not None and number < len(self.operands) else ""

    def resolve(self, instruction: Instruction) -> tuple[Instruction, _Scope]:
        """Return the value that the outer computation passes to a parameter of a nested fusion; any other value
        unchanged."""
        scope = self
        while instruction.opcode == "parameter" and scope.fusion is not None and scope.outer is not None:
            given = scope.fusion.computation.get(scope.operand(instruction))
            if given is None:
                break
            instruction, scope = given, scope.outer
        return instruction, scope


def _split(instruction: Instruction) -> tuple[list[Instruction], tuple[str, ...]]:
    """Return the operands that get a line, and those that are constants, as written."""
    operands = instruction.operand_instructions()
    if instruction.opcode == "fusion":
        return list(operands), ()
    literals = [_constant(operand) for operand in operands]
    inner = [operand for operand, literal in zip(operands, literals, strict=True) if literal is None]
    if instruction.opcode in _ANY_ORDER or not inner:
        return inner, tuple(literal for literal in literals if literal is not None)
    if len(inner) == len(operands):
        return inner, ()
    return inner, tuple("_" if literal is None else literal for literal in literals)


def _detail(instruction: Instruction) -> str:
    opcode = instruction.opcode
    if opcode == "compare":
        return instruction.string("direction")
    if opcode == "custom-call":
        return instruction.string("custom_call_target")
    if opcode == "transpose":
        return instruction.attributes.get("dimensions", "")
    if opcode == "reduce":
        root = instruction.called_root
        combiner = root.opcode if root is not None else ""
        return f"{combiner} {instruction.attributes.get('dimensions', '')}".strip()
    return ""


def _constant(instruction: Instruction) -> str | None:
    """Return the literal that a value is, or is broadcast from; None if the value is computed."""
    for _ in range(4):
        if instruction.opcode not in ("broadcast", "bitcast", "reshape", "convert", "copy"):
            break
        operand = instruction.operand(0)
        if operand is None:
            return None
        instruction = operand
    if instruction.opcode != "constant":
        return None
    literal = " ".join(instruction.literal.split())
    return literal if len(literal) <= _LONGEST_LITERAL else f"{literal[:_LONGEST_LITERAL]}…"


def _row(
    instruction: Instruction, depth: int, constants: tuple[str, ...], operand: str, *, seen: bool, opcode: str = ""
) -> TreeRow:
    stack = instruction.stack
    return TreeRow(
        depth=depth,
        name=instruction.name,
        opcode=opcode or instruction.opcode,
        shape=instruction.shape,
        constants=constants,
        operand=operand,
        seen=seen,
        shared=opcode == "" and instruction.opcode != "parameter" and len(instruction.users) > 1,
        op_name=instruction.metadata.op_name,
        source=place_of(stack),
        computation=instruction.computation.name,
        detail="" if opcode else _detail(instruction),
    )
