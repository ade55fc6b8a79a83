"""Records a program that `jaxprof script` has started: from Python's own start-up to the program's last exit handler.

Until the program imports jax, only a finder in `sys.meta_path` and an exit handler are in place; `jaxprof.events` and
the rest are imported after jax, which costs far more. The client knows what it started and when, and how it ended. This
module reports that the recording has begun at all (the first line), what happens inside, and whether the program ended
normally (`ProgramEnded`).

`JAXPROF_PROGRAM` holds the descriptors of the event pipe's writing and reading ends and of the control pipe, followed
by JSON: `began_seconds` (monotonic, when the process was started) and `options` (of the recorder).

The pipe never disturbs the program, which may close descriptors that it does not know, stop its reader, change what
SIGPIPE does, fork, or be interrupted in the middle of a write. So the descriptors have high numbers and are closed on
exec. Each write first checks that the descriptor still is our pipe. The program also holds the reading end, so that a
pipe whose reader has gone fills up instead of raising a signal. A full pipe is waited for once, briefly; after that,
lines are dropped and counted. No thread ever waits for a lock.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from _thread import allocate_lock  # not `threading`: this is part of the program's start

from jaxprof.recorder.jax_import import JaxFinder

PATIENCE_SECONDS = 0.2
"""How long a client that does not read may hold up the program the first time; after that, it does not wait at all."""
LIFE_SECONDS = 2.0
"""How often at least the program's recorder says that it is alive."""
_HIGHEST = 1024
"""First descriptor number for which `select` fails."""


def hidden(descriptor: int) -> int:
    """Move an inherited descriptor to a number that the program will not use, closed on exec; return the new
    number."""
    import fcntl

    limit = os.sysconf("SC_OPEN_MAX")
    # As high as `select` can watch, with room for a few of ours.
    lowest = max(3, min(limit if limit > 0 else _HIGHEST, _HIGHEST) - 16)
    try:
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
    except OSError:  # as many descriptors as allowed may be open already
        os.set_inheritable(descriptor, False)
        return descriptor
    os.close(descriptor)
    return moved


class Descriptor:
    """A descriptor of ours, with the identity of its file when it was made."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._owner = os.getpid()
        self._identity = _identity(number)

    @property
    def ours(self) -> bool:
        """Whether it still refers to the same file, in the process that made it."""
        return os.getpid() == self._owner and self._identity is not None and _identity(self.number) == self._identity


class ProgramPipe:
    """Sends lines from any thread, and from a signal handler that interrupts the sending of a line."""

    def __init__(self, writing: int, reading: int) -> None:
        self._descriptor = Descriptor(hidden(writing))
        self._reading = hidden(reading)
        os.set_blocking(self._descriptor.number, False)
        self._waiting: list[bytes] = []
        """Lines to write. Any thread appends and pops: under the interpreter's lock each is a single operation."""
        self._lock = allocate_lock()
        """Only ever tried: the thread that holds it writes, and owns `_rest` and `_stalled`. A thread that does not get
        it leaves its line in `_waiting`, and the holder looks there again after its release."""
        self._rest = memoryview(b"")
        self._stalled = False
        self.dropped = 0

    def send(self, line: bytes) -> None:
        """Write `line` and a line break, or leave it to the thread that is writing."""
        if not self._descriptor.ours:
            return
        self._waiting.append(line)
        while (self._waiting or self._rest) and self._lock.acquire(blocking=False):
            try:
                going = self._write_next()
            finally:
                self._lock.release()
            if not going:
                return

    def _write_next(self) -> bool:
        """Write one line, or the rest of one. Return False if the pipe takes no more."""
        if not self._rest:
            try:
                self._rest = memoryview(self._waiting.pop(0) + b"\n")
            except IndexError:  # another thread was faster
                return True
        while self._rest:
            try:
                self._rest = self._rest[os.write(self._descriptor.number, self._rest) :]
                self._stalled = False
            except BlockingIOError:
                import select

                poll = select.poll()
                poll.register(self._descriptor.number, select.POLLOUT)
                # An earlier wait for the reader was in vain: there is no second one.
                if self._stalled or not poll.poll(PATIENCE_SECONDS * 1000):
                    self._stalled = True
                    lost = len(self._waiting)  # not `_rest`: the reader already has the first half of that line
                    del self._waiting[:lost]
                    self.dropped += lost
                    return False
            except OSError:
                self._waiting.clear()
                self._rest = memoryview(b"")
                return False
        return True


