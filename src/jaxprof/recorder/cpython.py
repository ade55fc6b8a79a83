"""What the recorder reads of CPython's inside: bytecode, locals of running functions, events for one code object.

CPython may change these with each minor version, without a word to those who rely on them. So whatever depends on the
version stands here, and only versions whose inside the tests know are read. In a newer one the recorder knows less: it
sees no loop, times no line, reads no counter, and does not know which operation a frame is in. What follows from that
is then unknown, and nothing fails.
"""

from __future__ import annotations

import dis
import inspect
import os
import struct
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

from jaxprof.base.system_wait import ProcessMemory

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
    return sys.monitoring  # type: ignore[attr-defined,unused-ignore]


def local_reader() -> Callable[[FrameType, str], Any] | None:
    """Return a reader of local variables in a function's frame; None if this Python does not offer that."""
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


_FRAME_WORDS, _CODE_WORDS, _STATE_WORDS = 12, 32, 64
_HEAD_WORDS = 9
"""Words of a frame before its variables, in each known version; a variable is a word."""
_MOST_VARIABLES = 32
_OBJECT_BYTES = 24
"""What is read of an object behind its reference count: a number's value, a dict's version, and no neighbour."""


def frame_content(frame: FrameType) -> bytes:
    """Return the memory of a frame's variables, which another thread may run, and of what they are, without reference
    counts: equal while that thread is in one call there. Empty if it cannot be read. Nothing of it is touched.

    A loop changes a variable; at the top of a module, the dict that has them.
    """
    memory, code = ProcessMemory(os.getpid()), frame.f_code
    for address in memory.words(id(frame), _FRAME_WORDS):  # one of them is where the interpreter keeps it
        if id(code) in memory.words(address, _HEAD_WORDS):
            count = len(code.co_varnames) + len(code.co_cellvars) + len(code.co_freevars)
            words = memory.words(address, _HEAD_WORDS + min(count, _MOST_VARIABLES))[_HEAD_WORDS:]
            objects = words if code.co_flags & inspect.CO_OPTIMIZED else (id(frame.f_globals), *words)
            return struct.pack(f"{len(words)}Q", *words) + b"".join(
                memory.read(each + 8, _OBJECT_BYTES) for each in objects
            )
    return b""


def frame_layout(thread_state: int) -> dict[str, int]:
    """Return where this Python keeps the frames of the thread that calls: the address of its state, and offsets in it,
    in a frame, in a code object, in a text. With them another process reads the stack of one that is stopped.

    They are found by what is known to stand there, and not by the version; empty if any of it is not found.
    """
    try:
        return _search_from_known_frame(thread_state) if IS_KNOWN else {}
    except (struct.error, IndexError, ValueError):  # less of the memory could be read than a frame or an object has
        return {}


def _search_from_known_frame(thread_state: int) -> dict[str, int]:
    """Call the search so that two frames around it are known, this one and that of `frame_layout`: the word in which
    both have their instruction is the one sought. What called `frame_layout` may be C, and what stands there then is a
    frame of the interpreter."""
    return _layout_here(thread_state)


def _layout_here(thread_state: int) -> dict[str, int]:
    """Search. The innermost frames at each reading are those of `ProcessMemory.read` and `words`, called from here."""
    memory = ProcessMemory(os.getpid())
    innermost, inner = ProcessMemory.read.__code__, ProcessMemory.words.__code__
    here, outer = sys._getframe(), sys._getframe(1)
    code, beyond = outer.f_code, outer.f_back
    for at, pointer in enumerate(memory.words(thread_state, _STATE_WORDS)):
        for hop in (-1, 0, 1, 2, 3):
            address = pointer if hop < 0 else (memory.words(pointer + 8 * hop, 1) or (0,))[0]
            frame = memory.words(address, _FRAME_WORDS)
            if id(innermost) not in frame or beyond is None:
                continue
            code_at = frame.index(id(innermost))
            for previous_at, previous in enumerate(frame):
                caller = memory.words(previous, _FRAME_WORDS)
                if len(caller) <= max(code_at, previous_at) or caller[code_at] != id(inner):
                    continue
                own = memory.words(caller[previous_at], _FRAME_WORDS)
                if len(own) < _FRAME_WORDS or own[code_at] != id(here.f_code):
                    continue
                callers = memory.words(own[previous_at], _FRAME_WORDS)
                further = memory.words(callers[previous_at], _FRAME_WORDS)
                both = [
                    (index, value - id(code) - outer.f_lasti)
                    for index, (value, other) in enumerate(zip(callers, further, strict=True))
                    if value - id(code) - outer.f_lasti == other - id(beyond.f_code) - beyond.f_lasti > 0
                ]
                words, raw = memory.words(id(code), _CODE_WORDS), memory.read(id(code), 8 * _CODE_WORDS)
                numbers = struct.unpack(f"{len(raw) // 4}i", raw)
                raw = memory.read(id(beyond.f_code), 8 * _CODE_WORDS)
                firsts = list(zip(numbers, struct.unpack(f"{len(raw) // 4}i", raw), strict=False))
                first_lines = code.co_firstlineno, beyond.f_code.co_firstlineno
                known = [id(type(code)), id(code.co_filename), id(code.co_name), id(code.co_linetable)]
                text_at = memory.read(id(code.co_filename), 128).find(code.co_filename.encode()[:40])
                if not both or text_at < 0 or not set(known) <= set(words) or first_lines not in firsts:
                    return {}
                type_at, file_at, name_at, table_at = map(words.index, known)
                return {
                    "thread_state": thread_state, "frame_at": at, "hop": hop, "code_at": code_at,
                    "previous_at": previous_at, "instruction_at": both[0][0], "bytecode_at": both[0][1],
                    "type_at": type_at, "code_type": id(type(code)), "file_at": file_at,
                    "name_at": name_at, "table_at": table_at,
                    "first_line_at": firsts.index(first_lines), "text_at": text_at,
                }  # fmt: skip
    return {}
