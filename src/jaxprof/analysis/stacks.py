"""Where time went as stacks with a weight, outermost frame first: kernels under their program and scopes, the passes of
a compile, the lines of a recorded program. Icicles, speedscope and pprof are made of them.

Kernels of a run without a capture are weighed with the least time that they could take, which is a bound; `measured`
says which it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxprof.analysis.measured import kernels_of, measured
from jaxprof.events import PassTimes

if TYPE_CHECKING:
    from jaxprof.analysis.programs.derive import ProgramResult
    from jaxprof.hlo.analysis.kernel import Kernel
    from jaxprof.session import Run, Session


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


def run_stacks(session: Session, run: Run) -> list[WeightedStack]:
    """The lines of a recorded program; of any other run its kernels."""
    from jaxprof.analysis.programs.derive import is_program, program_result

    return line_stacks(program_result(session, run.id)) if is_program(run) else kernel_stacks(session, run)


def kernel_stacks(session: Session, run: Run) -> list[WeightedStack]:
    """The kernels of a run under their program and named scopes, with the self time of all executions in its capture;
    without a capture, with their least time in one call; empty if neither is known."""
    kernels = kernels_of(session, run.id) if "hlo" in run.texts else None
    by_name = {kernel.name: kernel for kernel in kernels or ()}
    of_run = measured(session, run.id)
    if of_run is not None and of_run.kernels:
        return [
            WeightedStack(_frames(row.module, row.name, by_name.get(row.name)), row.self_seconds, row.count)
            for row in of_run.kernels
            if row.self_seconds > 0
        ]
    if not kernels:
        return []
    from jaxprof.analysis.ceilings import ceilings_for, machine_of_run
    from jaxprof.analysis.ranking import KernelCeilings

    ceilings = KernelCeilings(machine_of_run(run, ceilings_for(session, run)))
    rows = (ceilings.row(number, kernel) for number, kernel in enumerate(kernels))
    return [
        WeightedStack(_frames("", row.kernel.name, row.kernel), least, int(row.kernel.count or 0), measured=False)
        for row in rows
        if (least := row.least_seconds)
    ]


def _frames(module: str, name: str, kernel: Kernel | None) -> tuple[StackFrame, ...]:
    from jaxprof.analysis.ranking import scopes_of

    scopes = scopes_of(kernel.path) if kernel is not None else ()
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
    """The lines of a recorded program under their functions, with the state that the main thread was in; an estimate
    from samples of the innermost line in the user's code, so no line stands under its caller."""
    return [
        WeightedStack(
            (
                StackFrame(line.place.function or line.place.file, line.place.file, line.place.line),
                StackFrame(f"{line.call or line.state} [{line.state}]" if line.call else f"[{line.state}]",
                           line.place.file, line.place.line),
            ),
            line.seconds,
            1,
        )
        for line in program.lines
        if line.seconds > 0
    ]  # fmt: skip


@dataclass(slots=True)
class StackNode:
    """A frame in a tree of stacks that begin alike."""

    name: str
    depth: int
    seconds: float = 0.0
    """Of the frame and all frames inside it."""
    count: int = 0
    """Of the stacks that end here."""


def stack_tree(stacks: Sequence[WeightedStack]) -> list[StackNode]:
    """The stacks as one tree: a parent before its children, and the child with the most time first."""
    root = _Branch(StackNode("", -1))
    for stack in stacks:
        branch = root
        branch.node.seconds += stack.seconds
        for depth, frame in enumerate(stack.frames):
            inside = branch.inside.get(frame.name)
            if inside is None:
                inside = branch.inside[frame.name] = _Branch(StackNode(frame.name, depth))
            branch = inside
            branch.node.seconds += stack.seconds
        branch.node.count += stack.count
    return list(_in_order(root))[1:]


class _Branch:
    def __init__(self, node: StackNode) -> None:
        self.node = node
        self.inside: dict[str, _Branch] = {}


def _in_order(root: _Branch) -> Iterator[StackNode]:
    pending = [root]
    while pending:
        branch = pending.pop()
        yield branch.node
        pending += sorted(branch.inside.values(), key=lambda inside: inside.node.seconds)
