"""The engine, stopped where one phase begins: asleep, or with the interpreter's lock in the hands of native code.

Started in the place of `jaxprof/engine/__main__.py`, by path. `STOP_AT` names the phase, or none, `STOP_HOW` is `lock`
or `sleep`, and each phase that has been announced on the pipe is then a line of the file `STOP_NOTES`.
"""

import ctypes
import os
import sys
import time

from jaxprof.engine import main as engine
from jaxprof.events import PhaseEnded, PhaseStarted

NOTES = os.open(os.environ["STOP_NOTES"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
_send = engine.EventPipe.send


def send(self, event, *arguments):
    _send(self, event, *arguments)
    if isinstance(event, PhaseStarted | PhaseEnded):
        begins = isinstance(event, PhaseStarted)
        os.write(NOTES, f"{os.getpid()} {event.phase} {'begins' if begins else 'ends'}\n".encode())
        if begins and event.phase == os.environ["STOP_AT"]:
            stop()


def stop():
    if os.environ["STOP_HOW"] == "lock":
        ctypes.PyDLL(None).sleep(600)
    time.sleep(600)


if __name__ == "__main__":
    engine.EventPipe.send = send
    engine.main(sys.argv[1:])
