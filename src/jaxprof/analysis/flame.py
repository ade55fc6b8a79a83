"""Flame graphs (icicles) of a session: a program's wall time by line, or kernels by named scope.

Amounts are whole numbers, picoseconds or bytes, so that sums are exact: a frame's total is its own amount plus that of
the frames inside it, and the root is everything. A tree may have half a million frames. It is stored as a few columns
of numbers in which a parent comes before its children, and the children of a frame are sorted when they are first
shown. Kernels without a capture are weighted with their least time, else with the bytes that they move; both are
labelled as estimates.

Graphs are built from weighted stacks, outermost frame first, like those of pprof: kernels under their program and
scopes, and lines of a recorded program under their loops.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from jaxprof.analysis.measured import kernels_of, measured
from jaxprof.grouping import totals
from jaxprof.units import bytes_, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.programs.loop_time import Spot
    from jaxprof.analysis.programs.result import ProgramResult
    from jaxprof.analysis.ranking import Ranking
    from jaxprof.hlo.analysis.kernels import Kernel
    from jaxprof.hlo.analysis.origin import OpPath
    from jaxprof.session import Run, Session

_DEEPEST: Final = 200
NO_SCOPE: Final = "no scope"
NO_OP: Final = "no HLO op"
NO_LINE: Final = "no line"
"""Names of frames without a known scope, HLO op or line, so that nothing is left out."""
_LEAST_SECONDS: Final = 1e-9
"""Smallest difference of sums that is shown; less is rounding."""


@dataclass(frozen=True, slots=True)
class StackFrame:
    """One level of a stack."""

    name: str
    file: str = ""
    line: int | None = None


@dataclass(frozen=True, slots=True)
class WeightedStack:
    """A stack and the time spent in its innermost frame."""

    frames: tuple[StackFrame, ...]
    """Frames, outermost first."""
    seconds: float
    count: int
    """Number of times that the stack was entered; for samples, number of samples."""
    measured: bool = True
    """Whether `seconds` was measured; if False, it is a lower bound."""
    run: str = ""
    """Id of the run whose HLO has the kernel; empty if the stack is not of a kernel."""


def run_stacks(session: Session, run: Run) -> list[WeightedStack]:
    """Return the stacks of a run: lines of a recorded program, otherwise kernels."""
    from jaxprof.analysis.programs.derive import program_result

    return line_stacks(program_result(session, run.id)) if run.is_program else kernel_stacks(session, run)


def kernel_stacks(session: Session, run: Run) -> list[WeightedStack]:
    """Return the kernels of a run under their program and named scopes. The weight is the self time of all executions
    in the run's capture; without a capture, it is the least time of one call. Empty if neither is known."""
    kernels, of_run = kernels_of(session, run.id), measured(session, run.id)
    by_name = {kernel.name: kernel for kernel in kernels or ()}
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
    ranking = _ranking(session, run)
    if ranking is None:
        return []
    return [
        WeightedStack(_frames("", kernel.name, kernel), least, kernel.count or 0, measured=False, run=run.id)
        for kernel in ranking.kernels
        if (least := ranking.least(kernel))
    ]


def scope_names(path: OpPath | None) -> tuple[str, ...]:
    """Return the functions and named scopes of a path, outermost first; `no scope` if there are none. Only the
    outermost ones are kept: a text can nest a hundred thousand."""
    from jaxprof.analysis.ranking import scopes_of

    return (scopes_of(path) if path is not None else ())[:_DEEPEST] or (NO_SCOPE,)


def _frames(module: str, name: str, kernel: Kernel | None) -> tuple[StackFrame, ...]:
    scopes = scope_names(kernel.path if kernel is not None else None)
    source = kernel.source if kernel is not None else None
    own = StackFrame(name, source.file, source.line) if source is not None else StackFrame(name)
    return (*([StackFrame(module)] if module else []), *map(StackFrame, scopes), own)


def line_stacks(program: ProgramResult) -> list[WeightedStack]:
    """Return the lines of a recorded program with the main thread's states, estimated from samples. A line is below the
    loops and lines that led to it, as far as they were recorded. The rest of the wall time has stacks of its own."""
    stacks = [
        WeightedStack((*_called(spot), *_line(spot)), spot.seconds, 1) for spot in program.spots if spot.seconds > 0
    ]
    at_lines = totals((spot.state, spot.seconds) for spot in program.spots)
    for share in program.timeline:
        left = share.seconds - at_lines.get(share.state, 0.0)
        if left > _LEAST_SECONDS:
            stacks.append(WeightedStack((StackFrame(NO_LINE), StackFrame(_state(share.state))), left, 0))
    return stacks


