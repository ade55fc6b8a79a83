"""Whether a program stands still: since when, after which step, at which line, and what it waits for.

A program stands still if no iteration of its loops has ended for ten usual ones and twenty seconds, and its main thread
does not move on; at once if a signal has stopped it. One that works on something else (an evaluation, a checkpoint, a
first compilation) moves: its frames change, its threads run, or its bytes flow. Where only a clock speaks against that,
more time has to pass. What it waits for is stated where the stack and the system agree, or where the system alone
leaves no doubt; else it is unknown.

Before any iterations are known, a program may be meant to wait: for its user, a server or a child. Only what nobody
waits for on purpose is a standstill then: a file that does not answer, and a lock.
"""

from __future__ import annotations

import re
from itertools import takewhile

from jaxprof.base.files import is_own
from jaxprof.base.units import and_more, integer, seconds
from jaxprof.base.values import field, frozen
from jaxprof.events import NOWHERE, SourceLocation, StandstillSeen, ThreadStack
from jaxprof.session import RecordedProgram

USUAL_ITERATIONS = 10
"""Usual iterations without which a standstill may be a long iteration."""
LEAST_SECONDS = 20.0
"""No iteration for this long, and for `USUAL_ITERATIONS` usual ones, is a standstill of a thread that does nothing."""
LONGER_FACTOR = 3
"""The longest time without an iteration so far, as of an evaluation, has to be exceeded by this factor."""
BUSY_SECONDS = 45.0
"""The same as `LEAST_SECONDS` for a thread that may do something: it runs, it compiles, or it waits for a device, which
may compute."""
_IDLE_SHARE = 0.2
"""Share of a processor below which the threads of a process do nothing but look whether something has come."""
_MOVED_BYTES_PER_SECOND = 1 << 20
"""Rate of reading and writing from which a checkpoint or a data set is on its way; the recorder's own is a tenth."""
_THREADS_NAMED = 3
_JOINING = re.compile(r"[/\\]jax[/\\].*\bdistributed\.py$")
"""Where JAX connects the processes of a job, and waits until all have come."""
_STAGES = {"trace": "tracing", "lower": "lowering", "compile": "compiling"}
_DEVICE_KINDS = ("compiled", "inline", "sync", "read", "fed", "dispatch", "transfer")

STOPPED, LOCKED, DEVICE, PEERS, COMPILER, COLLECTOR = (
    "stopped", "interpreter_lock", "device", "peers", "compiler", "collector",
)  # fmt: skip
SLEEP, FILE, FILE_LOCK, SOCKET, QUEUE, LOCK, THREADS, CHILD, BUSY, UNKNOWN = (
    "sleep", "file", "file_lock", "socket", "queue", "lock", "threads", "child", "busy", "unknown",
)  # fmt: skip
WAITS = (
    STOPPED, LOCKED, DEVICE, PEERS, COMPILER, COLLECTOR, SLEEP, FILE, FILE_LOCK, SOCKET, QUEUE, LOCK, THREADS, CHILD,
    BUSY, UNKNOWN,
)  # fmt: skip
"""What a program that stands still waits for."""


