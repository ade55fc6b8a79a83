"""A session without what makes its file long: only the lines of some types are decoded, the others are skipped unread.

For a listing, and for whoever reads hundreds of sessions for a few figures of each. What was left out is as if it had
not been recorded: an outline is not for screens of one session.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from jaxprof.errors import FileRefusedError, system_words
from jaxprof.events import Event, Header
from jaxprof.files import open_regular
from jaxprof.limits import LINE
from jaxprof.session.log.codec import decode_header, decode_line, newer_minor

if TYPE_CHECKING:
    from jaxprof.session import Session

OUTLINE = (
    "run_planned",
    "worker_started",
    "environment_read",
    "revision_read",
    "phase_ended",
    "samples_taken",
    "text_recorded",
    "cost_reported",
    "memory_reported",
    "check_reported",
    "run_closed",
    "session_closed",
)
"""What `read_outline` reads: plans, launches, environments, phases, samples, exact facts, checks, summaries."""


_BLOCK_BYTES: Final = 4 << 20


def read_outline(path: Path, types: tuple[str, ...] = OUTLINE) -> Session:
    """The session of the lines of these types.

    Raises FileRefusedError if the file is not a session, or cannot be read, and FileNotFoundError.
    """
    from jaxprof.session import Session

    try:
        with open_regular(path) as file:
            header = read_header(file, path.name)
            session = Session(header)
            if newer_minor(header):
                session.notice("written with a newer schema: what this version does not know is left out")
            session.extend(events_of(file, types))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise FileRefusedError(f"{path.name} cannot be read: {system_words(error)}") from error
    return session


def read_header(file: BinaryIO, name: str) -> Header:
    """The header of an open file. Raises FileRefusedError if it is not a session's."""
    return decode_header(file.readline(LINE.most), name)


def events_of(file: BinaryIO, types: tuple[str, ...]) -> Iterator[Event]:
    """The events of these types in the rest of the file, in their order; a line that is torn, damaged or too long is
    left out. Raises OSError."""
    # Read, and not mapped: a mapped file that another process truncates ends this one with SIGBUS.
    rest = b"\n"
    while block := file.read(_BLOCK_BYTES):
        data = rest + block
        end = data.rfind(b"\n")
        for match in _lines(types).finditer(data):
            try:
                event = decode_line(match.group(1))
            except ValueError:
                continue
            if event.type in types:
                yield event
        rest = data[max(end, 0) :]
        if len(rest) > LINE.most:
            rest = b""  # without a line break before it, what follows of the line is no line


@cache
def _lines(types: tuple[str, ...]) -> re.Pattern[bytes]:
    names = "|".join(types).encode()
    # What another tool has written again (spaces, sorted keys) is decoded to know its type.
    return re.compile(rb'\n((?:\{"type":"(?:' + names + rb')"|(?!\{"type":")\s*\{)[^\n]*)(?=\n)')
