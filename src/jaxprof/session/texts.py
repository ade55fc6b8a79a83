"""Long texts, kept once by content hash and decoded only when needed.

An HLO module can be megabytes of text; a session of twenty runs has many, some of them equal. The log keeps each as
zlib-compressed base64 chunks; this holds the chunks undecoded.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterator

from jaxprof.errors import FileRefusedError
from jaxprof.events import Event, TextChunk, TextRecorded
from jaxprof.files import unpacked

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


class Texts:
    """The chunks of a session's long texts, by digest."""

    def __init__(self) -> None:
        self._pieces: dict[str, dict[int, str]] = {}
        self._counts: dict[str, int] = {}

    def add(self, chunk: TextChunk) -> None:
        """Add one chunk. A repeated chunk replaces itself."""
        self._pieces.setdefault(chunk.digest, {})[chunk.index] = chunk.data
        self._counts[chunk.digest] = chunk.count

    def __contains__(self, digest: str) -> bool:
        """Return whether all chunks of the text have arrived."""
        return digest in self._pieces and len(self._pieces[digest]) == self._counts[digest]

    def decode(self, digest: str) -> str:
        """Return the text. Raises FileRefusedError if a chunk is missing or damaged, or beyond the limit `unpacked`."""
        if digest not in self:
            raise FileRefusedError(
                f"the text {digest[:12]} is not whole in this session",
                "The session was interrupted while it was being written; run the workload again to have it.",
            )
        pieces = self._pieces[digest]
        try:
            packed = base64.b64decode("".join(pieces[index] for index in range(len(pieces))), validate=True)
            raw = b"".join(unpacked(packed, f"the text {digest[:12]} of this session", wbits=15))
        except (KeyError, ValueError, EOFError, zlib.error) as error:
            raise FileRefusedError(f"the text {digest[:12]} is damaged in this session: {error}") from error
        if hashlib.sha256(raw).hexdigest() != digest:
            raise FileRefusedError(f"the text {digest[:12]} is damaged in this session: its hash differs")
        return raw.decode("utf-8", "replace")
