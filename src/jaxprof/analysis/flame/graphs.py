"""The flame graphs of a session: a program's wall time by line, kernels by named scope, with what is known of them.

Kernels without a capture are weighed with the least time that they could take, else with the bytes that they move:
both are called estimates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jaxprof.analysis.flame.tree import ROOT, Branches, FlameTree
from jaxprof.analysis.stacks import StackFrame, WeightedStack, captured_stacks, line_stacks, scope_names
from jaxprof.units import bytes_, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.programs.derive import ProgramResult
    from jaxprof.analysis.ranking import Ranking
    from jaxprof.session import Run, Session

PICOSECONDS: Final = 10**12
"""In a second. The clocks of traces count in no finer unit."""
BASES: Final = {
    "measured": "measured self time",
    "call": "measured self time of a call",
    "sampled": "estimate from samples",
    "least": "estimate: the least time, a lower bound",
    "bytes": "estimate: bytes moved",
}
"""What the amounts are, in words."""


@dataclass(frozen=True, slots=True)
class FlameGraph:
    """A tree with what its amounts mean."""

    tree: FlameTree
    basis: str
    """One of `BASES`."""
    by: str
    """`scope` or `line`."""
    entries: Sequence[WeightedStack] = ()
    """What ends in the frames; of a ranking empty, because its numbers are those of the kernels."""
    unknown: int = 0
    """Kernels that are not in the tree, because their amount is not known."""

    def text(self, amount: int) -> str:
        """An amount for people."""
        return bytes_(amount) if self.basis == "bytes" else seconds(amount / PICOSECONDS)

    @property
    def title(self) -> str:
        """What is shown: `kernels by named scope · measured self time`."""
        what = "lines of the program" if self.by == "line" else "kernels by named scope"
        return f"{what} · {BASES[self.basis]}"

    @property
    def remark(self) -> str:
        """What is not in it; empty if everything is."""
        if not self.unknown:
            return ""
        what = "bytes are" if self.basis == "bytes" else "time is"
        kernels = "1 kernel is not in it: its" if self.unknown == 1 else f"{self.unknown} kernels are not in it: their"
        return f"{kernels} {what} not known."

    @property
    def is_estimate(self) -> bool:
        """Whether the amounts were not measured."""
        return self.basis not in ("measured", "call")

    def entry_of(self, node: int) -> WeightedStack | None:
        """The stack that ends in a frame; None if none does."""
        number = self.tree.entries[node]
        return self.entries[number] if 0 <= number < len(self.entries) else None

    def place_of(self, node: int) -> StackFrame | None:
        """The file and line of a frame, as a stack through it says; None if they are not known."""
        depth, inner = len(self.tree.path(node)), node
        while self.entry_of(inner) is None and (children := self.tree.inside(inner)):
            inner = children[0]
        entry = self.entry_of(inner)
        return entry.frames[depth - 1] if entry is not None and depth and entry.frames[depth - 1].file else None


def stacks_flame(stacks: Sequence[WeightedStack], basis: str, by: str) -> FlameGraph:
    """Stacks that begin alike share their frames."""
    branches = Branches()
    for number, stack in enumerate(stacks):
        node = ROOT
        for frame in stack.frames:
            node = branches.branch(node, frame.name, frame)
        branches.end(node, round(stack.seconds * PICOSECONDS), stack.count, number)
    return FlameGraph(branches.tree(), basis, by, stacks)


def program_flame(program: ProgramResult) -> FlameGraph:
    """The wall time of a program by the lines of its source."""
    return stacks_flame(line_stacks(program), "sampled", "line")


def ranking_flame(ranking: Ranking) -> FlameGraph:
    """The kernels of a module under their scopes, with the weights that their shares are of."""
    from jaxprof.hlo.analysis.origin import op_path
    from jaxprof.hlo.collecting import not_collecting

    scale = 1 if ranking.basis == "bytes" else PICOSECONDS
    branches = Branches()
    origins = ranking.origins

    def scope(names: Sequence[str]) -> int:
        node = ROOT
        for name in names:
            node = branches.branch(node, name)
        return node

    nowhere = scope_names(None)
    scopes = [scope_names(op_path(op_name)) for op_name, _ in origins.places]
    weights = ranking.column("weight")
    known = [number for number, weight in enumerate(weights) if weight > 0]
    kernels = ranking.kernels
    with not_collecting():  # a hundred thousand frames take 60 ms, and 100 with collections between them
        places = list(map(origins.first, known))
        at = {place: scope(scopes[place] if place >= 0 else nowhere) for place in dict.fromkeys(places)}
        branches.add(
            list(map(at.__getitem__, places)),
            [kernels[number].name for number in known],
            [round(weights[number] * scale) for number in known],
            [kernels[number].count or 0 for number in known],
            known,
        )
        tree = branches.tree()
    basis = "call" if ranking.basis == "measured" else ranking.basis
    return FlameGraph(tree, basis, "scope", unknown=sum(map(math.isnan, weights)))


def run_flame(session: Session, run: Run) -> FlameGraph | None:
    """Of a program its lines, of a whole profile or any other run its kernels; None if nothing is known of them. May
    read HLO, so call it in a thread."""
    from jaxprof.analysis.programs.derive import program_result

    return program_flame(program_result(session, run.id)) if run.is_program else kernel_flame(session, run)


def kernel_flame(session: Session, run: Run) -> FlameGraph | None:
    """The kernels of a run, of a whole profile those of all its programs; None if nothing is known of them. May read
    HLO, so call it in a thread."""
    stacks = captured_stacks(session, run)
    if stacks and all(stack.measured for stack in stacks):
        return stacks_flame(stacks, "measured", "scope")
    ranking = _ranking(session, run)
    return ranking_flame(ranking) if ranking is not None else None


def _ranking(session: Session, run: Run) -> Ranking | None:
    from jaxprof.analysis.ceilings import ceilings_for, machine_of_run
    from jaxprof.analysis.measured import kernels_of
    from jaxprof.analysis.ranking import Ranking

    kernels = kernels_of(session, run.id) if "hlo" in run.texts else None
    return Ranking(kernels, machine_of_run(run, ceilings_for(session, run))) if kernels else None
