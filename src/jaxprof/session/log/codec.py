"""Encode an event as a line of JSON, and decode it, with msgspec: the client reads files of 100 000 lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from jaxprof.errors import FileRefusedError
from jaxprof.events import SCHEMA_MAJOR, SCHEMA_MINOR, Event, Header, RunPlanned, event_type
from jaxprof.events.wire import fields_of
from jaxprof.limits import DEPTH
from jaxprof.session.log.bounds import are_bounded, bound_numbers
from jaxprof.session_names import EXTENSION

T = TypeVar("T")
Repair = Callable[[Any, list[object]], Any]
_LEFT_OUT = object()

_ENCODER = msgspec.json.Encoder()
_DECODERS: dict[bytes, msgspec.json.Decoder[Any] | _FlatDecoder] = {}
"""Made when a type first occurs: making all of them takes longer than reading a short session."""
_PREFIXES: dict[type[Event], bytes] = {}
"""The beginning of a line, by the type of its event."""
_FLAT: dict[type[Event], list[str]] = {RunPlanned: ["spec"]}
"""Events with fields that are replaced by their own fields in JSON, as `events.base.FLAT` marks them."""
_TYPE = re.compile(rb'\{"type":"([a-z_]+)"')
_OPEN: set[type] = {Header}
"""Types whose values may be deeper than the types say: `are_bounded` looks at all of their numbers, too."""
_HEADER = msgspec.json.Decoder(Header)


class _Tag(msgspec.Struct):
    type: str = ""


_TAG = msgspec.json.Decoder(_Tag)


class UnknownEvent(ValueError):
    """A valid event of a type that this version does not know."""


def encode_line(event: Event) -> bytes:
    """The line of `event`, with its line break."""
    cls = type(event)
    prefix = _PREFIXES.get(cls) or _PREFIXES.setdefault(cls, b'{"type":"' + event.type.encode() + b'",')
    return prefix + _ENCODER.encode(fields_of(event) if cls in _FLAT else event)[1:] + b"\n"


def decode_line(line: bytes, on_damaged_row: Callable[[str], object] | None = None) -> Event:
    """The event on `line`. Raises UnknownEvent for a type of a newer version, ValueError for anything else.

    A damaged row of its tables is left out; `on_damaged_row` is called with the event's type for each. Damaged is what
    has another type than it should, and a number or a depth that is out of bounds (`bounds`).
    """
    match = _TYPE.match(line)
    try:
        name = match.group(1) if match else _TAG.decode(line).type.encode()
        decoder = _DECODERS.get(name) or _new_decoder(name)
        if decoder is None:
            if match:
                msgspec.json.decode(line)  # a torn line can begin like an unknown type
            raise UnknownEvent(name.decode())
        try:
            event: Event = _shallow(decoder.decode(line))
        except msgspec.ValidationError:
            if isinstance(decoder, _FlatDecoder):
                raise
            left_out: list[object] = []
            event = _shallow(without_damaged_rows(msgspec.json.decode(line), decoder.type, left_out))
            if on_damaged_row is not None:
                for _ in left_out:
                    on_damaged_row(name.decode())
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not an event: {error}") from error
    return event


def _shallow(decoded: T) -> T:
    """`decoded` itself. Raises msgspec.ValidationError if what its type leaves open is out of bounds."""
    if type(decoded) in _OPEN and not are_bounded(decoded):
        raise msgspec.ValidationError(f"a number is out of bounds, or it has {DEPTH.words}. {DEPTH.hint}")
    return decoded


def _new_decoder(name: bytes) -> msgspec.json.Decoder[Any] | _FlatDecoder | None:
    cls = event_type(name.decode())
    if cls is None:
        return None
    if bound_numbers(cls):
        _OPEN.add(cls)
    decoder = _DECODERS[name] = _FlatDecoder(cls) if cls in _FLAT else msgspec.json.Decoder(cls)
    return decoder


class _FlatDecoder:
    """The decoder of an event with a value whose fields are the event's own in JSON."""

    def __init__(self, cls: type[Event]) -> None:
        self._cls = cls

    def decode(self, line: bytes) -> Any:
        """Decode the line both as the event and as its value: msgspec ignores the fields of the other."""
        payload = msgspec.json.decode(line)
        return msgspec.convert({**payload, **dict.fromkeys(_FLAT[self._cls], payload)}, self._cls)


def encode_header(header: Header) -> bytes:
    """The first line of a file, with its line break."""
    return _ENCODER.encode(header) + b"\n"


