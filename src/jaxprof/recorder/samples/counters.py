"""Finds the local variables that may count the passes of a loop, and reads one of them in a running frame.

`frame.f_locals` is not used where it makes a copy of all locals (up to Python 3.12): the copy would keep the program's
arrays alive, and changes the dict that an earlier `locals()` of the program's gave it. Python 3.13 has a view instead,
3.12 has `PyFrame_GetVarString`, 3.11 has nothing. Values are taken if they are exactly `int`: no code of the program's
is called.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from types import FrameType
from typing import Any, Final

from jaxprof.recorder.guest import is_of_the_program
from jaxprof.recorder.samples.loops import Loop, loops_of

_MOST_COUNTERS: Final = 16
_OPTIMIZED: Final = 0x1
"""Of `co_flags`: the code of a function, whose locals have places and no dict."""
_BETWEEN: Final = ("UNPACK_SEQUENCE", "UNPACK_EX", "EXTENDED_ARG", "NOP", "CACHE", "COPY", "SWAP")
_LARGEST: Final = 1 << 52


@dataclass(frozen=True, slots=True)
class LoopCounter:
    """A variable that the body of a loop stores."""

    name: str
    offset: int
    """Of the instruction that stores it first in a pass."""
    target: bool = False
    """Whether the head of a `for` stores it, and so each pass."""
    is_global: bool = False


@lru_cache(maxsize=64)
def counters_of(loop: Loop) -> tuple[LoopCounter, ...]:
    """The variables that may count the passes of a loop, those that are believed first come first. The order rests on
    the code alone, so that all processes of a job choose the same one.

    In a loop within a loop, the targets of `for` come last: they begin again with each pass of the outer one.
    """
    code = loop.code
    inner = [other for other in loops_of(code) if loop.begins < other.begins and other.ends <= loop.ends]
    nested = any(other.begins < loop.begins and loop.ends <= other.ends for other in loops_of(code))
    found: dict[str, LoopCounter] = {}
    head = False
    for instruction in dis.get_instructions(code):
        at, operation = instruction.offset, instruction.opname
        if at < loop.begins or at > loop.ends or any(other.begins <= at <= other.ends for other in inner):
            continue
        if operation.startswith("STORE_") and (names := _stored(operation, instruction.argval)):
            for name in names:
                is_global = operation == "STORE_GLOBAL"
                found.setdefault(name, LoopCounter(name, at, head, is_global))
            head = head and "LOAD" not in operation
        elif at == loop.begins and operation.startswith("FOR_ITER"):
            head = True
        elif operation not in _BETWEEN:
            head = False
    chosen = sorted(found.values(), key=lambda counter: (counter.target == nested, counter.offset))
    return tuple(chosen[:_MOST_COUNTERS])


def _stored(operation: str, argument: object) -> tuple[str, ...]:
    """The names that an instruction stores."""
    if operation in ("STORE_NAME", "STORE_GLOBAL", "STORE_DEREF") or operation.startswith("STORE_FAST"):
        names = argument if isinstance(argument, tuple) else (argument,)
        if operation == "STORE_FAST_LOAD_FAST":
            names = names[:1]
        return tuple(name for name in names if isinstance(name, str))
    return ()


def read_counter(frame: FrameType, counter: LoopCounter) -> int | None:
    """The counter's value in a frame; None if it has none, or one that is no plain integer. Raises nothing.

    Where `READS_ANYWHERE` is false, only the thread that runs the frame may call it.
    """
    try:
        code = frame.f_code
        if counter.is_global:
            value = frame.f_globals.get(counter.name)
        elif code.co_flags & _OPTIMIZED:
            value = None if _read_local is None else _read_local(frame, counter.name)
        else:  # of a module: the namespace itself
            names = frame.f_locals
            value = names.get(counter.name) if type(names) is dict else None
    except Exception as error:  # unbound, or an old frame: the program comes first
        if is_of_the_program(error):
            raise
        return None
    return value if type(value) is int and -_LARGEST < value < _LARGEST else None


_Reads = Callable[[FrameType, str], Any]

READS_ANYWHERE: Final = sys.version_info >= (3, 12) and bool(getattr(sys, "_is_gil_enabled", lambda: True)())
"""Whether another thread than the frame's may read a counter: one call into Python reads it, under the lock."""


def _reader() -> _Reads | None:
    """How a function's local variable is read in this Python; None if it cannot be."""
    if sys.version_info >= (3, 13):
        return lambda frame, name: frame.f_locals[name]
    try:
        import ctypes

        get = ctypes.pythonapi.PyFrame_GetVarString
    except (ImportError, AttributeError, OSError):  # before 3.12
        return None
    get.argtypes, get.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.py_object
    return lambda frame, name: get(frame, name.encode())


_read_local: Final = _reader()
