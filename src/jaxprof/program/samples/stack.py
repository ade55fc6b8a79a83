"""The stack of the watched thread at one moment, as code objects and offsets: no frame of the user's is kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, Final

from jaxprof.program.places import JAX, OWN, STDLIB, USER, frame_kind

DEEPEST: Final = 300
"""Frames looked at, from the innermost on: deep recursion must not make a sample expensive."""
_ARRAY_FRAMES: Final = frozenset({"_value", "__array__", "block_until_ready"})
_NOT_A_CALLER: Final = (JAX, STDLIB, OWN)


@dataclass(slots=True)
class Stack:
    """Innermost first: code objects, the offsets of their instructions, whose they are, their globals."""

    codes: list[CodeType] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    globals: list[dict[str, Any]] = field(default_factory=list)
    ready: bool | None = None
    """Whether the array that is being read was there already; None where none is being read."""
    array_bytes: int | None = None

    @property
    def key(self) -> tuple[int, ...]:
        """The same for stacks that are at the same instructions, for as long as their code objects live."""
        return (*map(id, self.codes), *self.offsets)

    @property
    def caller(self) -> int:
        """Index of the frame whose instruction is going on: the first outside JAX where the innermost frames are JAX's,
        otherwise the innermost outside the standard library; -1 where there is none."""
        kinds = self.kinds
        end = kinds.index(USER) if USER in kinds else len(kinds)
        at = kinds.index(JAX) if JAX in kinds[:end] else 0
        while at < len(kinds) and kinds[at] in _NOT_A_CALLER:
            at += 1
        return at if at < len(kinds) else -1

    @property
    def user(self) -> int:
        """Index of the user's innermost frame; else of a library's; -1 where there is neither."""
        if USER in self.kinds:
            return self.kinds.index(USER)
        return next((index for index, kind in enumerate(self.kinds) if kind not in _NOT_A_CALLER), -1)

    @property
    def jax_functions(self) -> list[str]:
        """Names of JAX's frames inside the caller, innermost first."""
        end = self.caller if self.caller >= 0 else len(self.kinds)
        return [self.codes[index].co_name for index in range(end) if self.kinds[index] == JAX]


def read_stack(frame: FrameType | None) -> Stack:
    """The stack at and above `frame`. Locals are read in JAX's own frames only, for the array that is being read."""
    stack = Stack()
    while frame is not None and len(stack.codes) < DEEPEST:
        code = frame.f_code
        kind = frame_kind(frame)
        if kind == JAX and code.co_name in _ARRAY_FRAMES and stack.ready is None and USER not in stack.kinds:
            _read_array(stack, frame)
        stack.codes.append(code)
        stack.offsets.append(frame.f_lasti)
        stack.kinds.append(kind)
        stack.globals.append(frame.f_globals)
        frame = frame.f_back
    return stack


def _read_array(stack: Stack, frame: FrameType) -> None:
    if frame.f_code.co_varnames[:1] != ("self",):
        return
    array: Any = frame.f_locals.get("self")
    try:
        stack.ready, stack.array_bytes = bool(array.is_ready()), int(array.nbytes)
    except (AttributeError, RuntimeError, TypeError, ValueError):  # not an array, or it was deleted meanwhile
        return
