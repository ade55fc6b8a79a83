"""Notices that no iteration of the program's loops ends any more, and reports what the program is in at that moment.

An iteration has ended where the loop's own events say so, or, without them, where a sample finds one of the user's
frames at an earlier instruction than the sample before did, and JAX was at work in between: a loop that only waits for
something also goes round. Nothing is judged here, and nothing costs more than comparing offsets until an iteration is
missing: then the stacks of all threads and what the system shows of the main thread are read, every few seconds.

Before enough iterations have ended for one to be missing, a main thread that neither runs nor moves on is reported in
the same way: quick passes between two samples are not seen as iterations.
"""

from __future__ import annotations

import _thread
import gc
import os
import sys
import threading
import time
from bisect import insort
from collections.abc import Callable
from itertools import islice
from types import FrameType

from jaxprof.base.system_wait import io_bytes, system_wait
from jaxprof.events import NOWHERE, Event, SourceLocation, StageRunning, StandstillSeen, SystemWait, ThreadStack
from jaxprof.recorder.cpython import frame_content, operation_at
from jaxprof.recorder.frame_owner import USER, frame_kind, outwards
from jaxprof.recorder.samples.stack import DEEPEST, SampledFrame, Stack
from jaxprof.recorder.samples.states import CALLBACK, Seen

FIRST_SECONDS = 8.0
"""An iteration is missing after this long, and after `MISSING_FACTOR` usual ones; a reader waits for longer."""
MISSING_FACTOR = 5
"""Usual iterations after which one is missing."""
AGAIN_SECONDS = 4.0
"""Shortest interval between two reports of a standstill."""
AGAIN_SHARE = 0.1
"""The state is reported again after this share of the time that the standstill has lasted, but not before
`AGAIN_SECONDS`: a night of it is some hundred reports."""
FEWEST = 5
"""Iterations that have to have ended before one can be missing: the first ones compile. Until then a thread is missing
that neither runs nor moves."""
_INTERVALS_KEPT = 1000
_POLL_SECONDS = 3e-4
"""CPU time between two samples that a wait for a result needs at most (50 µs were measured, on an idle machine)."""
_FIRST_CONTENT_SECONDS, _CONTENT_SECONDS = 0.1, 1.0
"""The user's frames are read as seldom as this: until it is known that they change, and then. A reading takes some
tenths of a millisecond."""
_CONTENTS_KEPT = 8
_CONTENT_FRAMES = 4
"""Number of the user's innermost frames in which a change is looked for."""
_THREADS_AT_MOST, _FRAMES_AT_MOST = 32, 24
_Position = tuple[tuple[int, int], ...]
"""Code and offset of the user's frames, outermost first."""
_Use = tuple[float, float, int | None, int]
"""Moment, CPU seconds, bytes moved and full collections of the process until then."""