def _called(spot: Spot) -> Iterator[StackFrame]:
    """Yield the loops around a spot, outermost first, each with the line from which the inner code was called."""
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
    """Yield the spot's function (unless its innermost loop is in that function), its line, and its state."""
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
    """A frame of the tree, or a group of siblings that are too small to draw. With a `size`, this is that many children
    of `node`, starting at position `first`; the largest child has position 0."""

    node: int
    first: int = 0
    size: int = 0


WHOLE: Final = FlameFrame(ROOT)


class FlameTree:
    """A tree of frames stored as columns. `Branches` builds one."""

    def __init__(
        self, names: list[str], parents: list[int], own: list[int], counts: list[int], entries: list[int]
    ) -> None:
        self.names: Final = names
        self.parents: Final = parents
        """Index of the parent; -1 for the root."""
        self.own: Final = own
        self.counts: Final = counts
        """Number of times that the stacks ending in a frame were entered; 0 if unknown."""
        self.entries: Final = entries
        """Number of the first entry (a stack, a kernel) that ends in the frame; -1 if none does."""
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
        """Amount of the whole tree."""
        return self.totals[ROOT]

    def inside(self, node: int) -> Sequence[int]:
        """Return the children of a frame, largest first."""
        children = self._inside[node]
        if children is None:
            return ()
        if node not in self._sorted:
            children.reverse()  # equal children stay in their original order
            children.sort(key=self.totals.__getitem__, reverse=True)
            self._sorted.add(node)
        return children

    def frames_in(self, frame: FlameFrame) -> Sequence[int]:
        """Return the children of a frame, largest first; for a group of small frames, its members."""
        children = self.inside(frame.node)
        return children[frame.first : frame.first + frame.size] if frame.size else children

    def total_of(self, frame: FlameFrame) -> int:
        """Return the amount of a frame with everything inside it."""
        if not frame.size:
            return self.totals[frame.node]
        return sum(map(self.totals.__getitem__, self.frames_in(frame)))

    def own_of(self, frame: FlameFrame) -> int:
        """Return the amount of a frame that is inside no other frame."""
        return 0 if frame.size else self.own[frame.node]

    def name_of(self, frame: FlameFrame) -> str:
        """Return the name of a frame; for a group, text such as `12 smaller`."""
        return f"{frame.size} smaller" if frame.size else self.names[frame.node]

    def share_of(self, frame: FlameFrame) -> float:
        """Return the share of a frame in the whole tree, from 0 to 1."""
        return self.total_of(frame) / self.total if self.total else 0.0

    def around(self, frame: FlameFrame) -> int | None:
        """Return the parent of a frame; None for the root."""
        if frame.size:
            return frame.node
        return self.parents[frame.node] if frame.node != ROOT else None

    def path(self, node: int) -> list[int]:
        """Return the frames from below the root down to a frame; empty for the root."""
        path: list[int] = []
        while node != ROOT:
            path.append(node)
            node = self.parents[node]
        return path[::-1]

    def find(self, names: Iterable[str]) -> int:
        """Return the frame at a path of names, following the path as far as it exists."""
        at = ROOT
        for name in names:
            inner = next((child for child in self.inside(at) if self.names[child] == name), None)
            if inner is None:
                return at
            at = inner
        return at

    def in_order(self, least: int = 1) -> Iterator[tuple[int, int]]:
        """Yield the frames of at least that amount with their depths: parents before children, larger frames first."""
        pending = [(ROOT, 0)]
        while pending:
            node, depth = pending.pop()
            yield node, depth
            pending += [
                (child, depth + 1) for child in reversed(self.inside(node)) if self.totals[child] >= least
            ]  # fmt: skip


@dataclass(slots=True)
class Branches:
    """A flame tree under construction."""

    names: list[str] = field(default_factory=lambda: [ALL])
    parents: list[int] = field(default_factory=lambda: [-1])
    own: list[int] = field(default_factory=lambda: [0])
    counts: list[int] = field(default_factory=lambda: [0])
    entries: list[int] = field(default_factory=lambda: [-1])
    _by_key: dict[tuple[int, Hashable], int] = field(default_factory=dict)

    def branch(self, parent: int, name: str, key: Hashable = None) -> int:
        """Return the child of that name (or key), creating it if it does not exist."""
        node = self._by_key.get((parent, key or name))
        if node is None:
            node = self._by_key[parent, key or name] = len(self.names)
            self.add(parent, [name], [0], [0], [-1])
        return node

    def end(self, node: int, amount: int, count: int, entry: int) -> None:
        """Add to the amount and count that end in a frame."""
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
        """Add many frames at once; frames of equal name stay separate."""
        self.parents += [parents] * len(names) if isinstance(parents, int) else parents
        self.names += names
        self.own += amounts
        self.counts += counts
        self.entries += entries

    def tree(self) -> FlameTree:
        """Return the current tree."""
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
"""Quantities that amounts can be, each with its text."""


