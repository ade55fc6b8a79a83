"""Derive which instructions of a module launch work, in which order, and how often.

The walk begins at the entry and follows loops, branches and calls. A loop's body runs as often as its trip count says,
if XLA knows it. Its condition runs once more, and never on a GPU if XLA states the trip count, because the runtime then
counts. Only one branch of a conditional runs, so the kernels of branches are marked and totals take the most expensive
branch. If a computation is called from several places, its launches are listed once and their counts added.

XLA writes a loop's `known_trip_count` into `backend_config` if it knows it. Older modules, and modules before
optimisation, lack it; then the usual form of a counted loop is recognised: the condition compares one element of the
loop's state with a constant, the body adds a constant to that element, and it begins at a constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

from jaxprof.grouping import grouped
from jaxprof.hlo.analysis.cost.library import ANNOTATIONS
from jaxprof.hlo.analysis.kinds import platform_of
from jaxprof.hlo.analysis.opcodes import CONTROL, FINISHING, FREE
from jaxprof.text import whole_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from jaxprof.hlo.model import Computation, Instruction, Module

_MOST_RUNS: Final = (1 << 63) - 1
"""Most executions; nobody waits for more, so loops nested that deep have wrong trip counts."""


@dataclass(frozen=True, slots=True)
class CallEdge:
    """A call of a computation by a loop, branch or call."""

    caller: Instruction
    callee: str
    """Name of the computation; empty if the text does not give it."""
    times: int | None
    """Runs of the callee for each run of the caller; None if unknown before it runs."""
    branch: bool = False
    """Whether the callee is one of several alternatives."""
    counted: bool = False
    """Whether the callee is the condition of a loop whose trip count XLA states."""


Step: TypeAlias = "Instruction | CallEdge"


class Execution:
    """The launches of a module, and the computations that hold them.

    Loops, branches and calls are found by a search for their opcodes, so execution counts are known before instructions
    are read one by one.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.edges: dict[str, tuple[CallEdge, ...]] = {}
        """Calls of each reachable computation, in order."""
        self.post_order: list[str] = []
        """The reachable computations, each after all that it runs."""
        for computation, edge in self._descend(self._find_edges):
            if edge is None:
                self.post_order.append(computation.name)
        self._counts = self._multiply(module.entry.name if module.entry else "")

    def launches(self) -> Iterator[tuple[Instruction, int | None, bool]]:
        """Yield every instruction that launches work, in order of first execution; its executions in one run of the
        module, None if a loop's trip count is unknown; and whether it lies in a branch that may not be taken, which
        makes the count an upper bound. Reads only as far as the caller iterates."""
        for computation, step in self._descend(self._steps):
            if step is not None and not isinstance(step, CallEdge):
                yield step, *self._counts[computation.name]

    def _descend(self, steps: Callable[[Computation], Iterable[Step]]) -> Iterator[tuple[Computation, Step | None]]:
        """Yield the steps of the entry and of each computation where it is first called, with the computation, and None
        after its last step."""
        entry = self.module.entry
        # Without recursion, because a file may nest deeper than Python's stack.
        stack = [] if entry is None else [(entry, iter(steps(entry)))]
        entered = {computation.name for computation, _ in stack}
        while stack:
            computation, left = stack[-1]
            for step in left:
                yield computation, step
                callee = self.module.get(step.callee) if isinstance(step, CallEdge) else None
                if callee is not None and callee.name not in entered:
                    entered.add(callee.name)
                    stack.append((callee, iter(steps(callee))))
                    break
            else:
                yield computation, None
                stack.pop()

    def _find_edges(self, computation: Computation) -> tuple[CallEdge, ...]:
        by_position: dict[int, Instruction] = {}
        text, (_, start, end) = computation.source.text, computation.span
        for word in _RUNNING:
            at = text.find(word, start, end)
            while at >= 0:
                instruction = computation.at(at)
                if instruction is not None:
                    by_position[instruction.position] = instruction
                at = text.find(word, at + 1, end)
        edges = tuple(edge for position in sorted(by_position) for edge in _calls_of(by_position[position]))
        self.edges[computation.name] = edges
        return edges

    def _steps(self, computation: Computation) -> Iterator[Step]:
        running = grouped((edge.caller.name, edge) for edge in self.edges[computation.name])
        for instruction in computation.instructions:
            opcode = instruction.opcode
            if opcode in _NO_LAUNCH:
                continue
            if running and instruction.name in running:
                yield from (edge for edge in running[instruction.name] if not self._never_runs(edge))
            elif opcode in CONTROL:
                continue
            elif opcode != "custom-call" or instruction.string("custom_call_target") not in ANNOTATIONS:
                yield instruction

    def _never_runs(self, edge: CallEdge) -> bool:
        return edge.counted and self._platform == "gpu"

    @cached_property
    def _platform(self) -> str:
        return platform_of(self.module)

    def _multiply(self, entry: str) -> dict[str, tuple[int | None, bool]]:
        """Return how often each computation runs; callers come before their callees."""
        counts: dict[str, tuple[int | None, bool]] = {entry: (1, False)}
        place = {name: number for number, name in enumerate(self.post_order)}
        for name in reversed(self.post_order):
            runs, conditional = counts.get(name, (0, False))
            for edge in self.edges[name]:
                if place.get(edge.callee, len(place)) >= place[name]:
                    continue  # a cycle, which only a malformed module has
                more = None if runs is None or edge.times is None else runs * edge.times
                before, was = counts.get(edge.callee, (0, True))
                total = None if before is None or more is None else before + more
                if total is not None and total > _MOST_RUNS:
                    total = None
                counts[edge.callee] = (total, was and (conditional or edge.branch))
        return counts