class StandstillWatch:
    """Call `take` with each sample and `look` a few times a second."""

    def __init__(self, emit: Callable[[Event], None], main_thread: int, task: int) -> None:
        """`main_thread`: its `threading.get_ident`; `task`: the system's id of it."""
        self._emit, self._main_thread, self._task = emit, main_thread, task
        self.passed: float | None = None
        """Monotonic time at which the last iteration was seen to end; None before one has."""
        self.step: int | None = None
        self._count = 0
        self._followed: object = None
        self._intervals: list[float] = []
        """Times between the ends that were seen, in order of length."""
        self._position: _Position = ()
        self.still_since = time.monotonic()
        """Monotonic time since which the main thread has been at the same lines of the user."""
        self._moved: float | None = None
        """Monotonic time at which the main thread last ran, or was elsewhere than before; None before a sample."""
        self._worked = False
        self._seen: Seen | None = None
        self._innermost: SampledFrame | None = None
        self._called_back: SampledFrame | None = None
        """The user's innermost frame, if a compiled function called it back: the line of `Seen` is the outer one."""
        self._contents: dict[_Position, bytes] = {}
        """What the user's frames held when they were last read at a position; empty if that is unknown."""
        self._content_due = 0.0
        self._changes = 0
        """How often they held something else at the same position: in a loop that changes nothing, they never do."""
        self._ran = 0.0
        self._reported: float | None = None
        self._due = 0.0
        self._used: _Use | None = None
        """What the process had used when an iteration began to be missing, or at the last report."""

    @property
    def usual_end(self) -> float | None:
        """Monotonic time at which the last iteration was seen to end; None before `FEWEST` have."""
        return self.passed if self._count >= FEWEST else None

    @property
    def usual_seconds(self) -> float:
        """Median time between two iterations; 0 before a few have ended."""
        return self._intervals[len(self._intervals) // 2] if self._intervals else 0.0

    def take(
        self,
        now: float,
        stack: Stack,
        seen: Seen,
        ran: float | None,
        *,
        staged: bool = False,
        frame: FrameType | None = None,
    ) -> None:
        """Take a sample, before which the main thread ran for `ran` seconds. `staged`: it traces, lowers or compiles,
        and a loop that it goes round is unrolled. `frame`: its innermost one."""
        self._ran += ran or 0.0
        self._seen = seen
        self._innermost = stack.frames[0] if stack.read else None
        own = (frame for frame in stack.frames if frame.kind == USER)
        self._called_back = next(own, None) if seen.kind == CALLBACK else None
        self._worked = not staged and (self._worked or seen.works)
        position = tuple((id(code), offset) for code, offset, kind, _ in reversed(stack.read) if kind == USER)
        ran = ran or 0.0
        if staged or ran > _POLL_SECONDS or position != self._position or self._moved is None:
            self._moved = now
        # A loop that waits for each result is found in the wait by every sample. Where no events tell its iterations,
        # they show in that the thread ran in between. JAX looks for signals five times a second while it waits: what
        # ran for no longer has gone round only if something in the user's frames has changed.
        waits = self._followed is None and ran > 0 and self._worked and bool(seen.sites)
        is_known = self._changes >= FEWEST
        has_changed = not is_known
        if waits and now >= self._content_due:
            self._content_due = now + (_CONTENT_SECONDS if is_known else _FIRST_CONTENT_SECONDS)
            has_changed |= self._has_changed(position, frame)
        if position == self._position:
            # what ends a standstill may be an interrupt, which takes longer than such a look
            if waits and (has_changed or (ran > _POLL_SECONDS and self._reported is None)):
                self._pass(now)
            return
        before, self._position, self.still_since = self._position, position, now
        both = next((pair for pair in zip(before, position, strict=False) if pair[0] != pair[1]), None)
        if both is not None and both[0][0] == both[1][0] and both[1][1] < both[0][1] and self._worked:
            self._pass(now)

    def _has_changed(self, position: _Position, frame: FrameType | None) -> bool:
        """Read the user's frames; return whether they hold something else than before, also where that is unknown."""
        before, self._contents[position] = self._contents.get(position), user_content(frame)
        if len(self._contents) > _CONTENTS_KEPT:
            del self._contents[next(iter(self._contents))]
        if not before:
            return True
        changed = self._contents.get(position) != before
        self._changes += changed
        return changed

    def note_pause(self, seconds: float) -> None:
        """Note that the whole process did not run for so long: no iteration was missing meanwhile."""
        if self.passed is not None:
            self.passed += seconds
        if self._moved is not None:
            self._moved += seconds
        if self._reported is not None:  # what was reported goes on after the pause
            self._reported += seconds

    def look(self, now: float, followed: object, step: int | None, stage: StageRunning | None) -> None:
        """Report what the program is in, if an iteration is missing. `followed`: a value that changes with each
        iteration that ends by the loop's own events, the last one with the number `step`; None where no event tells
        them. `stage`: the compilation that the main thread is in."""
        if followed != self._followed and None not in (followed, self._followed):
            self._pass(now)
        self._followed, self.step = followed, step
        since = self.passed if self._count >= FEWEST else self._moved
        if since is None or isinstance(getattr(sys, "last_value", None), KeyboardInterrupt):
            return  # what an interrupted program stood in was reported, and it only ends now
        quiet = now - since
        if self._reported is not None and since > self._reported:
            self._emit(StandstillSeen(since_seconds=self._reported, over=True))
            self._reported = None
        if quiet < FIRST_SECONDS / 2 or self._used is None:
            self._ran, self._used = 0.0, _use(now) if quiet >= FIRST_SECONDS / 2 else None
            return
        if quiet < max(FIRST_SECONDS, MISSING_FACTOR * self.usual_seconds) or now < self._due:
            return
        self._due = now + max(AGAIN_SECONDS, AGAIN_SHARE * quiet)
        self._reported = since
        self._report(now, since, stage, self._used)

    def _pass(self, now: float) -> None:
        if self.passed is not None and self._count >= FEWEST:
            insort(self._intervals, now - self.passed)
            if len(self._intervals) > _INTERVALS_KEPT:  # every other one; the longest stays
                del self._intervals[-3::-2]
        self.passed, self._worked = now, False
        self._count += 1

    def _report(self, now: float, since: float, stage: StageRunning | None, before: _Use) -> None:
        began, cpu, moved, collections = before
        self._used = used = _use(now)
        ran, self._ran = self._ran, 0.0
        length = max(now - began, 1e-3)
        seen, inner = self._seen, self._innermost
        line = seen.line if seen is not None else None
        at = SourceLocation(line.file, line.line, line.function) if line is not None else NOWHERE
        call = line.call if line is not None else ""
        if self._called_back is not None:
            code, spot = self._called_back.code, self._called_back.spot
            at, call = SourceLocation(code.co_filename, spot.line, code.co_name), spot.text
        if inner is not None and operation_at(inner.code, inner.offset)[1].startswith(("BEFORE_WITH", "BEFORE_ASYNC")):
            call = "with"
        state, waits_in, file = system_wait(os.getpid(), self._task)
        # The stacks of all threads but ours. The names are read without the lock that `threading.enumerate` takes: a
        # thread of the program may hold it for ever.
        names = {ident: thread.name for ident, thread in list(getattr(threading, "_active", {}).items())}
        frames = sys._current_frames()
        frames.pop(_thread.get_ident(), None)
        order = sorted(frames, key=lambda ident: ident != self._main_thread)[:_THREADS_AT_MOST]
        threads = []
        for ident in order:
            locations = [
                SourceLocation(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
                for frame in outwards(frames[ident], _FRAMES_AT_MOST)
            ]
            threads.append(ThreadStack(name=names.get(ident, ""), frames=locations))
        self._emit(
            StandstillSeen(
                since_seconds=since,
                usual_seconds=self.usual_seconds,
                longest_seconds=self._intervals[-1] if self._intervals else 0.0,
                step=self.step,
                at=at,
                call=call,
                kind=seen.kind if seen is not None else "",
                inner=SourceLocation(inner.code.co_filename, inner.spot.line, inner.code.co_name) if inner else NOWHERE,
                still_seconds=self.still_since,
                busy_share=min(1.0, ran / length),
                process_share=(used[1] - cpu) / length,
                moved_bytes_per_second=(
                    (used[2] - moved) / length if used[2] is not None and moved is not None else None
                ),
                collections=used[3] - collections,
                stage=stage.stage if stage is not None else "",
                function=stage.function if stage is not None else "",
                stage_seconds=now - stage.began_seconds if stage is not None else 0.0,
                wait=SystemWait(state=state, call=waits_in, file=file),
                threads=threads,
            )
        )


def user_content(frame: FrameType | None) -> bytes:
    """Return the contents of the user's innermost frames; empty if unknown."""
    own = (each for each in outwards(frame, DEEPEST) if frame_kind(each) == USER) if frame is not None else iter(())
    return b"".join(map(frame_content, islice(own, _CONTENT_FRAMES)))


def _use(now: float) -> _Use:
    return now, time.process_time(), io_bytes(os.getpid()), int(gc.get_stats()[-1]["collections"])