def _identity(number: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(number)
    except OSError:
        return None
    return status.st_dev, status.st_ino


TYPE_CHECKING = False
if TYPE_CHECKING:
    from jaxprof.events import Event
    from jaxprof.recorder.recorder import Recorder

SIGN = b'{"type":"heartbeat"}'
"""First line. A client that does not receive it knows that nothing inside the program can be recorded."""

begun = False
"""Whether this program is recorded from here."""


def begin(plan: str) -> None:
    """Begin the recording. `sitecustomize` calls this with the text of `JAXPROF_PROGRAM`."""
    global begun
    begun = True
    writing, reading, control, facts = plan.split(" ", 3)
    Launched(ProgramPipe(int(writing), int(reading)), Descriptor(hidden(int(control))), facts).begin()


class Launched:
    """The recording in the program's process."""

    def __init__(self, pipe: ProgramPipe, control: Descriptor, facts: str) -> None:
        self._pipe = pipe
        self._control = control
        self._facts = facts
        self._owner = os.getpid()
        self._finder = JaxFinder(self._jax_imported)
        self._recorder: Recorder | None = None
        self._compiled = False
        self._requests = b""
        self._reported: tuple[list[int], float | None] = ([], None)
        self._reported_seconds = 0.0
        self._layout: dict[str, int] = {}

    def begin(self) -> None:
        """Send the first line, then wait for jax."""
        os.set_blocking(self._control.number, False)
        self._pipe.send(SIGN)
        atexit.register(self._report_children)
        atexit.register(self._end)
        self._finder.install()

    def _jax_imported(self, seconds: float) -> None:
        """Begin to record at the end of the program's `import jax`, in its thread. A failure must not fail that."""
        if os.getpid() != self._owner:
            return
        collects = gc.isenabled()
        try:
            gc.disable()  # our imports would set off ten collections, each through more of the program's objects
            self._begin_recording(seconds)
        finally:
            if collects:
                gc.enable()

    def _begin_recording(self, seconds: float) -> None:
        """Begin to record; if that fails, say so in a warning, and let the program go on."""
        from jaxprof.recorder.guest import raised_by_program, unseen

        try:
            unseen(self._start_recorder)(seconds)
        except Exception as error:  # the program comes first
            if raised_by_program(error):
                raise
            import json

            warning = {"type": "warning_raised", "code": "not_recorded", "values": {"error": repr(error)}}
            self._pipe.send(json.dumps(warning).encode())

    def _start_recorder(self, seconds: float) -> None:
        import json

        from jaxprof.engine.protocol import RecordingOptions
        from jaxprof.recorder.cpython import frame_layout
        from jaxprof.recorder.guest import thread_state
        from jaxprof.recorder.recorder import Recorder

        self._layout = frame_layout(thread_state())
        facts = json.loads(self._facts)
        recorder = Recorder(
            self._send, RecordingOptions(**facts["options"]), began_seconds=facts["began_seconds"], how=""
        )
        recorder.on_tick = self._tick
        self._recorder = recorder
        self._be_first_at_exit()
        recorder.start(import_seconds=seconds)

    def _send(self, event: Event) -> None:
        """Send an event to the process that started the program; a long text in pieces."""
        from dataclasses import replace
        from time import monotonic

        from jaxprof.events import Compiled, TextRecorded, encode

        if not event.monotonic_seconds:
            event = replace(event, monotonic_seconds=monotonic())
        if isinstance(event, TextRecorded):
            from jaxprof.events.runs import in_pieces

            for part in in_pieces(event):
                self._pipe.send(encode(part))
        else:
            self._pipe.send(encode(event))
        if not self._compiled and isinstance(event, Compiled):
            self._compiled = True
            self._be_first_at_exit()

    def _be_first_at_exit(self) -> None:
        """Make our exit handler the first to run. jax registers its clean-up when it is imported and again when its
        backends start; handlers run last-registered first, and the recording must end while the backends are still
        up."""
        atexit.unregister(self._end)
        atexit.register(self._end)

    def _tick(self, now: float) -> None:
        self._report_life(now)
        # Without a client, end the recording, so that the program does not pay for it.
        if not self._control.ours:
            return
        try:
            data = os.read(self._control.number, 65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            if self._recorder is not None:
                recorder, self._recorder = self._recorder, None
                from jaxprof.recorder.guest import start_thread

                start_thread(recorder.abandon)  # not here: it waits for this very thread
            return
        *lines, self._requests = (self._requests + data).split(b"\n")
        for line in lines:
            from jaxprof.engine.protocol import CaptureRequest, read_request

            request: CaptureRequest = read_request(line, [CaptureRequest])
            if self._recorder is not None:
                self._recorder.capture(request.seconds)

    def _report_life(self, now: float) -> None:
        """Say that the recording is alive, how far the program has come, and which of the signals that ask it to end
        the program handles itself: we do not end such a program."""
        import signal

        default = (signal.SIG_DFL, signal.SIG_IGN, signal.default_int_handler, None)
        numbers = (getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP"))
        handled = [int(each) for each in numbers if each is not None and signal.getsignal(each) not in default]
        recorder = self._recorder
        since, usual, step = recorder.last_iteration if recorder is not None else (None, 0.0, None)
        if (handled, since) != self._reported or now - self._reported_seconds >= LIFE_SECONDS:
            self._reported, self._reported_seconds = (handled, since), now
            from jaxprof.events import Heartbeat, encode

            layout, self._layout = self._layout, {}
            self._pipe.send(
                encode(
                    Heartbeat(
                        handled=handled,
                        since_seconds=since,
                        usual_seconds=usual,
                        step=step,
                        layout=layout,
                        children_seconds=_children_seconds(),
                    )
                )
            )

    def _report_children(self) -> None:
        """Say what the child processes took, in the last of all exit handlers: that of `multiprocessing` ends some. A
        forked child says nothing: it is one of them."""
        if os.getpid() == self._owner:
            self._pipe.send(b'{"type":"heartbeat","children_seconds":%r}' % _children_seconds())

    def _end(self) -> None:
        """End the recording when the program ends normally; not in a forked child, where it has not ended."""
        if os.getpid() != self._owner:
            return
        self._finder.remove()
        error = getattr(sys, "last_value", None)
        if self._recorder is not None:
            notes = []
            if self._pipe.dropped:
                from jaxprof.events import Note

                notes = [Note(code="pipe_full", lost=self._pipe.dropped)]
            self._recorder.stop(notes=notes, error=error)
        else:
            self._pipe.send(_ended_without_jax(error))
        if isinstance(error, KeyboardInterrupt):
            be_interrupted()


def _children_seconds() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _ended_without_jax(error: BaseException | None) -> bytes:
    """Return the end of a program that never imported jax. Only an exception is worth an import.

    What that needs of the standard library is not looked for in the program's folder: a `copy.py` there would run."""
    if isinstance(error, Exception):
        path, modules = sys.path[:], sys.modules.copy()
        try:
            folder = os.path.dirname(os.__file__)
            if folder in path:
                sys.path[:] = path[path.index(folder) :]
            for name, module in modules.items():
                file = getattr(module, "__file__", None)
                if name in sys.stdlib_module_names and file and not file.startswith(folder + os.sep):
                    del sys.modules[name]
            from time import monotonic

            from jaxprof.events import ProgramEnded, encode
            from jaxprof.recorder.recorder import failure

            return encode(ProgramEnded(exit_code=None, wall_seconds=0.0, **failure(error, monotonic())))
        except Exception:  # noqa: BLE001 - what the program has done to its modules must not change its end
            pass
        finally:
            sys.path[:] = path
            sys.modules.update(modules)
    return b'{"type":"program_ended","exit_code":null,"wall_seconds":0}'


def be_interrupted() -> None:
    """Let Python end as after an unhandled KeyboardInterrupt: by the signal, which a shell reports as 130.

    Python does so if the last source that it ran (including an `exec` of a string) ended in one. While the program
    ends, our thread imports modules that define dataclasses, which use `exec`; that would leave the exit code at 1.
    """
    try:  # noqa: SIM105 - there may be another contextlib in the program's folder
        exec("raise KeyboardInterrupt")
    except KeyboardInterrupt:
        pass
