"""The watched thread's stack at one moment, as code objects and offsets; it keeps none of the user's frames."""

from __future__ import annotations

import gc
import sys
from itertools import chain
from types import CodeType, FrameType
from typing import Any

from jaxprof.base.values import dataclass, field
from jaxprof.recorder.frame_owner import JAX, OWN, STDLIB, USER, frame_kind
from jaxprof.recorder.samples.call_text import CallSpot, look_up, spot_of

DEEPEST = 300
"""Number of frames read, from the innermost one, so that deep recursion does not make a sample expensive."""
_LEAVES_ADDED = 64
_NOT_A_CALLER = (JAX, STDLIB, OWN)


@dataclass(slots=True)
class SampledFrame:
    """A frame's code object, the offset of its instruction, whose code it is, and its globals."""

    code: CodeType
    offset: int
    kind: str
    globals: dict[str, Any]

    @property
    def spot(self) -> CallSpot:
        return spot_of(self.code, self.offset)

    @property
    def callee(self) -> Any:
        """What the instruction calls; None if that is unknown without running code, or if it calls nothing."""
        return look_up(self.spot.callee, self.code, self.globals) if self.spot.is_call else None


@dataclass(slots=True)
class Stack:
    """The frames of a stack, innermost first, and what is known of the array that is being read or copied there."""

    read: list[tuple[CodeType, int, str, dict[str, Any]]] = field(default_factory=list)
    """The fields of each `SampledFrame`, innermost first: a sample whose `key` is known needs no more than these."""
    _frames: list[SampledFrame] = field(default_factory=list)
    ready: bool | None = None
    """Whether the array that is being read was ready; None if none is being read."""
    array_bytes: int | None = None
    put_bytes: int | None = None
    """Bytes of the value that is being put on a device; 0 for a Python number."""
    fetched_bytes: int | None = None
    """Bytes of all arrays passed to `jax.device_get`, as far as they are in plain dicts, lists and tuples."""

    @property
    def key(self) -> tuple[int, ...]:
        """Equal for stacks at the same instructions, as long as their code objects live."""
        return (*[id(frame[0]) for frame in self.read], *[frame[1] for frame in self.read])

    @property
    def frames(self) -> list[SampledFrame]:
        if not self._frames:
            self._frames = [SampledFrame(*frame) for frame in self.read]
        return self._frames

    @property
    def called_by_user(self) -> list[SampledFrame]:
        """The frames that are called by the user's innermost one; all of them, if the user has none."""
        user = next((at for at, frame in enumerate(self.frames) if frame.kind == USER), None)
        return self.frames[:user]

    @property
    def caller(self) -> int:
        """Index of the frame whose instruction is running: the first one outside JAX if the innermost frames are JAX's,
        otherwise the innermost one outside the standard library; -1 if there is none."""
        jax = next((at for at, frame in enumerate(self.called_by_user) if frame.kind == JAX), 0)
        return next((at for at in range(jax, len(self.frames)) if self.frames[at].kind not in _NOT_A_CALLER), -1)

    @property
    def user(self) -> int:
        """Index of the user's innermost frame, otherwise of a library's innermost one; -1 if there is neither."""
        users = (at for at, frame in enumerate(self.frames) if frame.kind == USER)
        others = (at for at, frame in enumerate(self.frames) if frame.kind not in _NOT_A_CALLER)
        return next(chain(users, others), -1)

    @property
    def jax_functions(self) -> list[str]:
        """Names of JAX's frames above the caller, innermost first."""
        above = self.frames[: self.caller] if self.caller >= 0 else self.frames
        return [frame.code.co_name for frame in above if frame.kind == JAX]


def read_thread(thread: int) -> tuple[FrameType | None, Stack]:
    """Return the innermost frame of another thread, and its stack. No collection may begin here: its callbacks may let
    that thread run on, and the frames above are gone then."""
    frame = sys._current_frames().get(thread)
    return frame, read_stack(frame)


def read_stack(frame: FrameType | None) -> Stack:
    """Return the stack from `frame` outwards. Reads locals in JAX's own frames only, for the array being read."""
    stack = Stack()
    collecting = [getattr(callback, "__code__", None) for callback in gc.callbacks]
    called_by_user = True
    while frame is not None and len(stack.read) < DEEPEST:
        code = frame.f_code
        if code not in collecting:  # JAX's own callback, which runs wherever Python collects garbage
            kind = frame_kind(frame)
            called_by_user = called_by_user and kind != USER
            if kind == JAX and called_by_user:
                name = frame.f_code.co_name
                if name in {"_value", "__array__", "block_until_ready"} and stack.ready is None:
                    _read_array(stack, frame)
                if ("device_put" in name or name in ("array", "asarray")) and stack.put_bytes is None:
                    stack.put_bytes = _transfer_bytes(frame)
                if name == "device_get":
                    stack.fetched_bytes = _tree_bytes(frame)
            stack.read.append((code, frame.f_lasti, kind, frame.f_globals))
        frame = frame.f_back
    return stack


def _read_array(stack: Stack, frame: FrameType) -> None:
    if frame.f_code.co_varnames[:1] != ("self",):
        return
    array: Any = frame.f_locals.get("self")
    try:
        stack.ready, stack.array_bytes = bool(array.is_ready()), int(array.nbytes)
    except (AttributeError, RuntimeError, TypeError, ValueError):  # not an array, or deleted meanwhile
        return


def _tree_bytes(frame: FrameType) -> int | None:
    """Return the bytes of the arrays in a frame's first argument. Trees of other classes are left out, because taking
    them apart would run their code."""
    name = next(iter(frame.f_code.co_varnames[:1]), "")
    waiting: list[Any] = [frame.f_locals.get(name)]
    size = seen = 0
    while waiting and seen < _LEAVES_ADDED:
        node = waiting.pop()
        seen += 1
        if type(node) is dict:
            waiting += list(node.values())[:_LEAVES_ADDED]
        elif type(node) in (list, tuple):
            waiting += list(node)[:_LEAVES_ADDED]
        elif type(node).__module__.partition(".")[0] == "jaxlib":
            size += _size(node)
    return size or None


def _transfer_bytes(frame: FrameType) -> int | None:
    value = frame.f_locals.get(next(iter(frame.f_code.co_varnames[:1]), ""))
    copies: Any = frame.f_locals.get("xs")  # of `batched_device_put`, whose first argument is their type
    if type(copies) in (list, tuple) and len(copies) <= _LEAVES_ADDED:
        sizes = [_bytes_put(copy) for copy in copies]
        return sum(size for size in sizes if size is not None) if None not in sizes else None
    return _bytes_put(value)


def _bytes_put(value: Any) -> int | None:
    if issubclass(type(value), (bool, int, float, complex)):  # `isinstance` would ask the object
        return 0
    return _size(value) or None if type(value).__module__.partition(".")[0] in ("numpy", "jax", "jaxlib") else None


def _size(array: Any) -> int:
    try:
        return int(array.nbytes)
    except (AttributeError, RuntimeError, TypeError, ValueError):  # not an array, or deleted meanwhile
        return 0
