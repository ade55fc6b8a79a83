"""Run one program of the user's as a child process: started unchanged, followed from outside, and sent requests.

The child is `PYTHON FILE ARGS`, nothing else: the recorder enters through Python's own start-up (`recorder.inject`).
The program either shares our terminal and process group, so that ctrl+c, job control and stdin are what they would be
without us, or it leads a group of its own and its output is captured.

The lines of JAX's transfer-guard log are taken out of the program's stderr, and their copies are counted.
All other text is passed on byte for byte. A line of the log may follow half a line of the program's (a progress bar),
and may come in two pieces: text that could be its beginning is held back, for `HOLD_SECONDS` at most.

Lines are read leniently, because JAX does not promise their wording. Copies on JAX's fast path for jitted calls are
logged without the array (0.7 to 0.12), so their type and size are unknown. A copy to several devices is logged once for
each, with the type of the whole array.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import select
import signal
import subprocess
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jaxprof.early_start import VARIABLE, Started, enlarge, environment
from jaxprof.engine.protocol.recording import (
    CaptureRequest,
    RecordingOptions,
    encode_program_request,
)
from jaxprof.operating_system import refuse_to_run
from jaxprof.runner.child import KILLED_AFTER_TERM, ChildProcess, Exit, Pipes
from jaxprof.text import whole_number

if TYPE_CHECKING:
    from jaxprof.events import Event, TransfersSeen

_TYPED: Final = (
    re.compile(r"aval=\w*\(?(?P<dtype>\w+(?:<\w+>)?)\[(?P<dims>[^\]]*)\]"),
    re.compile(r"shape=[(\[](?P<dims>[^)\]]*)[)\]],\s*dtype=(?:\w*\.)?(?P<dtype>\w+)"),
)
_SHARDED_DIMENSION: Final = re.compile(r"@(\([^)]*\)|\w+)")
_TO: Final = re.compile(r"dst_sharding=(?P<sharding>\w+)\(")
_SPEC: Final = re.compile(r"spec=\w+\((?P<spec>(?:[^()]|\([^()]*\))*)\)")
_MESH: Final = re.compile(r"'(?P<axis>[^']+)': (?P<size>\d{1,9})")
_AXIS: Final = re.compile(r"'([^']+)'")
_DTYPE: Final = re.compile(
    r"k?(?P<kind>bfloat|float|uint|int|complex|bf|f|u|s|i|c)(?P<bits>\d{1,4})(?P<rest>\w*)\Z", re.IGNORECASE
)
_SHORT: Final = {"bfloat": "bf", "float": "f", "uint": "u", "int": "i", "complex": "c", "s": "i"}
_BOOL: Final = frozenset({"bool", "pred", "kpred"})
_LONGEST_TYPE: Final = 80
HOLD_SECONDS: Final = 0.05
MOST_KINDS: Final = 256
"""Number of types counted separately; the others are counted together."""
OTHER_TYPES: Final = "other types"
COLLECT_SECONDS: Final = 1.0
_LONGEST: Final = 4096
"""Longest line of the transfer-guard log, in bytes: a write of this size reaches a pipe in one piece."""
_MOST_READ: Final = 1024
"""Number of different lines whose parsed form is cached."""
_LINE: Final = re.compile(
    rb"[IWEF]\d{4} \d\d:\d\d:\d+\.\d+ +\d+ \w+\.cc:\d+\] "
    rb"(?P<direction>(?:host|device)-to-(?:host|device)) transfer:(?P<detail>[^\n]{0,%d})\n" % _LONGEST
)
_BEGINNING: Final = re.compile(
    rb"[IWEF](?:\d{0,4}|\d{4} [\d:]{0,20}|\d{4} \d\d:\d\d:\d+\.[\d ]{0,40}"
    rb"(?:\w+(?:\.(?:c(?:c(?::\d*(?:\](?: (?:[hd][^\n]{0,%d})?)?)?)?)?)?)?)?)\Z" % _LONGEST
)
"""The beginning of a line of the transfer-guard log, at the end of the text so far."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy that the transfer-guard log reports, as far as the line describes it."""

    direction: str
    """`host_to_device`, `device_to_host` or `device_to_device`."""
    type: str
    """Type of the whole array, such as `f32[4]`; empty if the line does not give it."""
    bytes: int | None
    """Bytes copied to this device; None if the line does not give them."""


