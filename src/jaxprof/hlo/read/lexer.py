"""Colours for a line of program text: a line in, spans of (kind, text) out. Each line stands alone.

The lexer serves display only: it never fails and never loses a character, whatever the line, and joining the spans'
texts gives the line back. Meaning comes from `jaxprof.hlo.read.parse`.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NamedTuple

from jaxprof.hlo.shape import DTYPE_BITS


class SpanKind(StrEnum):
    """Kind of a span; a theme gives each kind its colour."""

    TEXT = "text"
    COMMENT = "comment"
    STRING = "string"
    NUMBER = "number"
    NAME = "name"
    """A value or computation: `%fusion.3`, `@main`."""
    SHAPE = "shape"
    """A dtype with its dimensions, or an MLIR or jaxpr type."""
    LAYOUT = "layout"
    OPCODE = "opcode"
    KEYWORD = "keyword"
    ATTRIBUTE = "attribute"
    """The name of an attribute, before its `=`."""
    PUNCTUATION = "punctuation"


class Language(StrEnum):
    HLO = "hlo"
    STABLEHLO = "stablehlo"
    """MLIR of any dialect."""
    JAXPR = "jaxpr"


class TextSpan(NamedTuple):
    kind: SpanKind
    text: str


_STRING: Final = r"\"(?:[^\"\\]|\\.)*+\"?"
_NUMBER: Final = r"(?<![\w.%@#])-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])"
_DTYPES: Final = "|".join(DTYPE_BITS)
_JAXPR_DTYPES: Final = r"(?:b?float\d+|u?int\d+|bool|complex\d+|key<\w+>|[fiuc]\d+|bf16|Ref(?:<\w+>)?)"


class _Rules:
    """Kinds with their patterns, each one group of a single pattern; the first match wins."""

    def __init__(self, *rules: tuple[SpanKind, str]) -> None:
        self.pattern = re.compile("|".join(f"({rule})" for _, rule in rules))
        self.kinds = (SpanKind.TEXT, *(kind for kind, _ in rules))


_RULES: Final[dict[Language, _Rules]] = {
    Language.HLO: _Rules(
        (SpanKind.COMMENT, r"//.*|/\*.*?(?:\*/|$)"),
        (SpanKind.STRING, _STRING),
        (SpanKind.KEYWORD, r"\b(?:HloModule|ENTRY|ROOT)\b|^(?:FileNames|FunctionNames|FileLocations|StackFrames)\b"),
        (SpanKind.SHAPE, rf"\b(?:{_DTYPES})\[[^\[\]]*\]"),
        (SpanKind.LAYOUT, r"(?<=\])\{[^{}\"=]*\}"),
        (SpanKind.NAME, r"%[\w.\-#]+"),
        (SpanKind.ATTRIBUTE, r"\b[A-Za-z_][\w.\-]*(?==)"),
        (SpanKind.OPCODE, r"(?<=[\])}] )[a-z][\w\-]*(?=\()"),
        (SpanKind.NUMBER, _NUMBER),
        (SpanKind.KEYWORD, r"\b(?:true|false|nan|inf)\b"),
        (SpanKind.TEXT, r"[A-Za-z_][\w.\-]*"),
        (SpanKind.PUNCTUATION, r"(?:->|<=|[=(){}\[\],:;])+"),
    ),
    Language.STABLEHLO: _Rules(
        (SpanKind.COMMENT, r"//.*"),
        (SpanKind.STRING, _STRING),
        (SpanKind.SHAPE, r"\b(?:tensor|memref|vector|tuple|complex)<[^<>]*(?:<[^<>]*>[^<>]*)*>|![\w.]+(?:<[^<>]*>)?"),
        (SpanKind.NAME, r"[%@^][\w.$\-#]+|#(?:loc\d*|\w+)\b"),
        (
            SpanKind.KEYWORD,
            r"\b(?:module|func\.func|public|private|return|attributes|cond|do|loc|true|false|dense|unit)\b",
        ),
        (SpanKind.OPCODE, r"\b[a-z_]+\.[a-z_][\w.]*"),
        (SpanKind.ATTRIBUTE, r"\b[A-Za-z_][\w.]*(?= ?=(?!=))"),
        (SpanKind.SHAPE, r"\b(?:[sui]?i\d+|bf16|f\d+(?:E\w+)?|index|none)\b"),
        (SpanKind.NUMBER, _NUMBER),
        (SpanKind.TEXT, r"[A-Za-z_][\w.\-]*"),
        (SpanKind.PUNCTUATION, r"(?:->|[=(){}\[\],:;<>])+"),
    ),
    Language.JAXPR: _Rules(
        (SpanKind.COMMENT, r"#.*"),
        (SpanKind.STRING, rf"{_STRING}|'(?:[^'\\]|\\.)*+'?"),
        (SpanKind.KEYWORD, r"\b(?:let|in|lambda|None|True|False)\b"),
        (SpanKind.SHAPE, rf"\b{_JAXPR_DTYPES}(?:\[[^\[\]=]*\]|\{{[^{{}}]*\}})|(?<=:){_JAXPR_DTYPES}\b"),
        (SpanKind.ATTRIBUTE, r"\b[A-Za-z_]\w*(?==)"),
        (SpanKind.OPCODE, r"(?<== )[a-z_][\w.\-]*"),
        (SpanKind.NUMBER, _NUMBER),
        (SpanKind.TEXT, r"[A-Za-z_][\w.]*"),
        (SpanKind.PUNCTUATION, r"[=(){}\[\],:;]+"),
    ),
}  # fmt: skip
_LONGEST: Final = 20_000
"""Most characters of a line that are coloured: a literal can fill a line of megabytes, and no screen is that wide."""


def lex(line: str, language: Language = Language.HLO) -> list[TextSpan]:
    """Return the spans of one line, in order, without gaps. Text after 20 000 characters is a single span."""
    spans: list[TextSpan] = []
    at = 0
    rules = _RULES[language]
    kinds = rules.kinds
    for match in rules.pattern.finditer(line, 0, min(len(line), _LONGEST)):
        kind = kinds[match.lastindex or 0]
        if kind is SpanKind.TEXT:
            continue  # joins the plain text around it
        start = match.start()
        if start > at:
            spans.append(TextSpan(SpanKind.TEXT, line[at:start]))
        at = match.end()
        spans.append(TextSpan(kind, line[start:at]))
    if at < len(line):
        spans.append(TextSpan(SpanKind.TEXT, line[at:]))
    return spans