@frozen
class Standstill:
    """A program that stands still, or stood still when it ended."""

    since_seconds: float
    """Monotonic time at which its last iteration was seen to end, or a later compilation did; or else at which its main
    thread last ran."""
    seconds: float
    """How long it has lasted so far."""
    step: int | None
    """Number of the last finished iteration; None if they are not numbered."""
    at: SourceLocation
    """The user's line at which the main thread stands; unknown if the interpreter shows nothing."""
    call: str
    waits: str
    """One of `WAITS`."""
    what: str
    """That in words, without a subject: `sleeps`, `reads a file that does not answer (/data/shard-7)`."""
    is_certain: bool = True
    """Whether it does nothing by two witnesses; otherwise more time has to pass before it is reported."""
    is_intended: bool = True
    """Whether a program may wait so on purpose, as for a terminal, a server or a child."""
    usual_seconds: float = 0.0
    """Median time between two iterations; 0 before a few have ended."""
    longest_seconds: float = 0.0
    has_compiled: bool = False
    """Whether it compiled something after its last iteration; that was then its last progress."""
    threads: tuple[ThreadStack, ...] = field(default=(), repr=False)

    @property
    def on_device(self) -> bool:
        """Whether it waits in a compiled function or for the result of one, or for its peers: they may be to blame."""
        return self.waits in (DEVICE, PEERS)

    @property
    def is_one(self) -> bool:
        """Whether it has lasted long enough to be called a standstill, from what this process alone shows. What a
        signal has stopped stands still at once."""
        idle = self.is_certain and not self.on_device and self.usual_seconds
        least = LEAST_SECONDS if idle else BUSY_SECONDS
        return self.waits == STOPPED or (self.seconds >= least and self.is_long)

    @property
    def is_long(self) -> bool:
        """Whether it has lasted long enough to be one where other processes bear witness to it."""
        if self.is_intended and not self.usual_seconds:
            return False
        others = max(USUAL_ITERATIONS * self.usual_seconds, LONGER_FACTOR * self.longest_seconds)
        return self.seconds >= max(LEAST_SECONDS, others)

    def text(self, directory: str = "") -> str:
        """Return `since step 188 (3 min 12 s) at loader.py:40 in read(): it sleeps`; the step only if it has any."""
        since = "" if not self.usual_seconds else "since its last step "
        if self.step is not None:
            # a process that is stopped or locked sent its last word some tenths of a second before it stood still
            later = "or soon after " if self.waits in (STOPPED, LOCKED) else ""
            since = f"since step {integer(self.step)} {later}"
        if self.has_compiled:
            since = f"since the compilation after {since.removeprefix('since ') or 'its start '}"
        at = f" at {self.at.short(directory)}" if self.at else ""
        call = f" in {'a with statement' if self.call == 'with' else self.call}" if self.at and self.call else ""
        return f"{since}({seconds(self.seconds)}){at}{call}: it {self.what}{self._beside(directory)}"

    def _beside(self, directory: str) -> str:
        """Return where the other threads stand, if it waits for what only a thread can give; empty if it does not."""
        if self.waits not in (QUEUE, LOCK, THREADS) or not self.threads:
            return ""
        own = self.threads[1:]
        parts = []
        for thread in own:
            at = next((frame for frame in thread.frames if is_own(frame.file)), None)
            where = f" stands at {at.short(directory)} in {at.function}()" if at is not None else ""
            parts.append(f"`{thread.name}`{where}" if thread.name else f"one without a name{where}")
        named = and_more(parts, _THREADS_NAMED)
        return f"; its other threads: {named}" if own else "; it has no other Python thread"


def standstill(program: RecordedProgram, now: float) -> Standstill | None:
    """Return what the program has been in since its last iteration, if its recorder has missed one; None if it goes on.
    `now`: monotonic time of the last event. `Standstill.is_one` says whether that is a standstill."""
    inside, silence = program.standstill, program.silence
    inside = None if inside is None or inside.over else inside
    if silence is not None and not silence.over:
        since = silence.since_seconds
        if since is None and silence.wait.state == "T":  # before its first iteration
            since = silence.silent_seconds
        if since is not None:
            # Not even the recorder's own thread gets to run.
            if silence.wait.state == "T":
                waits, what = STOPPED, "is stopped by a signal (state T)"
            elif silence.wait.state:
                where = f", in {silence.wait.call}" if silence.wait.call else ""
                file = f" of {silence.wait.file}" if silence.wait.file else ""
                waits, what = LOCKED, f"holds the interpreter's lock in native code{where}{file}"
            else:
                waits, what = UNKNOWN, "says nothing any more"
            return Standstill(
                since,
                max(now, silence.monotonic_seconds) - since,
                silence.step,
                silence.at or (inside.at if inside is not None else NOWHERE),
                inside.call if inside is not None and not silence.at else "",
                waits,
                what,
                bool(silence.wait.state),
                False,
                silence.usual_seconds,
                threads=tuple(silence.threads),
            )
    if inside is None or (not inside.stage and (inside.moved_bytes_per_second or 0.0) >= _MOVED_BYTES_PER_SECOND):
        return None
    waits, what, certain = _wait(inside)
    moved = inside.monotonic_seconds - inside.still_seconds < LEAST_SECONDS / 2
    traces = waits == COMPILER and inside.stage_seconds >= LEAST_SECONDS / 2  # in Python, which moves
    if moved and waits != COLLECTOR and not traces:
        busy = inside.busy_share is None or inside.busy_share >= _IDLE_SHARE
        waits, what, certain = (BUSY, "goes round without an iteration", False) if busy else (waits, what, certain)
    # Between two iterations a library may compile hundreds of programs: each that is done is progress.
    compiled = max((row.monotonic_seconds for row in program.compiled if not row.thread), default=0.0)
    since = max(inside.since_seconds, compiled)
    return Standstill(
        since,
        max(now, inside.monotonic_seconds) - since,
        inside.step,
        inside.at,
        inside.call,
        waits,
        what,
        certain,
        not _is_blocked_for_ever(inside, waits),
        inside.usual_seconds,
        inside.longest_seconds,
        since > inside.since_seconds,
        tuple(inside.threads),
    )


