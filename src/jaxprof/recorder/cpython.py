"""What the recorder reads of CPython's inside: bytecode, locals of running functions, events for one code object.

CPython may change these with each minor version, without a word to those who rely on them. So whatever depends on the
version stands here, and only versions whose inside the tests know are read. In a newer one the recorder knows less: it
sees no loop, times no line, reads no counter, and does not know which operation a frame is in. What follows from that
is then unknown, and nothing fails.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

_OLDEST, _NEWEST = (3, 11), (3, 13)
_VERSION = sys.version_info[:2]
IS_KNOWN = sys.implementation.name == "cpython" and _OLDEST <= _VERSION <= _NEWEST
HAS_MONITORING = IS_KNOWN and _VERSION >= (3, 12)
"""Whether `sys.monitoring` is there, which has events for one code object, and these are known."""
HANDLERS_LAST = _VERSION >= (3, 12)
"""Whether the compiler puts the handlers of exceptions behind everything else."""
READS_ANYWHERE = HAS_MONITORING and bool(getattr(sys, "_is_gil_enabled", lambda: True)())
"""Whether a thread other than the frame's may read a local: a single call into Python reads it, under the lock."""


def instructions(code: CodeType) -> Iterator[dis.Instruction]:
    """Yield the instructions of a code object; none if the inside of this Python is unknown."""
    return iter(dis.get_instructions(code)) if IS_KNOWN else iter(())


def operation_at(code: CodeType, offset: int) -> tuple[int, str]:
    """Return where the instruction at `offset` (`frame.f_lasti`) begins, and its opcode; empty if that is unknown."""
    bytecode = code.co_code
    at = min(max(offset, 0), max(len(bytecode) - 2, 0))
    if not IS_KNOWN or not bytecode:
        return at, ""
    while at > 0 and bytecode[at] == 0:  # the caches after an instruction belong to it
        at -= 2
    return at, dis.opname[bytecode[at]]


def module_at(code: CodeType, offset: int) -> str:
    """Return the module that the instruction at `offset` imports; empty if it does not, or if that is unknown."""
    at, operation = operation_at(code, offset)
    if operation != "IMPORT_NAME":
        return ""
    return next((str(each.argval) for each in instructions(code) if each.offset == at), "")


def monitoring() -> Any:
    """Return `sys.monitoring`; for a Python that has it."""
    return sys.monitoring  # type: ignore[attr-defined,unused-ignore]


def local_reader() -> Callable[[FrameType, str], Any] | None:
    """Return what reads a function's local variable in a frame; None if this Python lets nobody do that."""
    if not IS_KNOWN:
        return None
    if sys.version_info >= (3, 13):
        return lambda frame, name: frame.f_locals.get(name)
    try:
        import ctypes

        get = ctypes.pythonapi.PyFrame_GetVarString
    except (ImportError, AttributeError, OSError):  # before 3.12
        return None
    get.argtypes, get.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.py_object
    return lambda frame, name: get(frame, name.encode())


def tracing_functions() -> tuple[Callable[[], Any], Callable[[Any], object], Callable[[Any], object]]:
    """Return three functions of CPython's public interface: one gets the state of this thread, the others tell tools to
    leave it out, and no longer to. They do nothing in another Python."""
    try:
        import ctypes

        state = ctypes.pythonapi.PyThreadState_Get
        enter, leave = ctypes.pythonapi.PyThreadState_EnterTracing, ctypes.pythonapi.PyThreadState_LeaveTracing
    except (ImportError, AttributeError, OSError):
        return lambda: None, lambda _: None, lambda _: None
    state.argtypes, state.restype = [], ctypes.c_void_p
    enter.argtypes = leave.argtypes = [ctypes.c_void_p]
    enter.restype = leave.restype = None
    return state, enter, leave
