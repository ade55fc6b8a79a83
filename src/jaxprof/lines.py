"""Split bytes that arrive in blocks into lines, in time linear in what arrives, however long a line is."""

from __future__ import annotations


class LineBuffer:
    """Collects the pieces of a line until its end arrives."""

    def __init__(self, longest: int, *, cut: bool = False) -> None:
        """Leave out a line of more than `longest` bytes; with `cut`, return what has arrived of it as a line."""
        self._longest, self._cut = longest, cut
        self._pieces: list[bytes] = []
        self._size = 0
        self._skipping = False
        self._left_out = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that `data` completes, without their line breaks."""
        lines = data.split(b"\n")
        rest = lines.pop()  # not `*lines, rest =`: that copies the list, of millions where a file is empty lines
        if lines:
            lines[0] = self._joined(lines[0])
            if self._skipping:
                del lines[0]
                self._skipping = False
            if not self._cut and len(max(lines, key=len, default=b"")) > self._longest:
                whole = [line for line in lines if len(line) <= self._longest]
                self._left_out += len(lines) - len(whole)
                lines = whole
        if not self._skipping:
            self._pieces.append(rest)
            self._size += len(rest)
        if self._size > self._longest:
            if self._cut:
                lines.append(self._joined(b""))
            else:
                self._pieces, self._size, self._skipping = [], 0, True
                self._left_out += 1
        return lines

    def end(self) -> bytes:
        """Return the beginning of a line that has no end."""
        return self._joined(b"")

    def take_left_out(self) -> int:
        """Return how many lines were left out since the last call."""
        left_out, self._left_out = self._left_out, 0
        return left_out

    def _joined(self, last: bytes) -> bytes:
        line = b"".join((*self._pieces, last))
        self._pieces, self._size = [], 0
        return line
