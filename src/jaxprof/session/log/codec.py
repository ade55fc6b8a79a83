"""Encode an event as a line of JSON, and decode it, with msgspec: the client reads files of 100 000 lines.

JSON can hold a number of four hundred digits, and lists a thousand levels deep. Both pass every check of types, and
break what is derived from them later: a sum becomes infinite, a report recurses too deep. msgspec checks numbers that
have a type while it reads them, at no cost; `are_bounded` checks the few values that have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from jaxprof.base.errors import FileRefusedError
from jaxprof.base.limits import DEPTH
from jaxprof.events import SCHEMA_MAJOR, SCHEMA_MINOR, Event, Header, RunPlanned, event_type
from jaxprof.events.base import fields_of
from jaxprof.session.files import EXTENSION

LARGEST_INTEGER = (1 << 63) - 1
LARGEST_FLOAT = 1e100
"""Limit beyond every duration, size and count, and small enough for a product of three to be finite."""
_BOUNDED: dict[Any, Any] = {
    int: Annotated[int, msgspec.Meta(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)],
    float: Annotated[float, msgspec.Meta(ge=-LARGEST_FLOAT, le=LARGEST_FLOAT)],
}


def limit_numbers(kind: type, around: tuple[type, ...] = ()) -> bool:
    """Write the bounds into the annotations of the dataclass `kind`, and of those that its fields hold. msgspec reads
    annotations once, when it first makes a decoder of the type.

    Return whether values can be deeper than their types, by `Any` or by a type within itself: then `are_bounded` has to
    check each. `around`: the types that hold `kind`.
    """
    unlimited = False

    def with_bounds(hint: Any) -> Any:
        nonlocal unlimited
        if hint is Any:
            unlimited = True
        elif is_dataclass(hint):
            assert isinstance(hint, type)
            unlimited |= hint in (*around, kind) or limit_numbers(hint, (*around, kind))
        elif get_origin(hint) in (Union, UnionType):
            return Union[tuple(map(with_bounds, get_args(hint)))]  # noqa: UP007
        elif arguments := get_args(hint):
            return get_origin(hint)[tuple(map(with_bounds, arguments))]
        return _BOUNDED.get(hint, hint)

    hints = get_type_hints(kind)
    kind.__annotations__ = kind.__annotations__ | {item.name: with_bounds(hints[item.name]) for item in fields(kind)}
    return unlimited


def are_bounded(values: Any, levels: int | None = None) -> bool:
    """Return whether numbers of a value are within the bounds, and it has at most so many `levels` (default: DEPTH)."""
    levels = DEPTH.most if levels is None else levels
    if levels < 0:
        return False
    if isinstance(values, dict):
        values = values.values()
    elif is_dataclass(values):
        kind: Any = type(values)
        values = _values_of(kind)(values)
    for value in values:
        if value is None or isinstance(value, str):
            continue
        if isinstance(value, float):
            if not -LARGEST_FLOAT <= value <= LARGEST_FLOAT:
                return False
        elif isinstance(value, int):
            if not -LARGEST_INTEGER <= value <= LARGEST_INTEGER:
                return False
        elif not are_bounded(value, levels - 1):
            return False
    return True


@cache
def _values_of(kind: Any) -> Callable[[Any], Iterable[Any]]:
    """Return a function that returns the values of the fields of a dataclass."""
    names = [item.name for item in fields(kind)]
    return attrgetter(*names) if len(names) > 1 else lambda value: [getattr(value, name) for name in names]


T = TypeVar("T")

_ENCODER = msgspec.json.Encoder()
_DECODERS: dict[bytes, Callable[[bytes], Any]] = {}
"""Functions that decode a line, by type, each made when needed: all of them take longer than a short session."""
_PREFIXES: dict[type[Event], bytes] = {}
"""Beginning of a line, by the type of its event."""
_TYPE = re.compile(rb'\{"type":"([a-z_]+)"')
_OPEN: set[type] = {Header}
"""Types whose values may be deeper than the types say: `are_bounded` checks all of their numbers, too."""
_HEADER = msgspec.json.Decoder(Header)


class _Tag(msgspec.Struct):
    type: str = ""


_TAG = msgspec.json.Decoder(_Tag)


class UnknownEvent(ValueError):
    """A valid event of a type that this version does not know."""


def encode_line(event: Event) -> bytes:
    """Return the line of `event`, with its line break."""
    cls = type(event)
    prefix = _PREFIXES.get(cls) or _PREFIXES.setdefault(cls, b'{"type":"' + event.type.encode() + b'",')
    return prefix + _ENCODER.encode(fields_of(event) if cls is RunPlanned else event)[1:] + b"\n"


def decode_line(line: bytes) -> Event:
    """Return the event on `line`. Raises UnknownEvent for a type of a newer version, ValueError for anything else: JSON
    that is damaged, a value of another type than it should have, a number or a depth out of bounds."""
    match = _TYPE.match(line)
    try:
        name = match.group(1) if match else _TAG.decode(line).type.encode()
        decode = _DECODERS.get(name)
        if decode is None:
            cls = event_type(name.decode())
            if cls is None:
                if match:
                    msgspec.json.decode(line)  # a torn line can begin like an unknown type
                raise UnknownEvent(name.decode())
            if limit_numbers(cls):
                _OPEN.add(cls)
            decode = _DECODERS[name] = _decode_planned if cls is RunPlanned else msgspec.json.Decoder(cls).decode
        event: Event = _shallow(decode(line))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not an event: {error}") from error
    return event


def _shallow(decoded: T) -> T:
    """Return `decoded` itself. Raises msgspec.ValidationError if a value that its type leaves open is out of bounds."""
    if type(decoded) in _OPEN and not are_bounded(decoded):
        raise msgspec.ValidationError(f"a number is out of bounds, or it has {DEPTH.words}. {DEPTH.hint}")
    return decoded


def _decode_planned(line: bytes) -> RunPlanned:
    """Decode the line both as the event and as its spec: msgspec ignores the fields of the other."""
    payload = msgspec.json.decode(line)
    return msgspec.convert({**payload, "spec": payload}, RunPlanned)


def encode_header(header: Header) -> bytes:
    """Return the first line of a file, with its line break."""
    return _ENCODER.encode(header) + b"\n"


def decode_header(line: bytes, name: str) -> Header:
    """Return the header on the first line of file `name`. Raises FileRefusedError with what the file seems to be."""
    try:
        header = _shallow(_HEADER.decode(line))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise _refusal(name, line) from None
    if header.format != "jaxprof" or not header.session:
        raise _refusal(name, line)
    if header.schema_major > SCHEMA_MAJOR:
        raise FileRefusedError(
            f"{name} was written by jaxprof {header.jaxprof}, with schema {header.schema_major}; "
            f"this one reads up to {SCHEMA_MAJOR}.x",
            "Upgrade jaxprof.",
        )
    return header


def newer_minor(header: Header) -> bool:
    """Return whether the file may hold events and fields that this version does not know."""
    return header.schema_major == SCHEMA_MAJOR and header.schema_minor > SCHEMA_MINOR


def _refusal(name: str, start: bytes) -> FileRefusedError:
    """Return the error for a file that is no session, by its first bytes."""
    if start.startswith(b'{"format":"jaxprof"'):
        return FileRefusedError(f"the header of {name}, its first line, is damaged", "Copy the file again.")
    if start.startswith(b"\x1f\x8b"):
        guess = "It is a gzip file. Sessions are plain JSON lines: gunzip it first if it holds one."
    elif start.lstrip().startswith((b"HloModule", b"//", b"/*")):
        guess = "It looks like HLO text: jaxprof hlo FILE shows it, jaxprof hlo FILE --diff OTHER compares two."
    elif start.lstrip().startswith((b"module", b"#loc")):
        guess = "It looks like MLIR text (StableHLO); a session file is written by jaxprof run."
    else:
        return FileRefusedError(
            f"{name} is neither a session nor a profile",
            f"A session ends in {EXTENSION} and is written by jaxprof run; a profile is the .xplane.pb that "
            "jax.profiler writes, or its folder.",
        )
    return FileRefusedError(f"{name} is not a jaxprof session", guess)