def decode_header(line: bytes, name: str) -> Header:
    """The header on the first line of the file `name`. Raises FileRefusedError with what the file seems to be."""
    try:
        header = _shallow(_HEADER.decode(line))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise _refused(name, line) from None
    if header.format != "jaxprof" or not header.session:
        raise _refused(name, line)
    if header.schema_major > SCHEMA_MAJOR:
        raise FileRefusedError(
            f"{name} was written by jaxprof {header.jaxprof}, with schema {header.schema_major}; "
            f"this one reads up to {SCHEMA_MAJOR}.x",
            "Upgrade jaxprof.",
        )
    return header


def newer_minor(header: Header) -> bool:
    """Whether the file may hold events and fields that this version does not know."""
    return header.schema_major == SCHEMA_MAJOR and header.schema_minor > SCHEMA_MINOR


def _refused(name: str, start: bytes) -> FileRefusedError:
    if start.startswith(b'{"format":"jaxprof"'):
        return FileRefusedError(f"the header of {name}, its first line, is damaged", "Copy the file again.")
    guess = _what_it_is(start)
    if guess:
        return FileRefusedError(f"{name} is not a jaxprof session", guess)
    return FileRefusedError(
        f"{name} is neither a session nor a profile",
        f"A session ends in {EXTENSION} and is written by jaxprof run; a profile is the .xplane.pb or .trace.json.gz "
        "that jax.profiler writes, or its folder.",
    )


def _what_it_is(start: bytes) -> str:
    """What the file seems to be, by its first bytes; empty if that is unknown."""
    if start.startswith(b"\x1f\x8b"):
        return "It is a gzip file. Sessions are plain JSON lines: gunzip it first if it holds one."
    if start.lstrip().startswith((b"HloModule", b"//", b"/*")):
        return "It looks like HLO text: jaxprof hlo FILE shows it."
    if start.lstrip().startswith((b"module", b"#loc")):
        return "It looks like MLIR text (StableHLO); a session file is written by jaxprof run."
    return ""


def without_damaged_rows(data: Any, kind: type[T], left_out: list[object]) -> T:
    """`data`, decoded from JSON, as the dataclass `kind`. Damaged rows are added to `left_out` instead; in a list whose
    rows are referred to by number (`list[Row | None]`), None takes their place.

    Only for a line that msgspec has refused, since it does not tell which rows are damaged. Raises
    msgspec.ValidationError if something other than a row is damaged.
    """
    return msgspec.convert(_repaired(data, kind, left_out), kind)


def _repaired(data: Any, kind: type, left_out: list[object]) -> Any:
    if not isinstance(data, dict):
        return data
    repaired = dict(data)
    for name, repair in _repairs(kind).items():
        if name in repaired and (value := repair(repaired[name], left_out)) is not _LEFT_OUT:
            repaired[name] = value
        else:
            repaired.pop(name, None)
    return repaired


@cache
def _repairs(kind: type) -> dict[str, Repair]:
    """How to repair each field that holds a row or a list of rows."""
    repairs = {name: _repair_of(hint) for name, hint in get_type_hints(kind).items()}
    return {name: repair for name, repair in repairs.items() if repair is not None}


def _repair_of(hint: Any) -> Repair | None:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (list, tuple):
        kind, numbered = _row_type(arguments[0]), get_origin(arguments[0]) in (Union, UnionType)
        return None if kind is None else lambda value, left_out: _rows(value, kind, left_out, numbered=numbered)
    hint = _row_type(hint)
    if hint is None:
        return None
    row: type = hint
    return lambda value, left_out: value if value is None else _row(value, row, left_out)


def _row_type(hint: Any) -> type | None:
    """The dataclass of `Row` or `Row | None`; None for anything else."""
    choices = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return next((kind for kind in choices if isinstance(kind, type) and is_dataclass(kind)), None)


def _rows(value: Any, kind: type, left_out: list[object], *, numbered: bool) -> Any:
    if not isinstance(value, list):
        return value
    rows = [None if row is None and numbered else _row(row, kind, left_out) for row in value]
    if numbered:
        return [None if row is _LEFT_OUT else row for row in rows]
    return [row for row in rows if row is not _LEFT_OUT]


def _row(value: Any, kind: type, left_out: list[object]) -> Any:
    """Convert a row. Rows inside it are converted first, and not again with it, so that a tree is walked once."""
    try:
        return msgspec.convert(_repaired(value, kind, left_out), kind)
    except msgspec.ValidationError:
        left_out.append(value)
        return _LEFT_OUT
