"""Detect the pauses of another process: a signal stopped it, or the machine was suspended; and that it falls silent.

SIGSTOP, SIGTSTP (ctrl+z) and reading a terminal in the background stop a process until SIGCONT. The system shows it as
stopped meanwhile; a process that sleeps, waits for input or has no processor to run on is not. A debugger that stops a
process for its own purposes causes another state, which is not reported. An observer that is paused together with the
process sees nothing of this: the recorder detects such a pause from within (`recorder.samples.cpu_clock`).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace

from jaxprof.base.files import is_own
from jaxprof.base.system_wait import ProcessMemory, processor_seconds, system_wait
from jaxprof.events import NOWHERE, Heartbeat, ProgramStopped, SilenceSeen, SourceLocation, SystemWait, ThreadStack

LOOK_SECONDS = 0.1
"""Time between looks at the process; each takes 80 µs."""
LEAST_SUSPENDED_SECONDS = 1.0
"""Shortest suspension reported: the two clocks that show one are not read at the same instant."""


def is_stopped(pid: int) -> bool:
    """Return whether a signal has stopped the process; False for one that has ended, or that cannot be read."""
    import psutil

    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)
    except psutil.Error:
        return False


def seconds_suspended() -> float:
    """Return for how long the machine has been suspended since it started; 0 if the system does not report it."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.clock_gettime(boot) - time.monotonic() if boot is not None else 0.0


_LOOKS_KEPT = 1_000
"""The looks of the last minute or more, in which we ran."""


class PauseWatch:
    """Detects the pauses of one process. Call `look` often, and `end` once, when the process has ended."""

    def __init__(
        self,
        pid: int,
        *,
        looks_stopped: Callable[[int], bool] = is_stopped,
        suspended: Callable[[], float] = seconds_suspended,
    ) -> None:
        """`looks_stopped`: whether a signal has stopped the process `pid`. `suspended`: for how long the machine has
        been suspended, in seconds."""
        self._pid, self._looks_stopped, self._suspended = pid, looks_stopped, suspended
        self._looks: deque[float] = deque(maxlen=_LOOKS_KEPT)
        self._began: float | None = None
        self._slept = suspended()

    def in_long_pause(self, now: float) -> bool:
        """Return whether a signal stopped the process at least `REPORTED_SECONDS` ago, and it has not gone on."""
        return self._began is not None and now - self._began >= REPORTED_SECONDS

    def look(self, now: float) -> list[ProgramStopped]:
        """Return the pauses that are over at `now`, by the monotonic clock."""
        last = self._looks[-1] if self._looks else None
        if last is not None and now - last < LOOK_SECONDS / 2:
            return []
        self._looks.append(now)
        over: list[ProgramStopped] = []
        slept = self._suspended()
        if slept - self._slept >= LEAST_SUSPENDED_SECONDS:
            began = now if last is None else last
            over.append(
                ProgramStopped(
                    began_seconds=began, seconds=slept - self._slept, found_by="clock", monotonic_seconds=now
                )
            )
        self._slept = slept
        stopped = self._looks_stopped(self._pid)
        middle = now if last is None else (last + now) / 2  # it happened at some moment since the last look
        if stopped and self._began is None:
            self._began = middle
        elif not stopped and self._began is not None:
            over += self._over(middle, now)
        return over

    def witness(self, pause: ProgramStopped) -> ProgramStopped:
        """Return a pause that the program reports just after it, with whether we looked in its middle."""
        return replace(pause, recorder_ran=pause.holds(self._looks))

    def end(self, now: float) -> list[ProgramStopped]:
        """Return the pause in which the process ended, if it was in one."""
        return self._over(now, now) if self._began is not None else []

    def _over(self, until: float, now: float) -> list[ProgramStopped]:
        assert self._began is not None
        began, self._began = self._began, None
        seconds = until - began
        return [ProgramStopped(began_seconds=began, seconds=seconds, found_by="state", monotonic_seconds=now)]


REPORTED_SECONDS = 3.0
"""A pause is reported while it goes on once it has lasted this long: a shorter one only when it is over."""
SILENT_SECONDS = 6.0
"""A recorder that says every two seconds that it is alive is silent after this long; a busy machine can delay it."""
SILENCE_SHARE = 0.1
"""A silence is reported again after this share of the time that it has lasted, but not before `SILENT_SECONDS`."""


