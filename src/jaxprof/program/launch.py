"""The recording of a program that `jaxprof script` has started: from Python's own start-up to the program's last exit
handler.

Until the program imports jax there is only a finder in `sys.meta_path` and an exit handler; `jaxprof.events` and the
rest come with jax, which costs far more. The client knows what it started and when, and how it ended: from here it
learns that we are there at all (the first line), what happens inside, and whether the program came to its end in good
order (`ProgramEnded`).

`JAXPROF_PROGRAM` holds: the descriptors of the event pipe's writing and reading end and of the control pipe, and then
JSON: `began_seconds` (monotonic, when the process was started), `options` (of the recorder).
"""

from __future__ import annotations

import _thread
import atexit
import os
import sys

from jaxprof.program.jax_import import JaxFinder
from jaxprof.program.pipe import Descriptor, ProgramPipe, hidden

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jaxprof.events import Event
    from jaxprof.program.recorder import Recorder

SIGN = b'{"type":"heartbeat"}'
"""The first line: whoever misses it knows that nothing of the program can be seen."""


def begin(plan: str) -> None:
    """Called by `sitecustomize` with the text of `JAXPROF_PROGRAM`."""
    writing, reading, control, facts = plan.split(" ", 3)
    Launched(ProgramPipe(int(writing), int(reading)), Descriptor(hidden(int(control))), facts).begin()


class Launched:
    """What is ours in the program's process."""

    def __init__(self, pipe: ProgramPipe, control: Descriptor, facts: str) -> None:
        self._pipe = pipe
        self._control = control
        self._facts = facts
        self._owner = os.getpid()
        self._finder = JaxFinder(self._jax_is_there)
        self._recorder: Recorder | None = None
        self._compiled = False
        self._requests = b""

    def begin(self) -> None:
        """Gives the first sign of life, and waits for jax."""
        os.set_blocking(self._control.number, False)
        self._pipe.send(SIGN)
        atexit.register(self._end)
        self._finder.install()

    def _jax_is_there(self, seconds: float) -> None:
        """In the program's thread, at the end of its `import jax`: whatever fails here must not fail the import."""
        if os.getpid() != self._owner:
            return
        try:
            self._record(seconds)
        except Exception as error:  # noqa: BLE001 - the program comes first
            import json

            told = {"type": "warning_raised", "code": "not_recorded", "message": f"recording failed: {error!r}"}
            self._pipe.send(json.dumps(told).encode())

    def _record(self, seconds: float) -> None:
        import json

        from jaxprof.engine.recording import RecordingOptions
        from jaxprof.program.recorder import Recorder

        facts = json.loads(self._facts)
        recorder = Recorder(
            self._send, RecordingOptions(**facts["options"]), began_seconds=facts["began_seconds"], how=""
        )
        recorder.on_tick.append(self._take_requests)
        self._recorder = recorder
        self._be_first_at_exit()
        recorder.start(import_seconds=seconds)

    def _send(self, event: Event) -> None:
        from dataclasses import replace
        from time import monotonic

        from jaxprof.events import Compiled, encode

        if not event.monotonic_seconds:
            event = replace(event, monotonic_seconds=monotonic())
        self._pipe.send(encode(event))
        if not self._compiled and isinstance(event, Compiled):
            self._compiled = True
            self._be_first_at_exit()

    def _be_first_at_exit(self) -> None:
        """jax registers its clean-up when it is imported, and again when its backends start. The last one registered
        is called first, and the recording must end while the backends are still there."""
        atexit.unregister(self._end)
        atexit.register(self._end)

    def _take_requests(self, now: float) -> None:
        """What the client asks for; a client that has gone ends the recording, and frees the program of its cost."""
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
                _thread.start_new_thread(recorder.abandon, ())  # not here: it waits for this very thread
            return
        *lines, self._requests = (self._requests + data).split(b"\n")
        for line in lines:
            self._obey(line)

    def _obey(self, line: bytes) -> None:
        import json

        request = json.loads(line)
        if self._recorder is None:
            return
        if request["command"] == "capture":
            self._recorder.capture(seconds=request.get("seconds"), steps=request.get("steps"))
        elif request["command"] == "end_capture":
            self._recorder.end_capture()

    def _end(self) -> None:
        """The program's end, in good order. In a child that the program forked this is nobody's end."""
        if os.getpid() != self._owner:
            return
        self._finder.remove()
        if self._recorder is not None:
            self._recorder.stop(notes=self._notes(), interrupted=_interrupted())
        else:
            self._pipe.send(b'{"type":"program_ended","exit_code":null,"wall_seconds":0}')

    def _notes(self) -> list[dict[str, str]]:
        lost = self._pipe.dropped
        if not lost:
            return []
        return [{"code": "pipe_full", "message": f"{lost} events were lost while jaxprof was stopped, or too slow"}]


def _interrupted() -> bool:
    """Whether Python has just printed the traceback of a KeyboardInterrupt that nobody took."""
    last = getattr(sys, "last_type", None)
    return isinstance(last, type) and issubclass(last, KeyboardInterrupt)
