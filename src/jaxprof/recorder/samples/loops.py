"""The loops of a code object, from its bytecode: which loops contain an instruction, and the loops' lines."""

from __future__ import annotations

from dis import Instruction
from functools import lru_cache
from types import CodeType

from jaxprof.base.values import frozen
from jaxprof.events import SourceLocation
from jaxprof.recorder.cpython import HANDLERS_LAST, instructions

_LARGEST_CODE_BYTES = 60_000
"""Analysing a larger function would hold the interpreter's lock for too long."""


@frozen
class Loop:
    """One loop of a code object: its instructions from `begins` (the first target of its backward jumps) to `ends`."""

    code: CodeType
    begins: int
    ends: int
    line: int
    last_line: int
    """First line and last line of the loop's head and body, as far as they have instructions."""
    targets: frozenset[int]
    """Where its iterations begin. In a `while`, those after a `continue` begin at another instruction than the rest."""

    @property
    def key(self) -> tuple[int, int]:
        """Identifies the loop as long as its code object lives."""
        return id(self.code), self.begins

    @property
    def location(self) -> SourceLocation:
        return SourceLocation(self.code.co_filename, self.line, self.code.co_name)


def loops_of(code: CodeType) -> tuple[Loop, ...]:
    """Return the loops of a code object, inner ones first. Leaves out those of comprehensions, which from Python 3.12
    on are in the code of the enclosing function, and those that only an exception repeats."""
    # Python has one event for one code object, and two are equal that the same source made: a cell that is run again.
    return _loops_of(id(code), code)


@lru_cache(maxsize=512)
def _loops_of(_identity: int, code: CodeType) -> tuple[Loop, ...]:
    if len(code.co_code) > _LARGEST_CODE_BYTES:
        return ()
    ends: dict[int, int] = {}
    collecting: list[int] = []
    lines: dict[int, int] = {}
    line = code.co_firstlineno
    handlers = _Handlers()
    for instruction in instructions(code):
        handlers.take(instruction)
        if instruction.positions is not None and instruction.positions.lineno is not None:
            line = instruction.positions.lineno
        lines[instruction.offset] = line
        # A comprehension adds an item by these; with the argument 1 they build a display, `[*rows, row]`.
        if instruction.opname in ("LIST_APPEND", "SET_ADD", "MAP_ADD") and (instruction.arg or 0) > 1:
            collecting.append(instruction.offset)
        if "JUMP" in instruction.opname and isinstance(instruction.argval, int):
            target = instruction.argval
            # `await` and `yield from` jump back to their SEND, which is no loop in the user's source
            loops_back = target < instruction.offset and not instruction.opname.endswith("NO_INTERRUPT")
            if loops_back and not handlers.leaves_handler(target):
                ends[target] = max(ends.get(target, 0), instruction.offset)
    # From the target of jumps to the last of these jumps: two such ranges that overlap, without one of them being
    # inside the other, are of the same loop, which has several targets.
    ranges: list[tuple[list[int], int]] = []
    for target, end in sorted(ends.items()):
        same = next((at for at, (_, ended) in enumerate(ranges) if target <= ended < end), None)
        ranges.append(([*(ranges.pop(same)[0] if same is not None else ()), target], end))
    loops = []
    for targets, end in ranges:
        begins = min(targets)
        # the condition of a `while` comes after the body in the bytecode, and before it in the source
        inside = [number for offset, number in lines.items() if begins <= offset <= end]
        loops.append(Loop(code, begins, end, min(inside), max(inside), frozenset(targets)))
    loops.sort(key=lambda loop: loop.ends - loop.begins)
    expressions = [next((loop for loop in loops if loop.begins <= at <= loop.ends), None) for at in collecting]
    return tuple(loop for loop in loops if loop not in expressions)


class _Handlers:
    """The exception handlers around the instructions of a code object, which are taken one after another.

    From Python 3.12 on the compiler puts handlers behind everything else, so that what leads from one to the code after
    its `try`, `with` or `await` jumps backwards, as a loop does. In 3.11 only `continue` and the end of a loop do.
    """

    def __init__(self) -> None:
        self._begins: list[int] = []
        """Offsets of the handlers that the last instruction is in, outermost first."""
        self._last: tuple[str, ...] = ("", "", "")

    def take(self, instruction: Instruction) -> None:
        self._last = (*self._last[1:], instruction.opname)
        if instruction.opname == "PUSH_EXC_INFO":
            self._begins.append(instruction.offset)
        elif self._begins and self._last == ("COPY", "POP_EXCEPT", "RERAISE"):  # the last three of each handler
            self._begins.pop()

    def leaves_handler(self, target: int) -> bool:
        """Return whether a jump from the last instruction to `target` leaves a handler."""
        inside = self._last[-2] == "CLEANUP_THROW" or (bool(self._begins) and target < self._begins[-1])
        return inside and HANDLERS_LAST


def loops_at(code: CodeType, offset: int) -> tuple[Loop, ...]:
    return tuple(loop for loop in loops_of(code) if loop.begins <= offset <= loop.ends)