class SilenceWatch:
    """Reports that the recorder in a program says nothing any more, and what the system shows of the program. Call
    `look` often."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._due = 0.0
        self._silent: float | None = None
        """Since when it has been silent, if that was reported."""
        self._used = (0.0, processor_seconds(pid))

    def look(
        self,
        now: float,
        heard: float,
        heartbeat: Heartbeat,
        layout: Mapping[str, int] | None = None,
        *,
        stopped: bool = False,
    ) -> SilenceSeen | None:
        """Return what is new. `heard`: monotonic time of the last word from inside, which was `heartbeat`. `layout`: of
        the frames in its memory, if it is known. `stopped`: whether it is in a long pause, and silent for that."""
        quiet = now - heard
        if quiet < SILENT_SECONDS and not stopped:
            was, self._silent = self._silent, None
            return SilenceSeen(silent_seconds=was, over=True) if was is not None else None
        if now < self._due and self._silent is not None:
            return None
        self._due, self._silent = now + max(SILENT_SECONDS, SILENCE_SHARE * quiet), heard
        state, call, file = system_wait(self._pid, self._pid)
        frames = remote_stack(self._pid, layout or {})
        users = (frame for frame in frames if is_own(frame.file))
        (began, before), self._used = self._used, (now, processor_seconds(self._pid))
        used = self._used[1]
        return SilenceSeen(
            silent_seconds=heard,
            since_seconds=heartbeat.since_seconds,
            usual_seconds=heartbeat.usual_seconds,
            step=heartbeat.step,
            wait=SystemWait(state=state, call=call, file=file),
            at=next(users, NOWHERE),
            threads=[ThreadStack(name="MainThread", frames=frames)] if frames else [],
            busy_share=(used - before) / (now - began) if used is not None and before is not None and began else None,
        )


_FRAMES_AT_MOST = 64
_BYTES_AT = 32
"""Where the content of a `bytes` object begins, in all Pythons of 64 bits."""
_SHIM = "<shim>"
"""File of the frame that Python 3.12 puts between C and the Python that it calls."""


def remote_stack(process: int, layout: Mapping[str, int]) -> list[SourceLocation]:
    """Return the Python frames of the main thread of another process, innermost first, from its memory: the process
    does not take part, and nothing is attached. `layout`: as `recorder.cpython.frame_layout` found it there."""
    if not layout:
        return []
    memory, frames = ProcessMemory(process), list[SourceLocation]()
    (address,) = memory.words(layout["thread_state"] + 8 * layout["frame_at"], 1) or (0,)
    if layout["hop"] >= 0:
        (address,) = memory.words(address + 8 * layout["hop"], 1) or (0,)
    for _ in range(_FRAMES_AT_MOST):
        frame = memory.words(address, 12)
        if len(frame) < 12:
            break
        code = frame[layout["code_at"]]
        words = memory.words(code, 32)
        # A frame of the interpreter has None in place of a code object, and one that is gone may have anything.
        if len(words) == 32 and words[layout["type_at"]] == layout["code_type"]:
            file, name = (_text(memory, words[layout[key]], layout["text_at"]) for key in ("file_at", "name_at"))
            if not file:  # without it, the next one would pass for the innermost of the user's
                return []
            table = memory.read(words[layout["table_at"]] + _BYTES_AT, _size(memory, words[layout["table_at"]]))
            first = int.from_bytes(memory.read(code + 4 * layout["first_line_at"], 4), "little")
            offset = frame[layout["instruction_at"]] - code - layout["bytecode_at"]
            lines = _NO_CODE.replace(co_linetable=table, co_firstlineno=first).co_lines()
            line = next((number for begin, end, number in lines if begin <= offset < end), None)
            if file != _SHIM:
                frames.append(SourceLocation(file, line, name))
        address = frame[layout["previous_at"]]
    return frames


_NO_CODE = (lambda: None).__code__


def _size(memory: ProcessMemory, address: int) -> int:
    """Return the size of a text or a `bytes` object, within reason."""
    return min((memory.words(address + 16, 1) or (0,))[0], 1 << 16)


def _text(memory: ProcessMemory, address: int, text_at: int) -> str:
    """Return a text of ASCII; empty for another one, whose characters stand elsewhere, behind numbers with zeros."""
    text = memory.read(address + text_at, min(_size(memory, address), 4096)).decode("ascii", "replace")
    return text if text.isascii() and "\0" not in text else ""
