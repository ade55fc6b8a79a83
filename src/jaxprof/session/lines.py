"""The lines of a session's log: read whole, or while another process writes them; and an event as JSON. A torn
last line is not an error. A listing of hundreds of sessions decodes only lines of some types, and skips the others.

The client reads files of 100 000 lines, with msgspec. JSON can hold a number of four hundred digits, and lists a
thousand levels deep. Both pass every check of types, and break what is derived from them later: a sum becomes infinite,
a report recurses too deep. msgspec checks numbers that have a type while it reads them, at no cost; `are_bounded`
checks the few values that have none.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter
from pathlib import Path
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    BinaryIO,
    Generic,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from jaxprof.base.errors import FileRefusedError, missing_file, system_words
from jaxprof.base.files import LineBuffer, open_regular
from jaxprof.base.limits import DEPTH, LINE
from jaxprof.base.values import not_collecting
from jaxprof.events import SCHEMA_MAJOR, SCHEMA_MINOR, Event, Header, RunPlanned, event_type
from jaxprof.events.base import fields_of
from jaxprof.session.files import EXTENSION, note_of_copy

if TYPE_CHECKING:
    from jaxprof.session.fold import Session

S = TypeVar("S", bound="Session")
BLOCK_BYTES = 4 << 20
"""Number of bytes of a file read at a time."""


def load(path: Path, kind: type[S]) -> S:
    """Return the session in the file at `path`, folded into a `kind` (`Session` or a subclass).

    Raises FileRefusedError if it is not a session.
    """
    follower = Follower(path, kind)
    with not_collecting():
        for _ in follower.take():  # not kept: a hundred thousand events in a list cost more than the fold itself
            pass
    follower.finish()
    follower.session.desert(deserted=follower.session.complete or not is_live(path))
    return follower.session


class Follower(Generic[S]):
    """Reads a session file as it grows: `poll` returns the new events, which are folded into `session` already."""

    def __init__(self, path: Path, kind: type[S]) -> None:
        """Read the header. Raises FileRefusedError if the file is not a session."""
        self.path = Path(path)
        self._lines = LineBuffer(LINE.most)
        self._offset: int | None = None
        """Position at which to go on after `rest`; None while the file is open."""
        self._file = _open(self.path)
        self._digest = hashlib.sha256()
        first = self._file.readline(LINE.most)
        self._digest.update(first)
        if not first.strip():
            self._file.close()
            raise FileRefusedError(
                f"{self.path} is empty", "A session file has at least a header line; nothing was recorded in this one."
            )
        try:
            header = decode_header(first, str(self.path))
        except FileRefusedError:
            self._file.close()
            raise
        self.session = kind(header)
        self.session.content = self._digest.hexdigest()
        if header.schema_major == SCHEMA_MAJOR and header.schema_minor > SCHEMA_MINOR:
            self.session.notice(
                f"written by jaxprof {header.jaxprof} with a newer schema: what this version does not know is left out"
            )

    def poll(self) -> list[Event]:
        return list(self.take())

    def take(self) -> Iterator[Event]:
        """Yield the events since the last call, each folded before it is yielded. Raises FileRefusedError if the file
        was closed by `rest` and cannot be opened again."""
        if self._file.closed and self._offset is not None:
            self._file = _open(self.path)
            self._file.seek(self._offset)
            self._offset = None
        while block := self._file.read(BLOCK_BYTES):
            self._digest.update(block)
            for line in self._lines.feed(block):
                if not line:  # fifty million empty lines are a file, too
                    continue
                try:
                    event = decode_line(line)
                except UnknownEvent as unknown:
                    self.session.notice(f"events of an unknown type were left out: {str(unknown)[:60] or 'no type'}")
                except ValueError:
                    if line.strip():
                        self.session.notice("damaged lines were left out")
                else:
                    self.session.apply(event)
                    yield event
            for _ in range(self._lines.take_left_out()):
                self.session.notice(f"lines of {LINE.words} were left out. {LINE.hint}")
            self.session.content = self._digest.hexdigest()

    def rest(self) -> None:
        """Close the file until the next call that reads, which goes on from here."""
        if not self._file.closed:
            self._offset = self._file.tell()
            self._file.close()

    def finish(self) -> None:
        """Close the file, and note a torn last line."""
        self._file.close()
        if self._lines.end().strip():
            self.session.notice("the last line is truncated; everything before it was read")


def _open(path: Path) -> BinaryIO:
    if path.is_dir():
        raise one_session_needed(path)
    try:
        return open_regular(path)
    except FileNotFoundError:
        raise missing_file(path) from None
    except OSError as error:
        raise FileRefusedError(f"{path} cannot be read: {system_words(error)}") from error


def one_session_needed(folder: Path) -> FileRefusedError:
    """Return the error for a folder, such as that of a job, in place of a session."""
    inside = sorted(folder.glob(f"*{EXTENSION}"))
    if inside and inside[0].name.startswith("process-"):
        all_of_it = "Of all processes: jaxprof open, explain and query."
        return FileRefusedError(
            f"{folder} is a job, and one session is needed",
            f"Name the session of one process: {inside[0]}. {all_of_it}",
        )
    hint = f"Did you mean {inside[0]}?" if inside else "Give a session file, or a folder that jax.profiler wrote to."
    return FileRefusedError(f"{folder} is a directory", hint)


def read_header(file: BinaryIO, name: str) -> Header:
    """Return the header of an open file. Raises FileRefusedError if it is not a session's."""
    return decode_header(file.readline(LINE.most), name)


def events_of(file: BinaryIO, types: tuple[str, ...]) -> Iterator[Event]:
    """Yield the events of these types in the rest of the file; unreadable lines are left out. Raises OSError."""
    # Read, and not mapped: a mapped file that another process truncates ends this one with SIGBUS.
    rest = b"\n"
    while block := file.read(BLOCK_BYTES):
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


_RUNNING_SECONDS = 300.0
"""A fetched session counts as being written if its original had changed within this time before."""


def is_live(path: Path) -> bool:
    """Return whether a writer holds the file's lock now. A fetched file, which has the time of its original, counts as
    live if that had changed shortly before. On Windows, where sessions are not recorded, there is no such lock."""
    try:
        with suppress(ImportError), open_regular(path) as file:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
        note = note_of_copy(path)
        return note is not None and note.stat().st_mtime - path.stat().st_mtime < _RUNNING_SECONDS
    except BlockingIOError:
        return True
    except OSError:
        return False


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
    """Return whether numbers of a value are within the bounds, and it has at most `levels` levels (default: DEPTH)."""
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