def read_copy(direction: str, detail: str) -> Copy:
    """Read the copy on a line: `direction` as it stands there (`host-to-device`), `detail` the text after
    `transfer:`."""
    direction = direction.replace("-", "_")
    typed = next((match for pattern in _TYPED if (match := pattern.search(detail))), None)
    if typed is None:
        return Copy(direction, "", None)
    short, item = _dtype(typed["dtype"])
    dims = _SHARDED_DIMENSION.sub("", typed["dims"]).replace(" ", "").strip(",")
    sizes = [whole_number(size) for size in dims.split(",")] if dims else []
    kind = f"{short}[{dims}]"[:_LONGEST_TYPE]
    fixed = [size for size in sizes if size is not None]
    parts = _parts(detail)
    if item is None or parts is None or len(fixed) < len(sizes):
        return Copy(direction, kind, None)
    return Copy(direction, kind, item * math.prod(fixed) // parts)


def _dtype(name: str) -> tuple[str, int | None]:
    """Return the short name and the size of a type in bytes: `float32` is `f32`, 4. Types of less than a byte take one
    on the host."""
    if name.lower() in _BOOL:
        return "bool", 1
    match = _DTYPE.match(name)
    if match is None:
        return name, None
    kind, bits = match["kind"].lower(), int(match["bits"])
    return f"{_SHORT.get(kind, kind)}{bits}{match['rest']}", max(1, bits // 8)


def _parts(detail: str) -> int | None:
    """Return the number of parts into which the array is split over devices, of which one was copied; None if the line
    does not show it."""
    to = _TO.search(detail)
    if to is None or to["sharding"] == "SingleDeviceSharding":
        return 1
    spec = _SPEC.search(detail)
    if to["sharding"] != "NamedSharding" or spec is None:
        return None
    mesh = {axis["axis"]: int(axis["size"]) for axis in _MESH.finditer(detail)}
    axes = _AXIS.findall(spec["spec"])
    return math.prod(mesh[axis] for axis in axes) or None if all(axis in mesh for axis in axes) else None


@dataclass(slots=True)
class _Count:
    count: int = 0
    bytes: int | None = None


class GuardFilter:
    """Takes the transfer-guard log out of a program's stderr and counts its copies. For one thread. Call `feed` with
    the input and pass on what it returns; call `collect` for the counts now and then."""

    def __init__(self) -> None:
        self._held = b""
        self._held_until = 0.0
        self._read: dict[tuple[bytes, bytes], Copy] = {}
        self._kinds: set[tuple[str, str]] = set()
        self._counts: dict[Copy, int] = {}
        self._collected = 0.0

    def feed(self, data: bytes, now: float) -> bytes:
        """Return the program's own part of `data` and of the text held back before."""
        rest = _LINE.sub(self._take, self._held + data)
        beginning = _BEGINNING.search(rest, max(rest.rfind(b"\n") + 1, len(rest) - 2 * _LONGEST))
        if beginning is None:
            self._held = b""
            return rest
        self._held = rest[beginning.start() :]
        self._held_until = now + HOLD_SECONDS
        return rest[: beginning.start()]

    def wait_seconds(self, now: float) -> float | None:
        """Return how long the held-back text may still wait; None if there is none."""
        return max(0.0, self._held_until - now) if self._held else None

    def release(self) -> bytes:
        """Return the held-back text, which has waited long enough or is the last."""
        held, self._held = self._held, b""
        return held

    def collect(self, now: float, *, last: bool = False) -> TransfersSeen | None:
        """Return the counts since the last call; None if there are none, or if less than `COLLECT_SECONDS` has
        passed."""
        if not self._counts or (not last and now - self._collected < COLLECT_SECONDS):
            return None
        from jaxprof.events import CopiesSeen, TransfersSeen

        self._collected = now
        rows: dict[tuple[str, str, bool], _Count] = {}
        for copy, count in self._counts.items():
            row = rows.setdefault((copy.direction, copy.type, copy.bytes is None), _Count())
            row.count += count
            if copy.bytes is not None:
                row.bytes = (row.bytes or 0) + count * copy.bytes
        self._counts.clear()
        copies = [
            CopiesSeen(direction=direction, source="guard", type=type_, count=row.count, bytes=row.bytes)
            for (direction, type_, _), row in rows.items()
        ]
        return TransfersSeen(monotonic_seconds=now, rows=copies)

    def _take(self, match: re.Match[bytes]) -> bytes:
        key = (match["direction"], match["detail"])
        copy = self._read.get(key)
        if copy is None:
            if len(self._read) >= _MOST_READ:
                self._read.clear()
            copy = self._read[key] = self._bounded(read_copy(key[0].decode(), key[1].decode("utf-8", "replace")))
        self._counts[copy] = self._counts.get(copy, 0) + 1
        return b""

    def _bounded(self, copy: Copy) -> Copy:
        kind = (copy.direction, copy.type)
        if copy.type and kind not in self._kinds:
            if len(self._kinds) >= MOST_KINDS:
                return Copy(copy.direction, OTHER_TYPES, copy.bytes)
            self._kinds.add(kind)
        return copy


STDERR = 2
_ENVIRONMENT_READS = 10
_ENVIRONMENT_READ_SECONDS = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramCommand:
    """The program to run, as a user would type it after `python`."""

    path: str
    """The file, or with `module` the name after `-m`."""
    arguments: tuple[str, ...] = ()
    module: bool = False
    directory: str = ""
    """The working directory; empty for the current one."""
    options: RecordingOptions = field(default_factory=RecordingOptions)

    @property
    def name(self) -> str:
        """Name of the program on screens: that of the file or the module."""
        return self.path if self.module else Path(self.path).name

    @property
    def argv(self) -> list[str]:
        """The program and its arguments, as a user would type them after `python`."""
        return (["-m"] if self.module else []) + [self.path, *self.arguments]


class ProgramProcess(ChildProcess):
    """A running program. `signal` may be called from any thread; one thread owns the rest. Processes that the program
    leaves behind are not ended, because it leaves them on purpose."""

    def __init__(
        self,
        python: str,
        program: ProgramCommand,
        *,
        inherit: bool,
        keep_stderr: bool = False,
        started: Started | None = None,
    ) -> None:
        """Start the program, unless it was `started` early. `inherit`: the program gets our stdin, stdout and stderr,
        and our process group; otherwise stdin is empty and the output comes as events. With the option `transfers`, or
        with `keep_stderr`, stderr is always a pipe, and an inherited one is passed on; `keep_stderr` also reports it as
        events. Raises WorkerError if the program cannot be started, UsageError on Windows."""
        refuse_to_run("recording a program")
        self._inherit, self._keep_stderr = inherit, keep_stderr
        self._termination_sent = False
        self._guard = GuardFilter() if program.options.transfers else None
        pipes = Pipes(*started.pipes) if started is not None else Pipes.open()
        enlarge(pipes.events_write)
        descriptors = (pipes.events_write, pipes.events_read, pipes.control_read)
        began = started.began_seconds if started is not None else time.monotonic()
        facts = json.dumps({"began_seconds": began, "options": asdict(program.options)})
        guarded = ("stderr",) if self._guard is not None or keep_stderr else ()
        super().__init__(
            [python, *program.argv],
            pipes,
            environment(" ".join([*map(str, descriptors), facts]), unbuffered=not inherit),
            name="the program",
            descriptors=descriptors,
            captured=guarded if inherit else ("stdout", "stderr"),
            own_group=not inherit,
            directory=program.directory,
            process=started.process if started is not None else None,
        )
        self.began_seconds = began  # the recorder's first sample window begins at the same moment
        os.set_blocking(self._control, False)
        if self._process.stderr is not None:
            enlarge(self._process.stderr.fileno())

    @property
    def exit_code(self) -> int | None:
        """The program's exit code as a shell gives it: 128 plus the signal's number after a signal; None while it
        runs."""
        code = self.returncode
        return code if code is None or code >= 0 else 128 - code

    @property
    def silenced(self) -> bool:
        """Whether the event pipe was closed, so that nothing more that happens inside can be seen."""
        return "events" not in self._watched()

    def replaced(self) -> bool | None:
        """Return whether the process has become another program (exec): its environment is not the one we gave it. None
        if that cannot be seen: the process is ending, or the system does not show its environment."""
        for _ in range(_ENVIRONMENT_READS):
            try:
                started_with = Path(f"/proc/{self.pid}/environ").read_bytes()
            except OSError:
                return None
            if started_with:
                return f"{VARIABLE}=".encode() not in started_with
            if not self.alive:
                return None
            time.sleep(_ENVIRONMENT_READ_SECONDS)  # in the middle of an exec there is momentarily no environment
        return None

    def capture(self, seconds: float | None = None, steps: int | None = None) -> None:
        """Request a window in which JAX's profiler is on. A program that does not read requests gets none."""
        with contextlib.suppress(OSError):
            os.write(self._control, encode_program_request(CaptureRequest(seconds=seconds, steps=steps)))

    def signal(self, number: int) -> None:
        """Pass on a signal that was sent to us but meant for the program."""
        self._termination_sent = self._termination_sent or number == signal.SIGTERM
        with contextlib.suppress(ProcessLookupError, PermissionError):
            self._process.send_signal(number)

    def interrupt(self) -> None:
        """Interrupt the program as ctrl+c does."""
        self.signal(signal.SIGINT)

    def terminate(self) -> None:
        """Send SIGTERM to the program."""
        self.signal(signal.SIGTERM)

    def explain(self) -> Exit:
        """Return why the program has ended. SIGKILL some time after SIGTERM comes from its launcher, not from a lack of
        memory."""
        ended = super().explain()
        if self.returncode != -signal.SIGKILL or not self._termination_sent or ended.known_cause:
            return ended
        return KILLED_AFTER_TERM

    def end(self, patience_seconds: float) -> None:
        """End the program together with all its children, as ctrl+c and then SIGTERM would, each with half of the
        patience; kill what is left after that."""
        for number in (signal.SIGINT, signal.SIGTERM):
            self._signal_all(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience_seconds / 2)
                break
        self.kill()

    def _wait_seconds(self, at_most_seconds: float) -> float:
        held = self._guard.wait_seconds(time.monotonic()) if self._guard is not None else None
        return at_most_seconds if held is None else min(held, at_most_seconds)

    def _received(self, name: str, data: bytes) -> list[Event]:
        if name != "stderr":
            return super()._received(name, data)
        if self._guard is None:
            return self._forward(data)
        return self._forward(self._guard.feed(data, time.monotonic()))

    def _over(self, name: str) -> list[Event]:
        if self._guard is None or name != "stderr":
            return super()._over(name)
        return self._forward(self._guard.release()) + super()._over(name)

    def _after_read(self) -> list[Event]:
        """Return the copies counted so far, and the text held back once it has waited long enough."""
        if self._guard is None:
            return []
        now = time.monotonic()
        due = self.over or self._guard.wait_seconds(now) == 0
        events = self._forward(self._guard.release()) if due else []
        counted = self._guard.collect(now, last=self.over)
        return events if counted is None else [*events, counted]

    def _forward(self, data: bytes) -> list[Event]:
        """Pass the program's own part of its stderr on to ours if that is inherited, and return it as events if it is
        not inherited, or is to be kept."""
        if self._inherit:
            self._pass_on(data)
        return super()._received("stderr", data) if self._keep_stderr or not self._inherit else []

    def _pass_on(self, data: bytes) -> None:
        """Write all of `data` to our stderr. If nobody reads ours any more, close the program's, so that it notices
        itself."""
        try:
            _write_all(STDERR, data)
        except OSError:
            stream = self._process.stderr
            if stream is not None and not stream.closed:
                if "stderr" in self._watched():
                    self._selector.unregister(stream)
                stream.close()


def _write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data` as soon as the descriptor takes it; the descriptor may be non-blocking. Raises OSError."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
