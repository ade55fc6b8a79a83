"""Where time went as stacks with a weight, outermost frame first: kernels under their program and scopes, the passes of
a compile, the lines of a recorded program under their loops. Flame graphs, speedscope and pprof are made of them.

Kernels of a run without a capture are weighed with the least time that they could take, which is a bound; `measured`
says which it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jaxprof.analysis.measured import kernels_of, measured
from jaxprof.events import PassTimes

if TYPE_CHECKING:
    from jaxprof.analysis.programs.derive import ProgramResult
    from jaxprof.analysis.programs.spots import Spot
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
