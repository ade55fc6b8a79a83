"""The loops of a code object, from its bytecode: which one an instruction is in, and the line that stands for it."""

from __future__ import annotations

import dis
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Final

_LARGEST_CODE_BYTES: Final = 60_000
"""Taking a larger function apart would hold the interpreter's lock for too long."""


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop of a code object: its instructions from `begins` (where every jump back goes) to `ends`."""

    code: CodeType
    begins: int
    ends: int
    line: int

    @property
    def place(self) -> dict[str, object]:
        """file, line, function."""
        return {"file": self.code.co_filename, "line": self.line, "function": self.code.co_name}


@lru_cache(maxsize=512)
def loops_of(code: CodeType) -> tuple[Loop, ...]:
    """The loops of a code object, inner ones before those around them."""
    if len(code.co_code) > _LARGEST_CODE_BYTES:
        return ()
    ends: dict[int, int] = {}
    lines: dict[int, int] = {}
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        if instruction.positions is not None and instruction.positions.lineno is not None:
            line = instruction.positions.lineno
        lines[instruction.offset] = line
        if "JUMP" in instruction.opname and isinstance(instruction.argval, int):
            target = instruction.argval
            if target < instruction.offset and _is_loop(instruction.opname):
                ends[target] = max(ends.get(target, 0), instruction.offset)
    found = [Loop(code, begins, end, lines.get(begins, line)) for begins, end in ends.items()]
    return tuple(sorted(found, key=lambda loop: loop.ends - loop.begins))


def _is_loop(operation: str) -> bool:
    # `await` and `yield from` go back to their SEND without being a loop of the user's.
    return not operation.endswith("NO_INTERRUPT")


def loop_at(code: CodeType, offset: int) -> Loop | None:
    """The innermost loop around an instruction; None outside any."""
    for loop in loops_of(code):
        if loop.begins <= offset <= loop.ends:
            return loop
    return None
