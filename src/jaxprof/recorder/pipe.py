"""The pipe from a program to its recorder's client: sends lines, and never disturbs the program.

A program may close descriptors that it does not know, stop its reader, change what SIGPIPE does, fork, or be
interrupted in the middle of a write. So the descriptors have high numbers and are closed on exec. Each write first
checks that the descriptor still is our pipe. The program also holds the reading end, so that a pipe whose reader has
gone fills up instead of raising a signal. A full pipe is waited for once, briefly; after that, lines are dropped and
counted. No thread ever waits for a lock.
"""

from __future__ import annotations

import os
from _thread import allocate_lock  # not `threading`: this is part of the program's start

PATIENCE_SECONDS = 0.2
"""How long a client that does not read may hold up the program the first time; after that, it does not wait at all."""
_HIGHEST = 1024
"""First descriptor number for which `select` fails."""
_RESERVED = 16


def hidden(descriptor: int) -> int:
    """Move an inherited descriptor to a number that the program will not use, closed on exec; return the new
    number."""
    import fcntl

    limit = os.sysconf("SC_OPEN_MAX")
    lowest = max(3, min(limit if limit > 0 else _HIGHEST, _HIGHEST) - _RESERVED)
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
        """Take the two ends of the pipe, as inherited."""
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
        """Number of lines that the client will not receive."""

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
                if not self._room():
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

    def _room(self) -> bool:
        """Wait for the reader, unless an earlier wait was in vain; return whether there is room."""
        if self._stalled:
            return False
        import select

        poll = select.poll()
        poll.register(self._descriptor.number, select.POLLOUT)
        return bool(poll.poll(PATIENCE_SECONDS * 1000))


def _identity(number: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(number)
    except OSError:
        return None
    return status.st_dev, status.st_ino
