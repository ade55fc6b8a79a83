"""Derive which instructions of a module launch work, in which order, and how often.

The walk begins at the entry and follows loops, branches and calls. XLA:CPU makes one kernel of a small computation with
its loops, and marks the call of it: that call is a kernel. A loop's body runs as often as its trip count says,
if XLA knows it. Its condition runs once more, and never on a GPU if XLA states the trip count, because the runtime then
counts. Only one branch of a conditional runs, so the kernels of branches are marked and totals take the most expensive
branch. If a computation is called from several places, its launches are listed once and their counts added.

XLA writes a loop's `known_trip_count` into `backend_config` if it knows it. Older modules, and modules before
optimisation, lack it; then the usual form of a counted loop is recognised: the condition compares one element of the
loop's state with a constant, the body adds a constant to that element, and it begins at a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from jaxprof.base.grouping import grouped
from jaxprof.base.text import whole_number
from jaxprof.base.values import frozen
from jaxprof.hlo.kernels import CONTROL, FINISHING, FREE
from jaxprof.hlo.kernels.cost.library import runs_nothing
from jaxprof.hlo.kernels.dataflow import Value, origin_through, resolve, sources
from jaxprof.hlo.kernels.kinds import platform_of
from jaxprof.hlo.text.model import Computation, Instruction, Module, once_per_module

_MOST_RUNS = (1 << 63) - 1
"""Most executions: no program runs for so long, so loops nested that deep have wrong trip counts."""


@frozen
class CallEdge:
    """A call of a computation by a loop, branch or call."""

    caller: Instruction
    callee: str
    """Name of the computation; empty if the text does not give it."""
    times: int | None
    """Executions of the callee for each of the caller; None if unknown before it runs."""
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
        # callers come before their callees
        entry = module.entry.name if module.entry else ""
        counts: dict[str, tuple[int | None, bool]] = {entry: (1, False)}
        position = {name: number for number, name in enumerate(self.post_order)}
        for name in reversed(self.post_order):
            runs, conditional = counts.get(name, (0, False))
            for call in self.edges[name]:
                if position.get(call.callee, len(position)) >= position[name]:
                    continue  # a cycle, which only a malformed module has
                more = None if runs is None or call.times is None else runs * call.times
                before, was = counts.get(call.callee, (0, True))
                total = None if before is None or more is None else before + more
                if total is not None and total > _MOST_RUNS:
                    total = None
                counts[call.callee] = (total, was and (conditional or call.branch))
        self._counts = counts

    def runs(self, computation: Computation) -> tuple[int | None, bool]:
        """Return how often a computation runs in one call of the module, None if a loop's trip count is unknown; and
        whether only in a branch, so that this is an upper bound."""
        return self._counts.get(computation.name, (0, False))

    def launches(self) -> Iterator[tuple[Instruction, int | None, bool]]:
        """Yield every instruction that launches work, in order of first execution; its executions in one call of the
        module, None if a loop's trip count is unknown; and whether it lies in a branch that may not be taken, which
        makes the count an upper bound. Reads only as far as the caller iterates."""
        entered: Computation | None = None
        for computation, step in self._descend(self._steps):
            if computation is not entered:
                entered, runs = computation, self.runs(computation)
            if step is not None and not isinstance(step, CallEdge):
                yield step, *runs

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
        edges = tuple(edge for position in sorted(by_position) for edge in calls_of(by_position[position]))
        self.edges[computation.name] = edges
        return edges

    def _steps(self, computation: Computation) -> Iterator[Step]:
        running = grouped((edge.caller.name, edge) for edge in self.edges[computation.name])
        counts_itself = platform_of(self.module) == "gpu"
        for instruction in computation.instructions:
            opcode = instruction.opcode
            if opcode in _NO_LAUNCH:
                continue
            if running and instruction.name in running and not is_one_kernel(instruction):
                yield from (edge for edge in running[instruction.name] if not (edge.counted and counts_itself))
            elif opcode in CONTROL and not is_one_kernel(instruction):
                continue
            elif opcode != "custom-call" or not runs_nothing(instruction):
                yield instruction

    def callees_of(self, instruction: Instruction) -> list[str]:
        """Return the computations that an instruction runs, with those that these run, each after all that it runs."""
        inside = dict.fromkeys(edge.callee for edge in calls_of(instruction))
        pending = [*inside]
        while pending:
            added = {edge.callee: None for edge in self.edges.get(pending.pop(), ()) if edge.callee not in inside}
            inside |= added
            pending += added
        return [name for name in self.post_order if name in inside]

    def launches_in(self, computation: Computation) -> Iterator[Instruction]:
        """Yield the instructions of a computation that launch work and run no other computation."""
        calls = {edge.caller.name for edge in self.edges[computation.name]}
        steps = self._steps(computation)
        return (step for step in steps if not isinstance(step, CallEdge) and step.name not in calls)


_NO_LAUNCH = FREE | FINISHING | {""}
_RUNNING = ("while(", "conditional(", " call(", "\tcall(", "\ncall(", "-start(")
"""Text that occurs in every instruction that runs computations, and in few others; each match is then parsed."""


def is_small_call(call: Instruction) -> bool:
    """Return whether XLA:CPU makes one function of a call and all that it runs."""
    return call.opcode == "call" and "xla_cpu_small_call" in call.attributes.get("frontend_attributes", "")


def is_one_kernel(call: Instruction) -> bool:
    """Return whether a call counts as one kernel. One that holds loops or branches does not: from jax 0.12 on, XLA:CPU
    makes one function of loops of any size, and what they do is to be seen."""
    if not is_small_call(call):
        return False
    inside = (inner for computation in call.callees() for inner in computation.instructions)
    return not any(inner.opcode in CONTROL for inner in inside)


@once_per_module
def functions_of_calls(module: Module) -> dict[str, str]:
    """Return the names of the calls that XLA:CPU turns into one function each, by the computations in it. A capture has
    the call alone, and the iterations of a loop in it cost nothing besides their work."""
    execution = module.once(Execution)
    edges = (edge for called in execution.edges.values() for edge in called if is_small_call(edge.caller))
    return {name: edge.caller.name for edge in edges for name in execution.callees_of(edge.caller)}


def calls_of(instruction: Instruction) -> list[CallEdge]:
    """Return the computations that an instruction runs."""
    if instruction.opcode == "async-start":
        # One that wraps a single operation is itself the kernel.
        inner = next(iter(instruction.callees()), None)
        working = [each.opcode for each in inner.instructions if each.opcode not in FREE] if inner is not None else []
        is_single = len(working) == 1 and working[0] not in CONTROL
        return [CallEdge(instruction, inner.name, 1)] if inner is not None and not is_single else []
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


_ENTERED = frozenset({"fusion", "call"})
_THROUGH = frozenset({"copy", "bitcast", "reshape", "convert"})


def trip_count(loop: Instruction) -> int | None:
    """Return how often the body of a `while` runs; None if the text does not show it."""
    stated = loop.backend_config.get("known_trip_count")
    if isinstance(stated, dict):
        number = whole_number(str(stated.get("n", "")))
        if number is not None:
            return number
    state = loop.operand(0)
    roots = [computation.root for computation in loop.callees()]
    body, condition = roots if len(roots) == 2 else (None, None)
    compare = _follow(condition)
    compared = _operands(compare) if compare is not None and compare.opcode == "compare" else []
    if compare is None or len(compared) != 2:
        return None
    counter, limit = compared
    direction = compare.instruction.string("direction")
    if counter.opcode != "parameter":
        counter, limit = limit, counter
        direction = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}.get(direction, direction)
    start, last = _constant(_follow(state, counter.member)), _constant(limit)
    step = _step(_follow(body, counter.member), counter.member)
    if counter.opcode != "parameter" or start is None or last is None or not step:
        return None
    if direction == "NE":
        count, rest = divmod(last - start, step)
        return count if count >= 0 and not rest else None
    if direction not in (("LT", "LE") if step > 0 else ("GT", "GE")):
        return None
    end = last + {"LE": 1, "GE": -1}.get(direction, 0)
    return max(0, -((start - end) // step))


def _step(value: Value | None, member: tuple[int, ...]) -> int | None:
    """Return what a loop's body adds to this element of its state; None if it does anything else with it."""
    total = 0
    # Several additions may make one step.
    for _ in range(32):
        if value is None or value.opcode != "add":
            break
        operands = _operands(value)
        added = [constant for operand in operands if (constant := _constant(operand)) is not None]
        others = [operand for operand in operands if _constant(operand) is None]
        if len(added) != 1 or len(others) != 1:
            return None
        total += added[0]
        value = others[0]
    return total if value is not None and value.opcode == "parameter" and value.member == member else None


def _follow(instruction: Instruction | None, member: tuple[int, ...] = ()) -> Value | None:
    """Return the operation that makes a scalar, also in fusions and calls, under whatever name and dtype."""
    value = resolve(Value(instruction, member), _ENTERED) if instruction is not None else None
    return origin_through(value, _THROUGH, _ENTERED)


def _operands(value: Value) -> list[Value]:
    """Return the operations that make the operands of an operation, as far as they can be followed."""
    followed = (origin_through(source, _THROUGH, _ENTERED) for source in sources(value, _ENTERED))
    return [operand for operand in followed if operand is not None]


def _constant(value: Value | None) -> int | None:
    written = value.instruction.literal.strip().strip("{} ") if value is not None else ""
    digits = written.removeprefix("-")
    return int(written) if digits.isdecimal() and len(digits) < 19 else None  # in 64 bits
