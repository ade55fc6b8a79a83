"""Ways through StableHLO and jaxprs by their notation alone: there is no model of them here, and none is needed.

A name means what the nearest definition above says, within the outermost block that it stands in; what cannot be told
so is not told. MLIR names its values `%0`, its functions `@main` and its locations `#loc`; a jaxpr its variables by
letters, each with its type where it is defined.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from jaxprof.hlo.lexer import Language
from jaxprof.tui.programs.document import Name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxprof.hlo.source import Source

_LONGEST_SCOPE = 4 << 20
"""Characters around a line that are looked through for a name."""
_MOST_USERS = 10_000


@dataclass(frozen=True, slots=True)
class _Notation:
    """What names, definitions and blocks look like."""

    name: re.Pattern[str]
    defined: re.Pattern[str]
    """The name that a line defines."""
    definition: str
    """A definition of `{name}`, for the lines above."""
    header: re.Pattern[str]
    """The first line of an outermost block."""


_NOTATIONS = {
    Language.STABLEHLO: _Notation(
        name=re.compile(r"[%@^][\w$.\-]+(?:#\d+)?|#\w+"),
        defined=re.compile(
            r"\s*(%[\w$\-]+)(?::\d+)?(?:, *%[\w$\-:]+)* *=|\s*func\.func (?:\w+ )?(@[\w$.\-]+)|(#\w+) ="
        ),
        definition=(
            r"^\s*(?:%[\w$\-:]+, *)*{name}(?::\d+)?(?:, *%[\w$\-:]+)* *=|{name}: "
            r"|^\s*func\.func (?:\w+ )?{name}\(|^{name} ="
        ),
        header=re.compile(r"^ {0,4}func\.func\b", re.MULTILINE),
    ),
    Language.JAXPR: _Notation(
        name=re.compile(r"(?<![\w.=\"'])[a-z]{1,4}(?=:[\w<]|[\s,)]|$)"),
        defined=re.compile(r"\s*(?:_:\S+ )*([a-z]{1,4}):\S+(?: [a-z_]+:\S+)* ="),
        definition=r"(?<![\w.=]){name}:[a-zA-Z]",
        header=re.compile(r"^(?:let \w+ = )?\{ ?lambda", re.MULTILINE),
    ),
}


class TextWays:
    """Navigation in MLIR or in a jaxpr."""

    def __init__(self, source: Source, language: Language) -> None:
        self._source = source
        self._text = source.text
        self._notation = _NOTATIONS[language]

    @cached_property
    def _headers(self) -> list[int]:
        """Lines at which outermost blocks begin."""
        return [self._source.line(found.start()) - 1 for found in self._notation.header.finditer(self._text)]

    def _line(self, number: int) -> str:
        found = self._source.lines(number + 1, 1)
        return found[0] if found else ""

    def _scope(self, number: int) -> tuple[int, int]:
        """Offsets of the text in which the names of a line hold."""
        at = bisect_right(self._headers, number)
        first = self._headers[at - 1] if at else 0
        after = self._headers[at] if at < len(self._headers) else self._source.line_count
        here = self._source.offset(number + 1)
        begin, end = self._source.offset(first + 1), self._source.offset(after + 1)
        return max(begin, here - _LONGEST_SCOPE), min(end, here + _LONGEST_SCOPE)

    def names(self, line: str) -> Sequence[Name]:
        return [Name(one.start(), one.end(), one.group().partition("#")[0] or one.group())
                for one in self._notation.name.finditer(line)]  # fmt: skip

    def main_name(self, number: int) -> str:
        line = self._line(number)
        head, equals, rest = line.partition(" = ")
        names = self.names(rest if equals else head)
        defined = self.defined_name(number)
        called = next((name.text for name in names if name.text.startswith("@")), "")
        return called or next((name.text for name in names if name.text != defined), "")

    def defined_name(self, number: int) -> str:
        found = self._notation.defined.match(self._line(number))
        return next((group for group in found.groups() if group), "") if found else ""

    def definition(self, name: str, number: int) -> int | None:
        pattern = re.compile(self._notation.definition.replace("{name}", re.escape(name)), re.MULTILINE)
        begin, end = self._scope(number)
        here = self._source.offset(number + 1)
        if name.startswith(("@", "#")):
            begin, end, here = 0, len(self._text), len(self._text)
        last = None
        for found in pattern.finditer(self._text, begin, end):
            if found.start() >= here and last is not None:
                break
            last = found
        if last is None:
            return None
        skipped = len(last.group()) - len(last.group().lstrip())
        return self._source.line(last.start() + skipped) - 1

    def users(self, name: str, number: int) -> Sequence[int]:
        pattern = re.compile(rf"(?<![\w%@#.\-=]){re.escape(name)}(?![\w:=]|\.\w)")
        begin, end = (0, len(self._text)) if name.startswith(("@", "#")) else self._scope(number)
        made = self.definition(name, number)
        lines: dict[int, None] = {}
        for found in pattern.finditer(self._text, begin, end):
            line = self._source.line(found.start()) - 1
            if line != made:
                lines[line] = None
            if len(lines) >= _MOST_USERS:
                break
        return list(lines)

    def block(self, number: int) -> tuple[int, int] | None:
        at = bisect_right(self._headers, number)
        if not at:
            return None
        first, last = self._bounds(at - 1)
        return (first, last) if number <= last else None

    def blocks(self) -> Sequence[tuple[int, int]]:
        return [self._bounds(at) for at in range(len(self._headers))]

    def _bounds(self, at: int) -> tuple[int, int]:
        """From a header to the last line with something on it before the next header."""
        first = self._headers[at]
        last = (self._headers[at + 1] if at + 1 < len(self._headers) else self._source.line_count) - 1
        while last > first and not self._line(last).strip():
            last -= 1
        return first, last

    def statement(self, number: int) -> str:
        return self._line(number).strip()
