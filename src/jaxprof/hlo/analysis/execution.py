"""Derive which instructions of a module launch work, in which order, and how often.

The walk begins at the entry and follows loops, branches and calls. A loop's body runs as often as its trip count says,
if XLA knows it; its condition runs once more. Only one branch of a conditional runs, so the kernels of branches are
marked and totals take the most expensive branch. If a computation is called from several places, its launches are
listed once and their counts added.

XLA writes a loop's `known_trip_count` into `backend_config` if it knows it. Modules before optimisation lack it, so
their loops run an unknown number of times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jaxprof.grouping import grouped
from jaxprof.hlo.analysis.cost.library import ANNOTATIONS
from jaxprof.hlo.analysis.opcodes import CONTROL, FINISHING, FREE
from jaxprof.text import whole_number

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        if module.entry is not None:
            self._visit(module.entry)
        self._counts = self._multiply(module.entry.name if module.entry else "")

    def launches(self) -> Iterator[tuple[Instruction, int | None, bool]]:
        """Yield every instruction that launches work, in order of first execution; its executions in one run of the
        module, None if a loop's trip count is unknown; and whether it lies in a branch that may not be taken, which
        makes the count an upper bound. Reads only as far as the caller iterates."""
        entry = self.module.entry
        if entry is None:
            return
        entered = {entry.name}
        # Without recursion, because a file may nest deeper than Python's stack.
        stack = [(self._steps(entry), *self._counts[entry.name])]
        while stack:
            steps, count, conditional = stack[-1]
            for step in steps:
                if not isinstance(step, CallEdge):
                    yield step, count, conditional
                    continue
                callee = self.module.get(step.callee)
                if callee is not None and callee.name not in entered:
                    entered.add(callee.name)
                    stack.append((self._steps(callee), *self._counts[callee.name]))
                    break
            else:
                stack.pop()

    def _visit(self, entry: Computation) -> None:
        entered = {entry.name}
        stack = [(entry, iter(self._find_edges(entry)))]
        while stack:
            computation, edges = stack[-1]
            for edge in edges:
                callee = self.module.get(edge.callee)
                if callee is not None and callee.name not in entered:
                    entered.add(callee.name)
                    stack.append((callee, iter(self._find_edges(callee))))
                    break
            else:
                self.post_order.append(computation.name)
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

    def _steps(self, computation: Computation) -> Iterator[Instruction | CallEdge]:
        running = grouped((edge.caller.name, edge) for edge in self.edges[computation.name])
        for instruction in computation.instructions:
            opcode = instruction.opcode
            if opcode in _NO_LAUNCH:
                continue
            if running and instruction.name in running:
                yield from running[instruction.name]
            elif opcode in CONTROL:
                continue
            elif opcode != "custom-call" or instruction.string("custom_call_target") not in ANNOTATIONS:
                yield instruction

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
            return [CallEdge(instruction, called[1], once_more), CallEdge(instruction, called[0], trips)]
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


def trip_count(loop: Instruction) -> int | None:
    """Return how often the body of a `while` runs; None if the text does not show it."""
    stated = loop.backend_config.get("known_trip_count")
    return whole_number(str(stated.get("n", ""))) if isinstance(stated, dict) else None
