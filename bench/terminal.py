"""A program in a pseudo-terminal, as a user's terminal would run it: bytes in, bytes out, and when they came."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence


class Terminal:
    """One program in one pseudo-terminal."""

    def __init__(
        self, command: Sequence[str], columns: int = 80, rows: int = 24, environment: Mapping[str, str] | None = None
    ) -> None:
        self.began = time.perf_counter()
        self.output = bytearray()
        """Everything that it has written so far."""
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": "xterm-256color", "COLORTERM": "truecolor", **(environment or {})})
            os.execvp(command[0], list(command))
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds: float) -> bytes:
        """What it writes within `seconds`, as soon as there is something; nothing when it wrote nothing, or ended."""
        ready, _, _ = select.select([self._fd], [], [], max(0.0, seconds))
        if not ready:
            return b""
        try:
            data = os.read(self._fd, 1 << 16)
        except OSError:  # the other side is closed
            return b""
        self.output += data
        if b"\x1b[c" in data:  # what kind of terminal is this? Each one answers.
            self.send(b"\x1b[?62;22c")
        return data

    def wait(self, pattern: bytes, timeout: float = 30.0, start: int = 0) -> float:
        """Seconds since the start of the program until `pattern` was in what it wrote. Raises TimeoutError."""
        wanted = re.compile(pattern)
        deadline = time.perf_counter() + timeout
        while not wanted.search(self.output, start):
            if not self.read(deadline - time.perf_counter()) and time.perf_counter() >= deadline:
                raise TimeoutError(f"{pattern!r} was not written in {timeout:g} s: {bytes(self.output[-400:])!r}")
        return time.perf_counter() - self.began

    def drain(self, quiet: float, most: float = 30.0) -> None:
        """Reads until nothing was written for `quiet` seconds, at most for `most` seconds."""
        deadline = time.perf_counter() + most
        while time.perf_counter() < deadline:
            if not self.read(min(quiet, max(0.0, deadline - time.perf_counter()))):
                return

    def send(self, data: bytes) -> None:
        """Presses keys."""
        os.write(self._fd, data)

    def cpu_seconds(self) -> float:
        """CPU time of the program so far, without its children."""
        with open(f"/proc/{self.pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        """Asks it to end, and ends it if it does not within five seconds: so its children end as well."""
        os.kill(self.pid, signal.SIGTERM)
        deadline = time.perf_counter() + 5
        while time.perf_counter() < deadline:
            self.read(0.05)
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                os.close(self._fd)
                return
        self.close()

    def close(self) -> None:
        """Ends it at once."""
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        os.close(self._fd)
