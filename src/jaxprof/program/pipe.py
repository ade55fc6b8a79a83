"""The pipe from a program to its recorder's client: lines out, and nothing that the program could notice.

A program may close descriptors that it does not know, stop its reader, change what SIGPIPE does, fork, or be
interrupted in the middle of a write. So: the descriptors are high ones, closed on exec; each write first looks whether
the descriptor still is our pipe; the program holds the reading end too, so that a pipe whose reader has gone fills up
instead of raising a signal; a full pipe is waited for once, briefly, then lines are dropped and counted; no lock is
ever waited for.
"""

from __future__ import annotations

import os
from _thread import allocate_lock  # not `threading`: this is part of the program's start

PATIENCE_SECONDS = 0.2
"""How long the program is held up by a client that does not read, the first time; after that not at all."""
_HIGHEST = 1024
"""Descriptors from here on trouble `select`."""
_RESERVED = 16


def hidden(descriptor: int) -> int:
    """Moves an inherited descriptor to where the program will not meet it, closed on exec; gives the new number."""
    import fcntl

    limit = os.sysconf("SC_OPEN_MAX")
    lowest = max(3, min(limit if limit > 0 else _HIGHEST, _HIGHEST) - _RESERVED)
    try:
        moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, lowest)
    except OSError:  # as many as may be are open already
        os.set_inheritable(descriptor, False)
        return descriptor
    os.close(descriptor)
    return moved


class Descriptor:
    """A descriptor of ours, with what it stood for when it was made."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._owner = os.getpid()
        self._identity = _identity(number)

    @property
    def ours(self) -> bool:
        """Whether it still is what it was, in the process that it was made for."""
        return os.getpid() == self._owner and self._identity is not None and _identity(self.number) == self._identity


class ProgramPipe:
    """Sends lines, from any thread, also from a signal handler that came in the middle of a line."""

    def __init__(self, writing: int, reading: int) -> None:
        """Both ends of the pipe, as inherited."""
        self._descriptor = Descriptor(hidden(writing))
        self._reading = hidden(reading)
        os.set_blocking(self._descriptor.number, False)
        self._waiting: list[bytes] = []
        self._turn = allocate_lock()
        self._rest = memoryview(b"")
        self._stalled = False
        self.dropped = 0
        """Lines that the client will not see."""

    def send(self, line: bytes) -> None:
        """Writes `line` and a line break; or leaves it to the thread that is writing."""
        if not self._descriptor.ours:
            return
        self._waiting.append(line)
        while (self._waiting or self._rest) and self._turn.acquire(blocking=False):
            try:
                going = self._write_next()
            finally:
                self._turn.release()
            if not going:
                return

    def _write_next(self) -> bool:
        """Writes one line, or the rest of one. False where the pipe takes no more."""
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
                    self._drop()
                    return False
            except OSError:
                self._waiting.clear()
                self._rest = memoryview(b"")
                return False
        return True

    def _room(self) -> bool:
        """Waits for the reader, unless it has been waited for in vain before."""
        if self._stalled:
            return False
        import select

        poll = select.poll()
        poll.register(self._descriptor.number, select.POLLOUT)
        return bool(poll.poll(PATIENCE_SECONDS * 1000))

    def _drop(self) -> None:
        """What waits is lost; half a line is kept, for its other half has been read."""
        lost = len(self._waiting)
        del self._waiting[:lost]
        self.dropped += lost


def _identity(number: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(number)
    except OSError:
        return None
    return found.st_dev, found.st_ino
