"""Bytes of a pipe as lines, and what a line of somebody's output looks like in the log."""

from __future__ import annotations

import os
import select

LOG_LINE_LIMIT = 8192
"""Characters of a line that are kept; also where a line that never ends is cut."""


class Lines:
    """Collects what is read from a pipe; gives it as lines."""

    def __init__(self, limit: int | None = None) -> None:
        """`limit`: bytes after which a line is taken as one although it has not ended (a progress bar)."""
        self._limit = limit
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes, without those that are empty."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if self._limit is not None and len(self._rest) > self._limit:
            lines.append(self._rest)
            self._rest = b""
        return [line for line in lines if line]

    def end(self) -> list[bytes]:
        """What stood there without a line break when the pipe ended."""
        rest, self._rest = self._rest, b""
        return [rest] if rest else []


def output_text(line: bytes) -> str:
    """A line of output: of a progress bar that overwrites itself only what it showed last."""
    shown = line.rstrip(b"\r")
    if b"\r" in shown:
        shown = shown.rsplit(b"\r", 1)[-1]
    return shown.decode("utf-8", "replace")[:LOG_LINE_LIMIT]


def write_all(descriptor: int, data: bytes) -> None:
    """All of `data`, as soon as the descriptor takes it; it may be one that does not block. Raises OSError."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