@dataclass(frozen=True, slots=True)
class FlameGraph:
    """A tree, and the meaning of its amounts."""

    tree: FlameTree
    basis: str
    """One of `BASES`."""
    by: str
    """Kind of the frames: `scope` or `line`."""
    entries: Sequence[WeightedStack] = ()
    """Stacks that end in the frames; empty for a ranking, where an entry number is a kernel number."""
    unknown: int = 0
    """Number of kernels that are not in the tree because their amount is unknown."""

    def text(self, amount: int) -> str:
        """Return an amount as text."""
        return bytes_(amount) if self.basis == "bytes" else seconds(amount / PICOSECONDS)

    @property
    def title(self) -> str:
        """Title of the graph, such as `kernels by named scope · measured self time`."""
        what = "lines of the program" if self.by == "line" else "kernels by named scope"
        return f"{what} · {BASES[self.basis]}"

    @property
    def remark(self) -> str:
        """Text about what the graph does not contain; empty if it contains everything."""
        if not self.unknown:
            return ""
        what = "bytes are" if self.basis == "bytes" else "time is"
        if self.unknown == 1:
            return f"1 kernel is missing because its {what} unknown."
        return f"{self.unknown} kernels are missing because their {what} unknown."

    @property
    def is_estimate(self) -> bool:
        """Whether the amounts were not measured."""
        return self.basis not in ("measured", "call")

    def entry_of(self, node: int) -> WeightedStack | None:
        """Return the stack that ends in a frame; None if there is none."""
        number = self.tree.entries[node]
        return self.entries[number] if 0 <= number < len(self.entries) else None

    def place_of(self, node: int) -> StackFrame | None:
        """Return the file and line of a frame from a stack through it; None if unknown."""
        depth, inner = len(self.tree.path(node)), node
        while self.entry_of(inner) is None and (children := self.tree.inside(inner)):
            inner = children[0]
        entry = self.entry_of(inner)
        return entry.frames[depth - 1] if entry is not None and depth and entry.frames[depth - 1].file else None


def stacks_flame(stacks: Sequence[WeightedStack], basis: str, by: str) -> FlameGraph:
    """Build the graph of stacks; stacks that begin alike share their frames."""
    branches = Branches()
    for number, stack in enumerate(stacks):
        node = ROOT
        for frame in stack.frames:
            node = branches.branch(node, frame.name, frame)
        branches.end(node, round(stack.seconds * PICOSECONDS), stack.count, number)
    return FlameGraph(branches.tree(), basis, by, stacks)


def program_flame(program: ProgramResult) -> FlameGraph:
    """Return the wall time of a program by the lines of its source."""
    return stacks_flame(line_stacks(program), "sampled", "line")


def ranking_flame(ranking: Ranking) -> FlameGraph:
    """Return the kernels of a module under their scopes, with the weights that their shares are computed from."""
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
    with not_collecting():  # a hundred thousand frames take 60 ms, and 100 ms with garbage collections in between
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
    """Return the lines of a program, or the kernels of any other run; None if nothing is known. May read HLO, so call
    it in a thread."""
    from jaxprof.analysis.programs.derive import program_result

    return program_flame(program_result(session, run.id)) if run.is_program else kernel_flame(session, run)


def kernel_flame(session: Session, run: Run) -> FlameGraph | None:
    """Return the kernels of a run, or of all programs of a whole profile; None if nothing is known. May read HLO, so
    call it in a thread."""
    from jaxprof.analysis.profile import is_whole, programs_of

    parts = [run, *programs_of(session, run)] if is_whole(run) else [run]
    stacks = [stack for part in parts for stack in kernel_stacks(session, part)]
    if stacks and all(stack.measured for stack in stacks):
        return stacks_flame(stacks, "measured", "scope")
    ranking = _ranking(session, run)
    return ranking_flame(ranking) if ranking is not None else None


def _ranking(session: Session, run: Run) -> Ranking | None:
    from jaxprof.analysis.ceilings import ceilings_for, machine_of_run
    from jaxprof.analysis.ranking import Ranking

    kernels = kernels_of(session, run.id)
    return Ranking(kernels, machine_of_run(run, ceilings_for(session, run))) if kernels else None
