"""One event as one line of JSON, and back, with msgspec: the client's side, where 100 000 lines are common."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from jaxprof.errors import FileRefusedError
from jaxprof.events import EVENT_TYPES, SCHEMA_MAJOR, SCHEMA_MINOR, Event, Header

EXTENSION = ".jaxprof"

_ENCODER = msgspec.json.Encoder()
_DECODERS: dict[bytes, msgspec.json.Decoder[Any]] = {}
"""Made when a type is first met: all of them take longer than a short session to read."""
_PREFIXES = {cls: b'{"type":"' + name.encode() + b'",' for name, cls in EVENT_TYPES.items()}
_TYPE = re.compile(rb'\{"type":"([a-z_]+)"')
_HEADER = msgspec.json.Decoder(Header)


class _Tag(msgspec.Struct):
    type: str = ""


_TAG = msgspec.json.Decoder(_Tag)


class UnknownEvent(ValueError):
    """A line that is sound JSON, of a type that this version does not know."""


def encode_line(event: Event) -> bytes:
    """The line of `event`, with its line break."""
    return _PREFIXES[type(event)] + _ENCODER.encode(event)[1:] + b"\n"


def decode_line(line: bytes) -> Event:
    """The event on `line`. Raises UnknownEvent for a type of a newer version, ValueError for anything else."""
    match = _TYPE.match(line)
    try:
        name = match.group(1) if match else _TAG.decode(line).type.encode()
        decoder = _DECODERS.get(name) or _new_decoder(name)
        if decoder is None:
            if match:
                msgspec.json.decode(line)  # a torn line can begin like an unknown type
            raise UnknownEvent(name.decode())
        event: Event = decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(f"not an event: {error}") from error
    return event


def _new_decoder(name: bytes) -> msgspec.json.Decoder[Any] | None:
    cls = EVENT_TYPES.get(name.decode())
    if cls is None:
        return None
    decoder = _DECODERS[name] = msgspec.json.Decoder(cls)
    return decoder


def encode_header(header: Header) -> bytes:
    """The first line of a file, with its line break."""
    return _ENCODER.encode(header) + b"\n"


def decode_header(line: bytes, name: str) -> Header:
    """The header on the first line of the file `name`. Raises FileRefusedError saying what the file is instead."""
    try:
        header = _HEADER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise _refused(name, line) from None
    if header.format != "jaxprof" or not header.session:
        raise _refused(name, line)
    if header.schema_major > SCHEMA_MAJOR:
        raise FileRefusedError(
            f"{name} was written by jaxprof {header.jaxprof}, with schema {header.schema_major}; "
            f"this one reads up to {SCHEMA_MAJOR}.x",
            "Upgrade: pip install --upgrade jaxprof",
        )
    return header


def newer_minor(header: Header) -> bool:
    """Whether the file may hold events and fields that this version does not know."""
    return header.schema_major == SCHEMA_MAJOR and header.schema_minor > SCHEMA_MINOR


def _refused(name: str, start: bytes) -> FileRefusedError:
    guess = _what_it_is(start)
    if guess:
        return FileRefusedError(f"{name} is not a jaxprof session", guess)
    return FileRefusedError(
        f"{name} is neither a session nor a profile",
        f"A session ends in {EXTENSION} and is written by jaxprof run; a profile is the .xplane.pb or .trace.json.gz "
        "that jax.profiler writes, or its folder.",
    )


def _what_it_is(start: bytes) -> str:
    """A guess at what somebody meant by giving this file, from its first bytes; empty where there is none."""
    if start.startswith(b"\x1f\x8b"):
        return "It is a gzip file. Sessions are plain JSON lines: gunzip it first if it holds one."
    if start.lstrip().startswith((b"HloModule", b"//", b"/*")):
        return "It looks like HLO text: jaxprof hlo FILE shows it."
    if start.lstrip().startswith((b"module", b"#loc")):
        return "It looks like MLIR text (StableHLO); a session file is written by jaxprof run."
    return ""
