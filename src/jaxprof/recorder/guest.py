"""Keeps the recorder out of the way of the program: invisible to its debuggers and profilers, and without its signals.

Nothing here sets a trace or profile function. Our code runs as if it were in a trace function already
(`PyThreadState_EnterTracing`, a public function of CPython since 3.11), so that no tool of the program is notified.
"""

from __future__ import annotations

import _thread
import functools
import gc
import itertools
import operator
import os
import signal
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any, ParamSpec, TypeVar

from jaxprof.recorder.cpython import tracing_functions
from jaxprof.recorder.frame_owner import OWN, file_kind

_FRAMES_LOOKED_AT = 200
_P = ParamSpec("_P")
_R = TypeVar("_R")

_state, _enter, _leave = tracing_functions()


def thread_state() -> int:
    """Return the address of the state of this thread; 0 if it is unknown."""
    return int(_state() or 0)


def unseen(function: Callable[_P, object]) -> Callable[_P, object]:
    """Return a callable for `function` that a tool of the program sees as little as a wrapper. It returns nothing of
    use, which the caller must drop: the thread is hidden from tools until then.

    A Python function would be seen itself. Here only C code runs until the thread is hidden: the call of a class gets
    `__init__` of the new object, which hides the thread, and dropping the object gets `__del__`, which ends that.
    """

    def listener(*args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            function(*args, **kwargs)
        except BaseException as error:  # the program's own: from its signal handler, or an interrupt
            # Only what lies below our innermost frame. A jump at the end of a loop has no line in Python 3.11, and JAX,
            # which filters each traceback that passes through it, fails with a TypeError at a frame interrupted there.
            step = below = error.__traceback__
            while step is not None:
                below = step.tb_next if file_kind(step.tb_frame.f_code.co_filename) == OWN else below
                step = step.tb_next
            error.__traceback__ = below
            raise

    return type("Unseen", (), {"__init__": _after(_enter, listener), "__del__": _after(_leave, int)})


def _after(switch: Callable[[Any], object], value: object) -> property:
    """Return an attribute with this value; to get it calls `switch` for the current thread before."""
    switched = map(switch, map(operator.call, itertools.repeat(_state)))
    values = map(operator.itemgetter(1), zip(switched, itertools.repeat(value), strict=False))
    return property(functools.partial(next, values))


def start_thread(run: Callable[[], object]) -> None:
    """Start a thread that `threading` does not know, that no tool is notified of, and that takes no signal. A signal
    that the program waits for, or that should end a system call of its main thread, would be lost in another thread."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        _thread.start_new_thread(unseen(run), ())
        return
    # A thread gets these signals for what it does itself.
    fault_signals = {
        getattr(signal, name)
        for name in ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP", "SIGSYS")
        if hasattr(signal, name)
    }
    former = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:  # a signal handler may raise in each of these calls
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - fault_signals)
        _thread.start_new_thread(unseen(run), ())
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


class CollectorElsewhere:
    """Keeps Python's collector out of a thread of ours: it would run the finalizers of the program's objects there, and
    a connection of SQLite, say, may only be closed in the thread that made it.

    A collection begins in the thread whose allocation exceeds a threshold, so the thresholds are out of reach while
    ours is awake. Whether the collector is on is the program's: it may switch it off at any moment.
    """

    def __init__(self) -> None:
        self._programs = gc.get_threshold()
        self._replaced = ReplacedName(gc, "get_threshold", self._hiding)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.end)

    def asleep(self, wait: Callable[[], _R]) -> _R:
        """Let the collector run until `wait` has returned. Python 3.12 begins a collection that is due in the thread
        that gets the interpreter's lock next, but not between two calls that no Python code makes."""
        call: Any = operator.call
        calls = map(call, (wait, _thresholds, _collect_never))
        self.end()
        result: _R
        result, thresholds, _ = calls
        if thresholds[0] != _NEVER:  # another recorder's thread is awake
            self._programs = thresholds
        return result

    def end(self) -> None:
        """Let the collector run, also in a process that is forked while it does not."""
        if _thresholds()[0] == _NEVER:
            gc.set_threshold(*self._programs)

    def close(self) -> None:
        """Let the collector run, and restore the name that shows the program its own thresholds."""
        self.end()
        self._replaced.restore()

    def _hiding(self, get: Callable[[], tuple[int, int, int]]) -> Callable[[], tuple[int, int, int]]:
        def get_threshold() -> tuple[int, int, int]:
            thresholds = get()
            return self._programs if thresholds[0] == _NEVER else thresholds

        return get_threshold


_NEVER = (1 << 31) - 2
"""A threshold that no program reaches, and none sets."""
_thresholds = gc.get_threshold
_collect_never = functools.partial(gc.set_threshold, _NEVER, _NEVER, _NEVER)


class ReplacedName:
    """A public name that leads to a function of ours around the original one, until `restore`."""

    def __init__(self, owner: Any, name: str, around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        self._owner, self._name, self._original = owner, name, getattr(owner, name)
        self._ours = functools.wraps(self._original)(around(self._original))
        setattr(owner, name, self._ours)

    def restore(self) -> None:
        """Let the name lead to the original again, unless somebody else has replaced it since."""
        if getattr(self._owner, self._name, None) is self._ours:
            setattr(self._owner, self._name, self._original)


def raised_by_program(error: BaseException) -> bool:
    """Whether a signal handler of the program raised `error` while our code ran, so that it must reach the program."""
    step, ours, below = error.__traceback__, False, set[CodeType]()
    while step is not None and len(below) < _FRAMES_LOOKED_AT:
        code = step.tb_frame.f_code
        if ours and file_kind(code.co_filename) != OWN:
            below.add(code)
        ours = ours or file_kind(code.co_filename) == OWN
        step = step.tb_next
    return bool(below) and any(code in below for code in _handler_codes())  # to ask for all handlers takes 0.1 ms


def _handler_codes() -> Iterator[CodeType]:
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        while isinstance(handler, functools.partial):
            handler = handler.func
        if callable(handler) and not isinstance(handler, FunctionType | MethodType):
            handler = type(handler).__call__
        handler = getattr(handler, "__func__", handler)
        if isinstance(handler, FunctionType):
            yield handler.__code__
