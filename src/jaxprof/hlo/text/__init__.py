"""Reading HLO: text and protos, whole files and folders of dumps, into the model.

Here are the lexical elements of its text: strings, brackets, `name=value` lists, operand lists, opcodes. The functions
are pure, over a text and offsets. They read what XLA's printer writes and what its lexer accepts
(`xla/hlo/parser/hlo_lexer.cc`): names, quoted strings with C escapes, `//` and `/* */` comments. All take time linear
in the text that they pass, and none raises on any input.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

# Up to Python 3.11.4 a possessive quantifier around a group loses its position where an iteration fails, so only single
# characters have one. A group is repeated greedily, and so that no text makes it backtrack far, each of its iterations
# begins with a character that may not follow the repetition.
STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*"'
# If a closing mark is missing, the rest is taken, so that later marks do not search for it again.
OPEN_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*(?:"|(?=\\?\Z))'
COMMENT = r"/\*[^*]*+(?:\*(?!/)[^*]*+)*(?:\*/|\Z)"
_TOKEN = re.compile(rf"{OPEN_STRING}|[{{}}\[\]()]|{COMMENT}|//[^\n]*+", re.DOTALL)
_OPENING = {"{": "}", "[": "]", "(": ")"}


def end_of_brackets(text: str, at: int, limit: int) -> int:
    """Return the offset after the partner of the bracket at `at`, or -1 if it does not close before `limit`.

    Strings and comments are skipped. Any closing bracket closes the innermost open one, so malformed text ends sooner.
    """
    depth = 0
    for match in _TOKEN.finditer(text, at, limit):
        token = match[0]
        if token in _OPENING:
            depth += 1
        elif token in ("}", "]", ")"):
            depth -= 1
            if depth <= 0:
                return match.end() if depth == 0 else -1
    return -1


_DETAIL = re.compile(r", (?:metadata|backend_config|frontend_attributes|origin)=(?=[{\"])")


def short_text(text: str) -> str:
    """Return HLO text without what neither computes nor connects: metadata, backend configurations, frontend
    attributes."""
    pieces: list[str] = []
    kept = 0
    for match in _DETAIL.finditer(text):
        if match.start() < kept:
            continue
        at = match.end()
        limit = text.find("\n", at)
        limit = len(text) if limit < 0 else limit
        string = _TOKEN.match(text, at, limit)
        end = string.end() if string is not None and text[at] == '"' else end_of_brackets(text, at, limit)
        if end > 0:
            pieces.append(text[kept : match.start()])
            kept = end
    return "".join([*pieces, text[kept:]])


_BLANK = re.compile(rf"(?:\s++|{COMMENT}|//[^\n]*+)*")


def skip_blank(text: str, at: int, limit: int) -> int:
    """Return the first offset from `at` on that is neither white space nor inside a comment."""
    match = _BLANK.match(text, at, limit)
    return match.end() if match else at


class Attribute(NamedTuple):
    """One `name=value` in a list; offsets into the text."""

    name: str
    start: int
    end: int


_ATTRIBUTE_NAME = re.compile(r"([A-Za-z_][\w.\-]*)\s*=\s*")
# A value consists of words, strings, brackets, and a blank before a bracket (`replica_groups=mesh['x'=4] {'x'}`). One
# match takes up to three levels of brackets; deeper ones take the slow way.
_FLAT = rf"[^{{}}\[\]()\"/]++|{STRING}|/(?![/*])|{COMMENT}"
_INNERMOST = rf"[{{\[(](?:{_FLAT})*[}}\])]"
_INNER = rf"[{{\[(](?:{_FLAT}|{_INNERMOST})*[}}\])]"
_BRACKETED = rf"[{{\[(](?:{_FLAT}|{_INNER})*[}}\])]"
_WORDS = rf"(?:[^{{}}\[\]()\",\s/]++|[ \t]++(?=[{{\[(])|{STRING}|/(?![/*])|{_BRACKETED})+"
_VALUE = re.compile(_WORDS, re.DOTALL)
# The form in which XLA prints nearly all attributes, in one match; everything else takes the slow way, with the same
# result.
_ATTRIBUTE = re.compile(rf", ([A-Za-z_][\w.\-]*+)=({_WORDS})(?=[ \t]*+(?:[,\n]|\Z))", re.DOTALL)


class AttributeList(NamedTuple):
    """Attributes that follow each other in a text."""

    found: list[Attribute]
    end: int
    """Offset after the last attribute."""
    closed: bool
    """False if the limit was reached inside brackets or a string."""


def attributes(text: str, at: int, limit: int) -> AttributeList:
    """Return the `, name=value` from `at` on. A value ends at a comma or a blank outside brackets and strings."""
    listed: list[Attribute] = []
    while True:
        while plain := _ATTRIBUTE.match(text, at, limit):
            start, at = plain.span(2)
            listed.append(Attribute(plain[1], start, at))
        begin = skip_blank(text, at, limit)
        if begin >= limit or text[begin] != ",":
            return AttributeList(listed, at, True)
        name = _ATTRIBUTE_NAME.match(text, skip_blank(text, begin + 1, limit), limit)
        if name is None:
            return AttributeList(listed, at, True)
        at = _value_end(text, name.end(), limit)
        listed.append(Attribute(name[1], name.end(), at if at >= 0 else limit))
        if at < 0:
            return AttributeList(listed, limit, False)


def _value_end(text: str, at: int, limit: int) -> int:
    """Return where the value that begins at `at` ends, or -1 if `limit` comes first."""
    while at < limit:
        if match := _VALUE.match(text, at, limit):
            at = match.end()
        elif text[at] in _OPENING:
            at = end_of_brackets(text, at, limit)
            if at < 0:
                return -1
        else:
            return -1 if text[at] == '"' else at
    return at


_ITEM = re.compile(rf"{OPEN_STRING}|[{{}}\[\]()]|{COMMENT}|//[^\n]*+|,", re.DOTALL)


def items(inside: str) -> list[str]:
    """Split `inside` at commas outside brackets, strings and comments, and strip blanks."""
    parts: list[str] = []
    depth = start = 0
    for match in _ITEM.finditer(inside):
        token = match[0]
        if token == ",":
            if depth == 0:
                parts.append(inside[start : match.start()].strip())
                start = match.end()
        elif token in _OPENING:
            depth += 1
        elif token in ("}", "]", ")"):
            depth -= 1
    last = inside[start:].strip()
    return [*parts, last] if last or parts else parts


_PERCENT_NAME = re.compile(r"%([^\s,(){}\[\]=\"#]+)")
_PLAIN_NAMES = re.compile(r"[A-Za-z_][\w.\-]*+(?:,\s*+[A-Za-z_][\w.\-]*+)*")
_LAST_NAME = re.compile(r"(?:%([^\s,(){}\[\]=\"#]+)|(?<![\w.\-%])([A-Za-z_][\w.\-]*))(?:#\d+)?$")
_COMMENT = re.compile(rf"{COMMENT}|//[^\n]*+")


def operand_names(inside: str) -> tuple[str, ...]:
    """Return the values that an operand list names: `f32[2]{0} %a, /*index=1*/%b` gives a and b, and so does `a, b`.

    An operand that is not a name (an instruction written in place, a number) is left out.
    """
    if "%" in inside:
        names = _PERCENT_NAME.findall(inside)
        # If there are shapes, every name has a % before it: no printer ever mixed the two forms.
        if "[" in inside or len(names) > inside.count(","):
            return tuple(names)
    elif _PLAIN_NAMES.fullmatch(inside):
        return tuple(name.lstrip() for name in inside.split(","))
    named = (_LAST_NAME.search(item) for item in items(_COMMENT.sub("", inside)))
    return tuple(match[1] or match[2] for match in named if match)


_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def unquote(raw: str) -> str:
    """Return a quoted string without its quotes and C escapes (octal ones hold UTF-8 bytes); other text unchanged."""
    if len(raw) < 2 or raw[0] != '"' or raw[-1] != '"':
        return raw
    inside = raw[1:-1]
    if "\\" not in inside:
        return inside
    octets = bytearray()
    at = 0
    for match in _ESCAPE.finditer(inside):
        octets += inside[at : match.start()].encode("utf-8", "surrogatepass")
        octal, hexadecimal, letter = match.groups()
        if letter is None:
            octets.append(int(octal, 8) & 0xFF if octal else int(hexadecimal, 16))
        else:
            octets += _LETTERS.get(letter, letter).encode("utf-8", "surrogatepass")
        at = match.end()
    octets += inside[at:].encode("utf-8", "surrogatepass")
    return octets.decode("utf-8", "replace")


_OWN_OPCODE = frozenset(
    {
        "all-gather-start", "all-gather-done", "all-reduce-start", "all-reduce-done", "collective-permute-start",
        "collective-permute-done", "copy-start", "copy-done", "send-done", "recv-done",
        "async-start", "async-update", "async-done",
    }
)  # fmt: skip


@lru_cache(maxsize=1024)
def unsugar(opcode: str) -> tuple[str, str]:
    """Return the opcode that a written opcode stands for, and what it wraps: `('async-start', 'fusion')`, `('dot',
    '')`."""
    wrapped, _, stage = opcode.rpartition("-")
    if wrapped and stage in ("start", "update", "done") and opcode not in _OWN_OPCODE:
        return f"async-{stage}", wrapped
    return opcode, ""