_NO_LAUNCH: Final = FREE | FINISHING | {""}
_RUNNING: Final = ("while(", "conditional(", " call(", "\tcall(", "\ncall(", "-start(")
"""Text that occurs in every instruction that runs computations, and in few others; each match is then parsed."""


def _calls_of(instruction: Instruction) -> list[CallEdge]:
    """Return the computations that an instruction runs."""
    if instruction.opcode == "async-start":
        inner = _async_computation(instruction)
        return [CallEdge(instruction, inner, 1)] if inner else []
    if instruction.opcode not in CONTROL:
        return []
    called = instruction.called
    if instruction.opcode == "while":
        trips = trip_count(instruction)
        once_more = None if trips is None else trips + 1
        if len(called) > 1:  # the condition runs first
            stated = "known_trip_count" in instruction.backend_config
            condition = CallEdge(instruction, called[1], once_more, counted=stated)
            return [condition, CallEdge(instruction, called[0], trips)]
        called = ()
    branch = instruction.opcode == "conditional"
    return [CallEdge(instruction, name, 1, branch) for name in called] or [CallEdge(instruction, "", None)]


def _async_computation(start: Instruction) -> str:
    """Return the computation that an asynchronous start runs, if it holds more than the one operation that it wraps."""
    called = start.called_computations()
    if not called:
        return ""
    working = [i for i in called[0].instructions if i.opcode not in FREE]
    return called[0].name if len(working) != 1 or working[0].opcode in CONTROL else ""


_DEEPEST: Final = 32
_THROUGH: Final = frozenset({"copy", "bitcast", "reshape", "convert"})


def trip_count(loop: Instruction) -> int | None:
    """Return how often the body of a `while` runs; None if the text does not show it."""
    stated = loop.backend_config.get("known_trip_count")
    if isinstance(stated, dict):
        number = whole_number(str(stated.get("n", "")))
        if number is not None:
            return number
    return _from_condition(loop)


@dataclass(frozen=True, slots=True)
class _Value:
    """A scalar as far as it can be followed: a constant, or an element of the computation's parameter."""

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
    """Return the instruction that makes a value, looking into fusions and calls, and the values of their parameters."""
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
