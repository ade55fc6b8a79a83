"""A real terminal for a process: a pty, and what a person would see on its screen.

Only what Textual and a program's lines need of a terminal is here: text, cursor addressing, and escape sequences that
are left out. Waits are for what is on the screen; none is for time.
"""

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from functools import partial

from jaxprof.base.text import columns
from waiting import SLOWER

PATIENCE_SECONDS = 60.0 * SLOWER
"""The first start of an app on a loaded machine compiles its bytecode, and that of what it imports."""
SEQUENCE = re.compile(
    r"\x1b\[(?P<arguments>[0-?]*)[ -/]*(?P<final>[@-~])"
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\)"
    r"|\x1b[ -/]*[0-Z\\^-~]",
    re.DOTALL,
)


class Screen:
    """The characters of a terminal, after what was written to it."""

    def __init__(self, width, height):
        self.width, self.height = width, height
        self._rows = [[" "] * width for _ in range(height)]
        self._x = self._y = 0
        self._rest = ""

    @property
    def text(self) -> str:
        """What a person reads: the lines without the blanks at their ends."""
        return "\n".join("".join(row).rstrip() for row in self._rows)

    def write(self, text: str) -> None:
        text, at = self._rest + text, 0
        while at < len(text):
            if text[at] != "\x1b":
                self._put(text[at])
                at += 1
            elif (found := SEQUENCE.match(text, at)) is not None:
                if found["final"] is not None:
                    self._control(found["final"], found["arguments"])
                at = found.end()
            else:
                break  # the rest of it comes with the next piece
        self._rest = text[at:]

    def _put(self, character):
        if character == "\r":
            self._x = 0
        elif character == "\n":
            self._y += 1
            if self._y == self.height:
                self._rows = [*self._rows[1:], [" "] * self.width]
                self._y -= 1
        elif character >= " " and (width := columns(character)) and self._x + width <= self.width:
            self._rows[self._y][self._x : self._x + width] = [character, *[""] * (width - 1)]
            self._x += width

    def _control(self, final, arguments):
        if final == "H":
            row, _, column = arguments.partition(";")
            self._y = min(max(int(row or 1), 1), self.height) - 1
            self._x = min(max(int(column or 1), 1), self.width) - 1
        elif final == "C":
            self._x = min(self._x + int(arguments or 1), self.width - 1)
        elif (final == "J" and arguments == "2") or (final in "hl" and arguments == "?1049"):
            # The alternate screen comes and goes: what was on the other one is not kept, nobody asks for it here.
            self._rows = [[" "] * self.width for _ in range(self.height)]
            self._x = self._y = 0


class Terminal:
    """A process on a pty of its own, which ends with the `with` block."""

    def __init__(self, command, cwd, environment, *, size=(120, 40)):
        self.screen = Screen(*size)
        self.shown = ""
        """All that was written, escape sequences included; ends of lines are those of a file."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._main, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        variables = {**environment, "TERM": "xterm-256color", "COLUMNS": str(size[0]), "LINES": str(size[1])}
        streams = {"stdin": other, "stdout": other, "stderr": other}
        log_in = partial(os.login_tty, other)
        self.process = subprocess.Popen(command, cwd=cwd, env=variables, preexec_fn=log_in, **streams)
        os.close(other)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self.close()

    @property
    def plain(self) -> str:
        """What was written, without escape sequences: from Python 3.13 on, tracebacks have colours."""
        return SEQUENCE.sub("", self.shown)

    def echoes(self) -> bool:
        """Whether the terminal shows what is typed, as a shell wants it and an app does not."""
        return bool(termios.tcgetattr(self._main)[3] & termios.ECHO)

    def type(self, keys: bytes) -> None:
        os.write(self._main, keys)

    def until(self, text: str, after: str = "") -> None:
        """Reads on until `text` was written; `after`: behind the last place of another text."""
        self._until(lambda: text in (self.shown.rpartition(after)[2] if after else self.shown), text)

    def sees(self, text: str) -> None:
        """Reads on until `text` is on the screen."""
        self._until(lambda: text in self.screen.text, text)

    def loses(self, text: str) -> None:
        """Reads on until `text` is no longer on the screen and nothing more comes for a moment.

        In the middle of a frame it can be gone. What is typed then follows Esc so soon that both are read as one key.
        """
        while True:
            self._until(lambda: text not in self.screen.text, f"no {text}")
            if not self._read(0.15):
                return

    def end(self) -> int:
        """Reads to the end; gives the exit code."""
        while self._read(PATIENCE_SECONDS):
            pass
        return self.process.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._main)

    def _until(self, holds, wanted):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            assert self._read(deadline - time.monotonic()), (
                f"waited for {wanted!r}; exit code {self.process.poll()}; on the screen:\n{self.screen.text}"
            )

    def _read(self, seconds):
        """Takes in what comes within `seconds`; false when nothing did, or nothing will."""
        if not select.select([self._main], [], [], max(0.0, seconds))[0]:
            return False
        try:
            data = os.read(self._main, 65536)
        except OSError:  # Linux's word for the end of a terminal
            return False
        text = self._decoder.decode(data)
        self.shown += text.replace("\r\n", "\n")
        self.screen.write(text)
        return bool(data)
