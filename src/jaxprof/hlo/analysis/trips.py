"""How often a while loop runs its body.

XLA writes `known_trip_count` into `backend_config` where it could tell. Older modules, and those before optimisation,
do not have it; then the usual form of a counted loop is looked for: the condition compares one element of the loop's
state with a constant, the body adds a constant to that element, and it begins at a constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from jaxprof.hlo.model import Computation, Instruction

_DEEPEST: Final = 32
_THROUGH: Final = frozenset({"copy", "bitcast", "reshape", "convert"})


def trip_count(loop: Instruction) -> int | None:
    """The number of times that the body of a `while` runs, or None where the text does not tell."""
    known = loop.backend_config.get("known_trip_count")
    if isinstance(known, dict):
        number = str(known.get("n", ""))
        if number.isdecimal() and len(number) < 19:
            return int(number)
    return _from_condition(loop)


@dataclass(frozen=True, slots=True)
class _Value:
    """What a scalar is, as far as it can be followed: a constant, or an element of the computation's parameter."""

    constant: int | None = None
    element: int | None = None
    plus: int = 0


_NO_VALUE: Final = _Value()


def _from_condition(loop: Instruction) -> int | None:
    called = loop.called_computations()
    if len(called) < 2:
        return None
    body, condition = called[0], called[1]
    compare, arguments = _reach(condition.root, {})
    if compare is None or compare.opcode != "compare":
        return None
    left, right = (_value(compare.operand(number), arguments, 0) for number in (0, 1))
    direction = compare.string("direction")
    if left.element is None:
        left, right = right, left
        direction = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}.get(direction, direction)
    if left.element is None or left.plus or right.constant is None:
        return None
    start, step = _start(loop, left.element), _step(body, left.element)
    if start is None or not step:
        return None
    return _count(start, step, right.constant, direction)


def _count(start: int, step: int, limit: int, direction: str) -> int | None:
    if direction in ("LE", "GE"):
        limit += 1 if direction == "LE" else -1
        direction = {"LE": "LT", "GE": "GT"}[direction]
    if direction == "NE":
        return (limit - start) // step if (limit - start) % step == 0 and (limit - start) // step >= 0 else None
    if (direction == "LT" and step > 0) or (direction == "GT" and step < 0):
        distance = (limit - start) if step > 0 else (start - limit)
        return max(0, -(-distance // abs(step)))
    return None


def _reach(
    instruction: Instruction | None, arguments: dict[str, _Value]
) -> tuple[Instruction | None, dict[str, _Value]]:
    """The instruction that makes a value, looking into fusions and calls, and what their parameters stand for."""
    for _ in range(_DEEPEST):
        if instruction is None:
            break
        if instruction.opcode in _THROUGH:
            instruction = instruction.operand(0)
        elif instruction.opcode in ("fusion", "call") and instruction.called_computations():
            inner = instruction.called_computations()[0]
            given = [_value(operand, arguments, 0) for operand in instruction.operand_instructions()]
            arguments = {parameter.name: value for parameter, value in zip(inner.parameters, given, strict=False)}
            instruction = inner.root
        else:
            break
    return instruction, arguments


def _value(instruction: Instruction | None, arguments: dict[str, _Value], depth: int) -> _Value:
    if instruction is None or depth > _DEEPEST or instruction.shape.elements > 1:
        return _NO_VALUE
    opcode = instruction.opcode
    if opcode == "parameter":
        return arguments.get(instruction.name, _NO_VALUE)
    if opcode == "constant":
        return _Value(constant=_integer(instruction.literal))
    if opcode == "get-tuple-element":
        source = instruction.operand(0)
        index = instruction.integers("index")
        is_state = source is not None and source.opcode == "parameter" and bool(index)
        return _Value(element=index[0]) if is_state else _NO_VALUE
    if opcode in _THROUGH:
        return _value(instruction.operand(0), arguments, depth + 1)
    if opcode == "add":
        parts = [_value(instruction.operand(number), arguments, depth + 1) for number in (0, 1)]
        if parts[0].element is None:
            parts.reverse()
        state, added = parts
        if state.element is not None and added.constant is not None:
            return _Value(element=state.element, plus=state.plus + added.constant)
        return _NO_VALUE
    if opcode in ("fusion", "call"):
        inner, given = _reach(instruction, arguments)
        return _NO_VALUE if inner is None or inner is instruction else _value(inner, given, depth + 1)
    return _NO_VALUE


def _start(loop: Instruction, element: int) -> int | None:
    state = loop.operand(0)
    initial = state.operand(element) if state is not None and state.opcode == "tuple" else None
    return _value(initial, {}, 0).constant


def _step(body: Computation, element: int) -> int | None:
    root = body.root
    if root is None or root.opcode != "tuple":
        return None
    value = _value(root.operand(element), {}, 0)
    return value.plus if value.element == element else None


def _integer(literal: str) -> int | None:
    written = literal.strip().strip("{} ")
    digits = written.removeprefix("-")
    return int(written) if digits.isdecimal() and len(digits) < 19 else None
