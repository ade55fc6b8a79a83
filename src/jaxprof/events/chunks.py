"""A long text as events: its chunks, and the event that names them.

An HLO module can be megabytes of text; a session of twenty runs has many, some of them equal. The log keeps each once,
by content hash, as zlib-compressed base64 chunks.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterator

from jaxprof.events.base import Event
from jaxprof.events.runs import TextChunk, TextRecorded

INLINE_BYTES = 64 * 1024
"""Size of the longest text that its event holds; a longer text is stored separately, in chunks."""
CHUNK_CHARACTERS = 256 * 1024
"""Largest number of base64 characters in one chunk."""


def in_pieces(event: Event) -> Iterator[Event]:
    """Yield `event`; for a long text, its chunks and the event that names them. The maker of a text splits it, so that
    no reader of events meets a line as long as a module."""
    if isinstance(event, TextRecorded) and event.text:
        yield from split(event.name, event.text, event.run, event.monotonic_seconds)
    else:
        yield event


def split(name: str, text: str, run: str = "", monotonic_seconds: float = 0.0) -> Iterator[TextChunk | TextRecorded]:
    """Yield the events that record `text`: one event, or its chunks and then the event that names them."""
    raw = text.encode("utf-8", "backslashreplace")
    if len(raw) <= INLINE_BYTES:
        yield TextRecorded(run=run, monotonic_seconds=monotonic_seconds, name=name, text=text, bytes=len(raw))
        return
    digest = hashlib.sha256(raw).hexdigest()
    data = base64.b64encode(zlib.compress(raw, 6)).decode("ascii")
    pieces = [data[start : start + CHUNK_CHARACTERS] for start in range(0, len(data), CHUNK_CHARACTERS)]
    for index, piece in enumerate(pieces):
        yield TextChunk(
            run=run,
            monotonic_seconds=monotonic_seconds,
            digest=digest,
            index=index,
            count=len(pieces),
            data=piece,
        )
    yield TextRecorded(run=run, monotonic_seconds=monotonic_seconds, name=name, digest=digest, bytes=len(raw))
