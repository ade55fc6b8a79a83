"""Flame graphs of a session: a program's wall time by line, or kernels by named scope.

Amounts are whole numbers, picoseconds or bytes, so that sums are exact: a frame's total is its own amount plus that of
the frames inside it, and the root is everything. Kernels without a capture are weighted with their least time, else
with the bytes that they move; both are labelled as estimates.

Graphs are built from weighted stacks, outermost frame first: kernels under their program and scopes, and lines of a
recorded program under their loops.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from jaxprof.analysis.kernels.measured import kernels_of, measure_kernels
from jaxprof.base.grouping import totals
from jaxprof.base.values import frozen
from jaxprof.session import Run, Session

if TYPE_CHECKING:
    from jaxprof.analysis.programs.result import ProgramResult
    from jaxprof.hlo.kernels.kernels import Kernel

_DEEPEST = 200
"""Most scopes of a stack, the outermost ones: a text can nest a hundred thousand."""
NO_SCOPE = "no scope"
NO_OP = "no HLO op"
NO_LINE = "no line"
"""Names of frames without a known scope, HLO op or line, so that nothing is left out."""


class StackFrame(NamedTuple):
    name: str
    file: str = ""
    line: int | None = None


@frozen
class WeightedStack:
    """A stack, and what belongs to its innermost frame."""

    frames: tuple[StackFrame, ...]
    """Frames, outermost first."""
    amount: float
    """Seconds, or bytes."""
    count: int
    """Number of times that the stack was entered; for samples, number of samples."""


def kernel_frames(module: str, name: str, kernel: Kernel | None) -> tuple[StackFrame, ...]:
    """Return the stack of a kernel: its module if `module` is not empty, functions and named scopes outermost first
    (`no scope` without any), and the kernel itself. `kernel`: None if the HLO is not known."""
    from jaxprof.analysis.kernels.ranking import scopes_of

    scopes = scopes_of(kernel.path)[:_DEEPEST] if kernel is not None else ()
    source = kernel.source if kernel is not None else None
    own = StackFrame(name, source.file, source.line) if source is not None else StackFrame(name)
    return (*([StackFrame(module)] if module else []), *map(StackFrame, scopes or (NO_SCOPE,)), own)


def line_stacks(program: ProgramResult) -> list[WeightedStack]:
    """Return the lines of a recorded program with the main thread's states, estimated from samples. A line is below the
    loops and lines that led to it, as far as they were recorded. The rest of the wall time has stacks of its own."""
    stacks: list[WeightedStack] = []
    for spot in program.spots:
        if spot.seconds <= 0:
            continue
        # The loops around the spot, outermost first, each with the line from which the inner code was called; then its
        # function (unless its innermost loop is in that function), its line, and its state.
        frames: list[StackFrame] = []
        here, around = spot.location, spot.sites[::-1]
        for outer, site, inner in zip((None, *around), around, (*around[1:], None), strict=False):
            function = (site.file, site.function)
            if outer is None or (outer.file, outer.function) != function:
                frames.append(_function(*function))
            frames.append(StackFrame(f"loop at line {site.loop_line}", site.file, site.loop_line))
            calls = site.line != here.line or site.file != here.file
            if inner:
                calls = (inner.file, inner.function) != function
            if calls:
                frames.append(StackFrame(f"line {site.line} {site.call}".rstrip(), site.file, site.line))
        innermost = spot.sites[0] if spot.sites else None
        if innermost is None or (innermost.file, innermost.function) != (here.file, here.function):
            frames.append(_function(here.file, here.function))
        line = f"line {here.line} {spot.call}".rstrip() if here.line else spot.call or "line not known"
        frames += [StackFrame(line, here.file, here.line), StackFrame(_state(spot.state), here.file, here.line)]
        stacks.append(WeightedStack(tuple(frames), spot.seconds, 1))
    at_lines = totals((spot.state, spot.seconds) for spot in program.spots)
    for share in program.timeline:
        left = share.seconds - at_lines.get(share.state, 0.0)
        # Less is the rounding of the sums.
        if left > 1e-9:
            stacks.append(WeightedStack((StackFrame(NO_LINE), StackFrame(_state(share.state))), left, 0))
    return stacks


def _function(file: str, function: str) -> StackFrame:
    return StackFrame(f"{function} ({_short(file)})" if function else _short(file), file)


def _short(file: str) -> str:
    return file.rpartition("/")[2]


def _state(state: str) -> str:
    return f"[{state.replace('_', ' ')}]"


@dataclass(slots=True, eq=False)
class FlameFrame:
    at: StackFrame
    above: FlameFrame | None = None
    """The frame that this one is directly inside; None for the root."""
    own: int = 0
    """Amount that is in no frame inside this one."""
    count: int = 0
    """Number of times that the stacks ending here were entered; 0 if unknown."""
    total: int = 0
    inside: list[FlameFrame] = field(default_factory=list)
    """Frames directly inside this one, largest first."""


ALL = "all"
PICOSECONDS = 10**12
"""Ticks per second; trace clocks are no finer."""
BASES = {
    "measured": "measured self time",
    "sampled": "estimate from samples",
    "least": "estimate: the least time, a lower bound",
    "bytes": "estimate: bytes moved",
}
"""Quantities that amounts can be, each with its text. Lines of a program are `sampled`, kernels have the others."""


@frozen
class FlameGraph:
    """All frames, and the meaning of their amounts."""

    frames: Sequence[FlameFrame]
    """Frames, each after the frame that it is inside; the root is the first."""
    basis: str
    """One of `BASES`."""
    unknown: int = 0
    """Number of kernels that are in no frame because their amount is unknown."""

    @property
    def root(self) -> FlameFrame:
        return self.frames[0]

    def nested(self) -> Iterator[tuple[FlameFrame, int]]:
        """Yield the frames with an amount and their depths: parents before children, larger frames first."""
        pending = [(self.root, 0)]
        while pending:
            frame, depth = pending.pop()
            yield frame, depth
            pending += [(inner, depth + 1) for inner in reversed(frame.inside) if inner.total]

    @property
    def title(self) -> str:
        """Title of the graph, such as `kernels by named scope · measured self time`."""
        what = "lines of the program" if self.basis == "sampled" else "kernels by named scope"
        return f"{what} · {BASES[self.basis]}"

    @property
    def missing(self) -> str:
        """Sentence on the kernels that the graph does not contain; empty if it contains all."""
        if not self.unknown:
            return ""
        what = "bytes are" if self.basis == "bytes" else "time is"
        if self.unknown == 1:
            return f"1 kernel is missing because its {what} unknown."
        return f"{self.unknown} kernels are missing because their {what} unknown."


def stacks_flame(stacks: Iterable[WeightedStack], basis: str, unknown: int = 0) -> FlameGraph:
    """Build the graph of stacks; stacks that begin alike share their frames."""
    scale = 1 if basis == "bytes" else PICOSECONDS
    frames = [FlameFrame(StackFrame(ALL))]
    known: dict[tuple[int, StackFrame], FlameFrame] = {}
    for stack in stacks:
        frame = frames[0]
        for at in stack.frames:
            inner = known.get((id(frame), at))
            if inner is None:
                inner = known[id(frame), at] = FlameFrame(at, frame)
                frame.inside.append(inner)
                frames.append(inner)
            frame = inner
        frame.own += round(stack.amount * scale)
        frame.count += stack.count
    for frame in reversed(frames):
        frame.total += frame.own
        frame.inside.sort(key=lambda inner: inner.total, reverse=True)
        if frame.above is not None:
            frame.above.total += frame.total
    return FlameGraph(frames, basis, unknown)


def program_flame(program: ProgramResult) -> FlameGraph:
    """Return the wall time of a program by the lines of its source."""
    return stacks_flame(line_stacks(program), "sampled")


def kernel_flame(session: Session, run: Run) -> FlameGraph | None:
    """Return the kernels of a run, or of all programs of a whole profile, under their scopes; without a capture, with
    the weights that their shares are computed from. None if nothing is known. May read HLO, so call it in a thread."""
    from jaxprof.analysis.timeline.profile import is_whole, programs_of

    parts = [run, *programs_of(session, run)] if is_whole(run) else [run]
    captured: list[WeightedStack] = []
    for part in parts:
        of_run = measure_kernels(session, part.id)
        if of_run is None:
            continue
        captured += [
            WeightedStack(kernel_frames(row.module, row.name, row.kernel), row.self_seconds, row.count)
            for row in of_run.kernels
            if row.self_seconds > 0
        ]
        captured += [
            WeightedStack((StackFrame(NO_OP), StackFrame(device)), took, 0)
            for device, took in of_run.unattributed_seconds.items()
            if took > 0
        ]
    if captured:
        return stacks_flame(captured, "measured")
    from jaxprof.analysis.kernels.ranking import Ranking
    from jaxprof.analysis.runs.ceilings import ceilings_for, machine_of_run

    kernels = kernels_of(session, run.id)
    if not kernels:
        return None
    ranking = Ranking(kernels, machine_of_run(run, ceilings_for(session, run)))
    weights = ranking.column("weight")
    stacks = (
        WeightedStack(kernel_frames("", kernel.name, kernel), weight, kernel.count or 0)
        for kernel, weight in zip(ranking.kernels, weights, strict=True)
        if weight > 0
    )
    return stacks_flame(stacks, ranking.basis, sum(map(math.isnan, weights)))
