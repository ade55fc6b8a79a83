"""Which instructions of a module launch work, in which order, and how often.

The walk begins at the entry and follows loops, branches and calls. A loop's body runs as often as its trip count
says, where XLA knows it; its condition once more than that. Of the branches of a conditional one runs: its kernels
are marked, and totals take the most expensive branch. Where a computation is called from several places its launches
are listed once and their counts added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxprof.hlo.analysis.library import ANNOTATIONS
from jaxprof.hlo.analysis.opcodes import CONTROL, FINISHING, FREE
from jaxprof.hlo.analysis.trips import trip_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jaxprof.hlo.model import Computation, Instruction, Module


@dataclass(frozen=True, slots=True)
class Edge:
    """A computation that a loop, branch or call runs."""

    caller: Instruction
    callee: str
    times: int | None
    """Runs of the callee for each run of the caller; None where nobody knows it before it runs."""
    branch: bool = False
    """One of several alternatives."""


@dataclass(frozen=True, slots=True)
class Launch:
    """An instruction that launches work."""

    instruction: Instruction
    count: int | None
    """Executions in one run of the module; None where a loop's trip count is not known."""
    conditional: bool
    """It lies in a branch that may not be taken; `count` is then the most that it can be."""


class Execution:
    """The launches of a module, and the computations that hold them."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.edges: dict[str, tuple[Edge, ...]] = {}
        """For each computation on the way, what it runs, in order."""
        self.launching: dict[str, tuple[Instruction, ...]] = {}
        """For each computation on the way, the instructions that launch work themselves, in order."""
        self._post_order: list[str] = []
        self._order: list[Instruction] = []
        if module.entry is not None:
            self._visit(module.entry)
        self._counts = self._multiply(module.entry.name if module.entry else "")

    def launches(self) -> Iterator[Launch]:
        """Every launch once, in the order in which they first run."""
        for instruction in self._order:
            count, conditional = self._counts[instruction.computation.name]
            yield Launch(instruction, count, conditional)

    def post_order(self) -> list[str]:
        """The computations on the way, each after all that it runs."""
        return self._post_order

    def _visit(self, entry: Computation) -> None:
        """Depth first without recursion, as a file may nest deeper than Python's stack."""
        entered = {entry.name}
        stack = [(entry, self._scan(entry))]
        while stack:
            computation, steps = stack[-1]
            for step in steps:
                if isinstance(step, Edge):
                    callee = self.module.get(step.callee)
                    if callee is not None and callee.name not in entered:
                        entered.add(callee.name)
                        stack.append((callee, self._scan(callee)))
                        break
                else:
                    self._order.append(step)
            else:
                self._post_order.append(computation.name)
                stack.pop()

    def _scan(self, computation: Computation) -> Iterator[Instruction | Edge]:
        edges: list[Edge] = []
        launching: list[Instruction] = []
        for instruction in computation.instructions:
            opcode = instruction.opcode
            if opcode in FREE or opcode in FINISHING or not opcode:
                continue
            if opcode in CONTROL:
                edges += _edges(instruction)
            elif opcode == "async-start" and (inner := _several(instruction)):
                edges.append(Edge(instruction, inner, 1))
            elif opcode != "custom-call" or instruction.string("custom_call_target") not in ANNOTATIONS:
                launching.append(instruction)
        self.edges[computation.name] = tuple(edges)
        self.launching[computation.name] = tuple(launching)
        steps: list[Instruction | Edge] = [*edges, *launching]
        steps.sort(key=lambda step: step.caller.position if isinstance(step, Edge) else step.position)
        return iter(steps)

    def _multiply(self, entry: str) -> dict[str, tuple[int | None, bool]]:
        """How often each computation runs; callers come before those that they call."""
        counts: dict[str, tuple[int | None, bool]] = {entry: (1, False)}
        place = {name: number for number, name in enumerate(self._post_order)}
        for name in reversed(self._post_order):
            runs, conditional = counts.get(name, (0, False))
            for edge in self.edges[name]:
                if place.get(edge.callee, len(place)) >= place[name]:
                    continue  # a circle, which only a broken module has
                more = None if runs is None or edge.times is None else runs * edge.times
                before, was = counts.get(edge.callee, (0, True))
                total = None if before is None or more is None else before + more
                counts[edge.callee] = (total, was and (conditional or edge.branch))
        return counts


def _edges(instruction: Instruction) -> list[Edge]:
    called = instruction.called
    if instruction.opcode == "while":
        trips = trip_count(instruction)
        once_more = None if trips is None else trips + 1
        # The condition is what runs first.
        return [Edge(instruction, called[1], once_more), Edge(instruction, called[0], trips)] if len(called) > 1 else []
    return [Edge(instruction, name, 1, branch=instruction.opcode == "conditional") for name in called]


def _several(start: Instruction) -> str:
    """The computation that an asynchronous start runs, if it holds more than the one operation that it wraps."""
    called = start.called_computations()
    if not called:
        return ""
    working = [i for i in called[0].instructions if i.opcode not in FREE]
    return called[0].name if len(working) != 1 or working[0].opcode in CONTROL else ""