def _is_blocked_for_ever(seen: StandstillSeen, waits: str) -> bool:
    """Return whether no program waits so on purpose."""
    if waits == FILE:  # a terminal, a pipe or a device may be waited for
        return seen.wait.file.startswith("/") and not seen.wait.file.startswith("/dev/")
    return waits == LOCK and (seen.call == "with" or "acquire" in f"{seen.call} {seen.inner.function}")


def _wait(seen: StandstillSeen) -> tuple[str, str, bool]:
    """Return what the main thread waits for, that in words, and whether two witnesses agree that it does nothing."""
    runs = seen.busy_share is not None and seen.busy_share >= _IDLE_SHARE
    if seen.stage:
        doing = _STAGES.get(seen.stage, seen.stage)
        return COMPILER, f"has been {doing} {seen.function} for {seconds(seen.stage_seconds)}", False
    if runs and seen.collections:
        return COLLECTOR, f"collects garbage, {integer(seen.collections)} times in a row", False
    computes = (seen.process_share or 0.0) >= _IDLE_SHARE
    frames = seen.threads[0].frames if seen.threads else []
    if not seen.at and not seen.inner:
        return UNKNOWN, "has come to its end, and a function that ends it does not return", not computes
    if not seen.at and frames and frames[-1].function in ("_shutdown", "_python_exit"):  # of threading, of its pools
        return THREADS, "has come to its end, and waits for its other threads", not computes
    if _JOINING.search(seen.inner.file):
        return PEERS, "waits for the other processes of the job to join", not computes
    if seen.kind in _DEVICE_KINDS:
        return DEVICE, "waits in a compiled function, or for its result", not computes
    if runs:
        return BUSY, "runs, and no iteration ends", False
    found = _obstacle(seen)
    if found is not None and seen.kind == "callback":
        found = found[0], f"{found[1]}, in a function that a compiled one calls back"
    return (*found, not computes) if found is not None else (UNKNOWN, "waits for something unknown", not computes)


def _obstacle(seen: StandstillSeen) -> tuple[str, str] | None:
    """Return what a thread waits for that is blocked in a system call; None if the stack says otherwise, or nothing."""
    call, file = seen.wait.call, seen.wait.file
    main = seen.threads[0].frames if seen.threads else []
    inside = [seen.inner, *takewhile(lambda frame: not is_own(frame.file), main)]  # a queue waits in `threading`
    modules = {frame.file.rpartition("/")[2] for frame in inside}
    name = f"{seen.call} {seen.inner.function}".lower()
    where = f" ({file})" if file else ""
    if call == "sleep" and "sleep" in name:
        return SLEEP, "sleeps"
    if call == "wait":
        return CHILD, "waits for a child process"
    if call in ("flock", "fcntl"):
        return FILE_LOCK, f"waits for the lock of a file{where}"
    if file == "socket" or call in ("accept", "connect", "receive"):
        return SOCKET, "waits for a socket"
    if call == "open":
        return FILE, f"opens a file that does not answer{where}"
    if call in ("read", "pread", "write", "pwrite", "fsync"):
        verb = "reads from" if call in ("read", "pread") else "writes to"
        return FILE, f"{verb} a file that does not answer{where}"
    if call in ("futex", "poll", "select", "epoll", "read"):
        if modules & {"queues.py", "synchronize.py"}:  # of `multiprocessing`
            return CHILD, "waits for a queue, lock or event of several processes"
        if "queue.py" in modules or "queue" in name:
            return QUEUE, "waits for a queue"
        if "threading.py" in modules or name.startswith("with ") or any(word in name for word in ("acquire", "join")):
            return LOCK, "waits for a lock or a thread"
    return None
