"""Copy a session for somebody else: without what looks like a secret, and with neutral names for the host, the user and
home folders.

The lines are cleaned as they are, whatever version wrote them. A line that cannot be read is not in the copy, because
it cannot be cleaned. Scrubbing promises no more than `redaction` finds: source, programs and output stay, since a
session is about them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from jaxprof.errors import FileRefusedError, StorageError, system_words
from jaxprof.events import Header, TextChunk
from jaxprof.files import LineBuffer, open_regular, private_folder, taking_place
from jaxprof.limits import LINE
from jaxprof.private import HIDDEN
from jaxprof.redaction import REDACTED, LineScrubber, is_secret_name, redacted, scrubbed, without_tokens
from jaxprof.session import Session
from jaxprof.session.log.codec import UnknownEvent, decode_line, encode_header, encode_line
from jaxprof.session.log.reader import BLOCK_BYTES, Follower, is_live
from jaxprof.session.log.writer import FILE_MODE
from jaxprof.session.texts import Texts, split

_USER = "user"
_HOST = "host"
_COMMANDS = frozenset(("argv", "arguments", "command"))
_OF_PERSONS = frozenset(("user", "uuid"))
"""Fields, of a device or of a process on it, that identify a person or a device."""
_AS_THEY_ARE = frozenset(("created", "data", "digest", "format", "session", "type"))
_PROSE = "source"
"""Name of the text whose names are a person's; those of jaxpr, StableHLO and HLO are the compiler's (`%token.1`)."""
_HOME = re.compile(
    r"((?<![\w.-])/(?:home|Users)/|[A-Za-z]:[\\/]+Users[\\/]+)[^/\\\s\"'<>|:,;()\[\]]+|(?<![\w./-])/root(?![\w.-])"
)
_USER_IN_LINE = re.compile(rb"(?:/home/|/Users/|:\\+Users\\+)([\w.-]{2,40})")
_ORDINARY = frozenset(
    ("cpu", "cuda", "data", "gpu", "home", "host", "jax", "lib", "local", "localhost", "opt", "python", "rocm", "root",
     "runner", "shared", "site-packages", "src", "tmp", "tpu", "ubuntu", "user", "usr", "work")
)  # fmt: skip
"""Names that do not identify a person, and occur in too many places."""


@dataclass(slots=True)
class Scrubbed:
    """Counts of what was replaced, and of what remains to be checked."""

    path: Path
    secrets: int = 0
    names: int = 0
    """Number of replaced names of the host, the user and home folders."""
    lines_left_out: int = 0
    """Number of lines that were damaged, torn or too long."""
    texts_left_out: int = 0
    """Number of long texts with a piece that cannot be read."""
    output_lines: int = 0
    kept_texts: list[str] = field(default_factory=list)
    """Names of the texts in the copy: `hlo`, `source`."""


def scrub(source: Path, target: Path, *, replace_existing: bool = False) -> Scrubbed:
    """Write the cleaned copy of `source`, in one go, readable only by its owner; `target` may be `source`. Raises
    FileRefusedError if `source` is no session, StorageError if the copy cannot be written."""
    follower = Follower(source, Session)
    follower.rest()
    is_in_place = target.exists() and target.samefile(source)
    if is_in_place and is_live(source):
        raise StorageError(f"{source} is being written", "Scrub it when it is complete, or name a copy with --out.")
    if target.exists() and not (is_in_place or replace_existing):
        raise StorageError(f"{target} already exists", "Give another name with --out, or --force to replace it.")
    cleaner = _Cleaner(follower.session.header, _users(source), Scrubbed(target))
    try:
        private_folder(target.parent)
        with open_regular(source) as file, taking_place(target, FILE_MODE) as fresh, fresh.open("wb") as copy:
            copy.writelines(cleaner.lines(file))
    except OSError as error:
        raise StorageError(f"{target} cannot be written: {system_words(error)}", "Name another with --out.") from error
    return cleaner.done


def _users(path: Path) -> set[str]:
    """Return the names of the users whose home folders the session names, and of the current user."""
    users = {Path.home().name}
    with open_regular(path) as file:
        while block := file.readline(LINE.most):
            users |= {name.decode() for name in _USER_IN_LINE.findall(block) if name.isascii()}
    return {name for name in users if len(name) > 2 and name.lower() not in _ORDINARY}


class _Cleaner:
    """Cleans the lines of one session, and counts replacements."""

    def __init__(self, header: Header, users: set[str], done: Scrubbed) -> None:
        self.done = done
        self._header = header
        self._output = LineScrubber()
        self._texts = Texts()
        self._written: set[str] = set()
        """Digests of the long texts in the copy."""
        self._seq = 0
        user_names = "|".join(re.escape(name) for name in sorted(users, key=len, reverse=True))
        self._user = (
            re.compile(rf"(?<=[/\\])(?:{user_names})(?=[/\\\s\"':@]|$)|(?<![\w.-])(?:{user_names})(?=@)")
            if user_names
            else None
        )
        hosts = {
            name
            for name in (header.host, header.host.partition(".")[0])
            if len(name) > 2 and name.lower() not in _ORDINARY
        }
        host_names = "|".join(re.escape(name) for name in sorted(hosts, key=len, reverse=True))
        self._host = re.compile(rf"(?<![\w-])(?:{host_names})(?![\w-])") if host_names else None
        home = str(Path.home())
        self._own_home = re.compile(rf"{re.escape(home)}(?![\w.-])") if home.count("/") > 1 else None

    def lines(self, file: BinaryIO) -> Iterator[bytes]:
        """Yield the lines of the copy: the header, and the events, numbered anew."""
        file.readline(LINE.most)
        yield self._clean_header()
        buffer = LineBuffer(LINE.most)
        while block := file.read(BLOCK_BYTES):
            for line in filter(bytes.strip, buffer.feed(block)):
                yield from self._cleaned(line)
            self.done.lines_left_out += buffer.take_left_out()
        self.done.lines_left_out += bool(buffer.end().strip())

    def _clean_header(self) -> bytes:
        clean = msgspec.convert(self._walked(msgspec.to_builtins(self._header)), Header)
        self.done.names += clean.host not in ("", _HOST)
        return encode_header(replace(clean, host=_HOST if clean.host else ""))

    def _cleaned(self, line: bytes) -> Iterator[bytes]:
        """Yield the lines of the copy in place of this one; none if it cannot be read."""
        try:
            event = decode_line(line)
            if isinstance(event, TextChunk):
                self._texts.add(event)
                return
        except UnknownEvent:
            pass  # of a newer version, which can read it
        except ValueError:
            self.done.lines_left_out += 1
            return
        try:
            payload = msgspec.json.decode(line, type=dict[str, Any])
            new = list(self._text(payload)) if payload.get("type") == "text_recorded" else [self._event(payload)]
            encoded = [msgspec.json.encode({**one, "seq": self._seq + at}) for at, one in enumerate(new, 1)]
        except (msgspec.MsgspecError, RecursionError, ValueError):
            self.done.lines_left_out += 1
            return
        self._seq += len(encoded)
        yield from (one + b"\n" for one in encoded)

    def _event(self, payload: dict[str, Any]) -> dict[str, Any]:
        if payload.get("type") == "log_line":
            self.done.output_lines += 1
            stream = f"{payload.get('run')} {payload.get('stream')}"
            payload["text"] = self._counted(payload["text"], self._output.scrubbed(stream, payload["text"]))
        cleaned = self._walked(payload)
        assert isinstance(cleaned, dict)
        return cleaned

    def _text(self, payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield a text, after its pieces if it is long; pieces that are in the copy already are not repeated."""
        name, run = payload["name"], payload.get("run", "")
        text = payload.get("text", "")
        if digest := payload.get("digest"):
            try:
                text = self._texts.decode(digest)
            except FileRefusedError:
                self.done.texts_left_out += 1
                return
        if name not in self.done.kept_texts:
            self.done.kept_texts.append(name)
        for event in split(name, self._clean_text(name, text), run, payload.get("monotonic_seconds", 0.0)):
            if not (isinstance(event, TextChunk) and event.digest in self._written):
                yield msgspec.json.decode(encode_line(event))
        if event.digest:
            self._written.add(event.digest)

    def _clean_text(self, name: str, text: str) -> str:
        if text[:1] in ("{", "["):  # a timeline: it has to stay JSON
            try:
                return msgspec.json.encode(self._walked(msgspec.json.decode(text))).decode()
            except (msgspec.MsgspecError, RecursionError):
                pass
        clean = scrubbed(text) if name == _PROSE else without_tokens(text)
        return self._without_names(self._counted(text, clean))

    def _walked(self, value: Any, name: str = "") -> Any:
        """Return a value of JSON, cleaned; `name` is that of the field that holds it."""
        if isinstance(value, str):
            return self._cleaned_field(name, value)
        if isinstance(value, list):
            if name in _COMMANDS and all(isinstance(word, str) for word in value):
                pairs = zip(value, redacted(value), strict=True)
                return [self._without_names(self._counted(word, kept)) for word, kept in pairs]
            return [self._walked(item, name) for item in value]
        if isinstance(value, dict):
            is_secret = {"name", "before", "now"} <= value.keys() and is_secret_name(str(value["name"]))
            named = {key: "secret" if is_secret and key in ("before", "now") else key for key in value}
            return {self._without_names(key): self._walked(item, named[key]) for key, item in value.items()}
        return value

    def _cleaned_field(self, name: str, text: str) -> str:
        if name in _AS_THEY_ARE or not text:
            return text
        if name in _OF_PERSONS:
            self.done.names += text != HIDDEN
            return HIDDEN
        if is_secret_name(name):
            self.done.secrets += text not in (REDACTED, HIDDEN)
            return HIDDEN if text == HIDDEN else REDACTED
        return self._without_names(self._counted(text, scrubbed(text)))

    def _counted(self, text: str, clean: str) -> str:
        self.done.secrets += max(int(clean != text), clean.count(REDACTED) - text.count(REDACTED))
        return clean

    def _without_names(self, text: str) -> str:
        """Return `text` with neutral names, the same for the same places: `/home/user/train.py`."""
        if self._own_home is not None:
            text = self._replaced(self._own_home, f"/home/{_USER}", text)
        if "/" in text or "\\" in text:
            self.done.names += sum(_neutral(found) != found[0] for found in _HOME.finditer(text))
            text = _HOME.sub(_neutral, text)
        if self._user is not None:
            text = self._replaced(self._user, _USER, text)
        return self._replaced(self._host, _HOST, text) if self._host is not None else text

    def _replaced(self, pattern: re.Pattern[str], other: str, text: str) -> str:
        clean, count = pattern.subn(other, text)
        self.done.names += count
        return clean


def _neutral(home: re.Match[str]) -> str:
    return f"{home[1] or '/home/'}{_USER}"
