"""The flame graphs (icicles) of a session: a program's wall time by line, kernels by named scope; frames inside frames.

Amounts are whole numbers, picoseconds or bytes, so that sums are exact: a frame is its own amount and those of the
frames inside it, and the root is everything. A tree may have half a million frames; it is a few columns of numbers, in
which a parent stands before its children, and the children of a frame are sorted when they are looked at. Kernels
without a capture are weighed with the least time that they could take, else with the bytes that they move: both are
called estimates.

They are made of stacks with a weight, outermost frame first, as speedscope and pprof are: kernels under their program
and scopes, the passes of a compile, the lines of a recorded program under their loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from jaxprof.analysis.measured import kernels_of, measured
from jaxprof.events import PassTimes
from jaxprof.units import bytes_, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.programs.derive import ProgramResult
    from jaxprof.analysis.programs.verdict import Spot
    from jaxprof.analysis.ranking import Ranking
    from jaxprof.hlo.analysis.kernels import Kernel
    from jaxprof.hlo.analysis.origin import OpPath
    from jaxprof.session import Run, Session

_DEEPEST: Final = 200
NO_SCOPE: Final = "no scope"
NO_OP: Final = "no HLO op"
NO_LINE: Final = "no line"
"""Frames of what is known of no scope, no HLO op, no line: nothing is left out."""
_LEAST_SECONDS: Final = 1e-9
"""Of a difference of sums; less is their rounding."""


@dataclass(frozen=True, slots=True)
class StackFrame:
    """One level of a stack."""

    name: str
    file: str = ""
    line: int | None = None


@dataclass(frozen=True, slots=True)
class WeightedStack:
    """A stack and the time that was spent in its innermost frame."""

    frames: tuple[StackFrame, ...]
    """Outermost first."""
    seconds: float
    count: int
    """How often it was entered; of samples, how many there were."""
    measured: bool = True
    """False: `seconds` is the least time that it could take."""
    run: str = ""
    """Of a kernel, the id of the run whose HLO has it."""


def run_stacks(session: Session, run: Run) -> list[WeightedStack]:
    """The lines of a recorded program; of any other run its kernels."""
    from jaxprof.analysis.programs.derive import program_result

    return line_stacks(program_result(session, run.id)) if run.is_program else kernel_stacks(session, run)


def captured_stacks(session: Session, run: Run) -> list[WeightedStack]:
    """The stacks of a run; of a whole profile those of all its programs."""
    from jaxprof.analysis.profile import is_whole, programs_of

    if not is_whole(run):
        return run_stacks(session, run)
    return [stack for part in (run, *programs_of(session, run)) for stack in kernel_stacks(session, part)]


def kernel_stacks(session: Session, run: Run) -> list[WeightedStack]:
    """The kernels of a run under their program and named scopes, with the self time of all executions in its capture;
    without a capture, with their least time in one call; empty if neither is known."""
    kernels = kernels_of(session, run.id) if "hlo" in run.texts else None
    by_name = {kernel.name: kernel for kernel in kernels or ()}
    of_run = measured(session, run.id)
    if of_run is not None and (of_run.kernels or any(of_run.unattributed_seconds.values())):
        return [
            WeightedStack(_frames(row.module, row.name, by_name.get(row.name)), row.self_seconds, row.count, run=run.id)
            for row in of_run.kernels
            if row.self_seconds > 0
        ] + [
            WeightedStack((StackFrame(NO_OP), StackFrame(device)), took, 0)
            for device, took in of_run.unattributed_seconds.items()
            if took > 0
        ]
    if not kernels:
        return []
    from jaxprof.analysis.ceilings import ceilings_for, machine_of_run
    from jaxprof.analysis.ranking import KernelCeilings

    ceilings = KernelCeilings(machine_of_run(run, ceilings_for(session, run)))
    rows = (ceilings.row(number, kernel) for number, kernel in enumerate(kernels))
    return [
        WeightedStack(_frames("", row.kernel.name, row.kernel), least, int(row.kernel.count or 0), measured=False,
                      run=run.id)
        for row in rows
        if (least := row.least_seconds)
    ]  # fmt: skip


def scope_names(path: OpPath | None) -> tuple[str, ...]:
    """The functions and named scopes of a path, outermost first; `no scope` where there are none. Of a text that has a
    hundred thousand within each other, the outermost."""
    from jaxprof.analysis.ranking import scopes_of

    return (scopes_of(path) if path is not None else ())[:_DEEPEST] or (NO_SCOPE,)


def _frames(module: str, name: str, kernel: Kernel | None) -> tuple[StackFrame, ...]:
    scopes = scope_names(kernel.path if kernel is not None else None)
    source = kernel.source if kernel is not None else None
    own = StackFrame(name, source.file, source.line) if source is not None else StackFrame(name)
    return (*([StackFrame(module)] if module else []), *map(StackFrame, scopes), own)


def pass_stacks(tree: PassTimes) -> list[WeightedStack]:
    """The phases and passes of a compile with their self times, over all threads."""

    def walk(node: PassTimes, above: tuple[StackFrame, ...]) -> Iterator[WeightedStack]:
        frames = (*above, StackFrame(node.name))
        if node.self_seconds > 0:
            yield WeightedStack(frames, node.self_seconds, node.count)
        for child in node.children:
            yield from walk(child, frames)

    return list(walk(tree, ()))


def line_stacks(program: ProgramResult) -> list[WeightedStack]:
    """The lines of a recorded program with the state that the main thread was in, under the loops and lines that led to
    them as far as these were recorded, and the rest of its wall time; an estimate from samples."""
    stacks = [
        WeightedStack((*_called(spot), *_line(spot)), spot.seconds, 1) for spot in program.spots if spot.seconds > 0
    ]
    at_lines: dict[str, float] = {}
    for spot in program.spots:
        at_lines[spot.state] = at_lines.get(spot.state, 0.0) + spot.seconds
    for share in program.timeline:
        left = share.seconds - at_lines.get(share.state, 0.0)
        if left > _LEAST_SECONDS:
            stacks.append(WeightedStack((StackFrame(NO_LINE), StackFrame(_state(share.state))), left, 0))
    return stacks


def _called(spot: Spot) -> Iterator[StackFrame]:
    """The loops around a spot and, of each, the line from which what is inside was called; outermost first."""
    around = spot.sites[::-1]
    for outer, site, inner in zip((None, *around), around, (*around[1:], None), strict=False):
        function = (site.file, site.function)
        if outer is None or (outer.file, outer.function) != function:
            yield _function(*function)
        yield StackFrame(f"loop at line {site.loop_line}", site.file, site.loop_line)
        if (
            (inner.file, inner.function) != function
            if inner
            else (site.file, site.line) != (spot.place.file, spot.place.line)
        ):
            yield StackFrame(f"line {site.line} {site.call}".rstrip(), site.file, site.line)


def _line(spot: Spot) -> Iterator[StackFrame]:
    """The function of a spot, unless its innermost loop is in it, its line, and what it did there."""
    place = spot.place
    innermost = spot.sites[0] if spot.sites else None
    if innermost is None or (innermost.file, innermost.function) != (place.file, place.function):
        yield _function(place.file, place.function)
    line = f"line {place.line} {spot.call}".rstrip() if place.line else spot.call or "line not known"
    yield StackFrame(line, place.file, place.line)
    yield StackFrame(_state(spot.state), place.file, place.line)


def _function(file: str, function: str) -> StackFrame:
    return StackFrame(f"{function} ({_short(file)})" if function else _short(file), file)


def _short(file: str) -> str:
    return file.rpartition("/")[2]


def _state(state: str) -> str:
    return f"[{state.replace('_', ' ')}]"


ROOT: Final = 0
ALL: Final = "all"


class FlameFrame(NamedTuple):
    """A frame of the tree or, with a `size`, several that are too small to be drawn one by one: so many of the
    children of `node`, from the one in place `first` on, the largest being in place 0."""

    node: int
    first: int = 0
    size: int = 0


WHOLE: Final = FlameFrame(ROOT)


class FlameTree:
    """The frames as columns. `Branches` makes one."""

    def __init__(
        self, names: list[str], parents: list[int], own: list[int], counts: list[int], entries: list[int]
    ) -> None:
        self.names: Final = names
        self.parents: Final = parents
        """Of the root -1."""
        self.own: Final = own
        self.counts: Final = counts
        """How often what ends in a frame was entered; 0 if unknown."""
        self.entries: Final = entries
        """The number of the first entry (a stack, a kernel) that ends in the frame; -1 if none does."""
        self.totals: Final = list(own)
        self._inside: Final[list[list[int] | None]] = [None] * len(names)
        self._sorted: Final[set[int]] = set()
        totals, inside = self.totals, self._inside
        for node in range(len(names) - 1, ROOT, -1):
            parent = parents[node]
            totals[parent] += totals[node]
            children = inside[parent]
            if children is None:
                inside[parent] = [node]
            else:
                children.append(node)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def total(self) -> int:
        """Of everything."""
        return self.totals[ROOT]

    def inside(self, node: int) -> Sequence[int]:
        """The frames directly inside one, the largest first."""
        children = self._inside[node]
        if children is None:
            return ()
        if node not in self._sorted:
            children.reverse()  # equal ones stay in the order in which they came
            children.sort(key=self.totals.__getitem__, reverse=True)
            self._sorted.add(node)
        return children

    def frames_in(self, frame: FlameFrame) -> Sequence[int]:
        """The frames directly inside a frame, the largest first; of several small ones, these themselves."""
        children = self.inside(frame.node)
        return children[frame.first : frame.first + frame.size] if frame.size else children

    def total_of(self, frame: FlameFrame) -> int:
        """The amount of a frame with all that is inside it."""
        if not frame.size:
            return self.totals[frame.node]
        return sum(map(self.totals.__getitem__, self.frames_in(frame)))

    def own_of(self, frame: FlameFrame) -> int:
        """The amount that is inside no other frame."""
        return 0 if frame.size else self.own[frame.node]

    def name_of(self, frame: FlameFrame) -> str:
        """Its name; `12 smaller` of several."""
        return f"{frame.size} smaller" if frame.size else self.names[frame.node]

    def share_of(self, frame: FlameFrame) -> float:
        """Of everything, in 0..1."""
        return self.total_of(frame) / self.total if self.total else 0.0

    def around(self, frame: FlameFrame) -> int | None:
        """The frame that it is directly inside; None for the root."""
        if frame.size:
            return frame.node
        return self.parents[frame.node] if frame.node != ROOT else None

    def path(self, node: int) -> list[int]:
        """The frames from below the root down to one; empty for the root."""
        found: list[int] = []
        while node != ROOT:
            found.append(node)
            node = self.parents[node]
        return found[::-1]

    def find(self, names: Iterable[str]) -> int:
        """The frame at a path of names, as far as there is one."""
        at = ROOT
        for name in names:
            inner = next((child for child in self.inside(at) if self.names[child] == name), None)
            if inner is None:
                return at
            at = inner
        return at

    def in_order(self, least: int = 1) -> Iterator[tuple[int, int]]:
        """The frames of at least that amount with their depths: parents before their children, larger ones first."""
        pending = [(ROOT, 0)]
        while pending:
            node, depth = pending.pop()
            yield node, depth
            pending += [
                (child, depth + 1) for child in reversed(self.inside(node)) if self.totals[child] >= least
            ]  # fmt: skip

    def matching(self, test: Callable[[str], object]) -> FlameMatches:
        """The frames whose names pass the test."""
        marked = bytearray(bool(test(name)) for name in self.names)
        marked[ROOT] = 0
        holding, covered = bytearray(len(marked)), bytearray(len(marked))
        parents, amount = self.parents, 0
        for node in range(1, len(marked)):
            parent = parents[node]
            covered[node] = covered[parent] or marked[parent]
            if marked[node] and not covered[node]:
                amount += self.totals[node]
        for node in range(len(marked) - 1, ROOT, -1):
            if marked[node] or holding[node]:
                holding[parents[node]] = 1
        return FlameMatches(self, marked, holding, sum(marked), amount)


@dataclass(frozen=True, slots=True)
class FlameMatches:
    """The frames that a search found."""

    tree: FlameTree
    _marked: bytearray
    _holding: bytearray
    count: int
    amount: int
    """Of all of them together; what is inside another match counts once."""

    @property
    def share(self) -> float:
        """Of everything, in 0..1."""
        return self.amount / self.tree.total if self.tree.total else 0.0

    def marks(self, frame: FlameFrame) -> bool:
        """Whether a frame matches; of several small ones, whether one of them or of those inside them does."""
        if not frame.size:
            return bool(self._marked[frame.node])
        return any(self._marked[node] or self._holding[node] for node in self.tree.frames_in(frame))

    def largest_first(self) -> list[int]:
        """The matches, those with most first."""
        nodes = (node for node, marked in enumerate(self._marked) if marked)
        return sorted(nodes, key=lambda node: -self.tree.totals[node])


@dataclass(slots=True)
class Branches:
    """A tree that grows."""

    names: list[str] = field(default_factory=lambda: [ALL])
    parents: list[int] = field(default_factory=lambda: [-1])
    own: list[int] = field(default_factory=lambda: [0])
    counts: list[int] = field(default_factory=lambda: [0])
    entries: list[int] = field(default_factory=lambda: [-1])
    _by_key: dict[tuple[int, Hashable], int] = field(default_factory=dict)

    def branch(self, parent: int, name: str, key: Hashable = None) -> int:
        """The frame of that name (or key) inside another, made where there is none."""
        found = self._by_key.get((parent, key or name))
        if found is None:
            found = self._by_key[parent, key or name] = len(self.names)
            self.add(parent, [name], [0], [0], [-1])
        return found

    def end(self, node: int, amount: int, count: int, entry: int) -> None:
        """Adds to what ends in a frame."""
        self.own[node] += amount
        self.counts[node] += count
        if self.entries[node] < 0:
            self.entries[node] = entry

    def add(
        self,
        parents: int | Sequence[int],
        names: Sequence[str],
        amounts: Sequence[int],
        counts: Sequence[int],
        entries: Sequence[int],
    ) -> None:
        """Adds many frames at once, each its own even where another has its name."""
        self.parents += [parents] * len(names) if isinstance(parents, int) else parents
        self.names += names
        self.own += amounts
        self.counts += counts
        self.entries += entries

    def tree(self) -> FlameTree:
        """The tree as it is now."""
        return FlameTree(self.names, self.parents, self.own, self.counts, self.entries)


PICOSECONDS: Final = 10**12
"""Ticks per second; trace clocks are no finer."""
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
    from jaxprof.analysis.ranking import Ranking

    kernels = kernels_of(session, run.id) if "hlo" in run.texts else None
    return Ranking(kernels, machine_of_run(run, ceilings_for(session, run))) if kernels else None
