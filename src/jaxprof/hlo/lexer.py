"""Colours for a line of program text: a line in, spans of (kind, text) out. One line at a time, nothing remembered.

It is for the eye only: a lexer of lines never fails and never loses a character, whatever it is given, and joining the
spans' texts gives the line back. Meaning comes from `jaxprof.hlo.parse`.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, NamedTuple


class Kind(StrEnum):
    """What a span is. The names are for a theme to give colours to."""

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


class Span(NamedTuple):
    kind: Kind
    text: str


_STRING: Final = r"\"(?:[^\"\\]|\\.)*+\"?"
_NUMBER: Final = r"(?<![\w.%@#])-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])"
_DTYPES: Final = (
    r"pred|token|opaque|[su](?:1|2|4|8|16|32|64)|bf16|f(?:16|32|64)|c(?:64|128)|f4e2m1fn|f6e\dm\dfn|f8e\dm\d(?:b11)?\w*"
)

_JAXPR_DTYPES: Final = r"(?:b?float\d+|u?int\d+|bool|complex\d+|key<\w+>|[fiuc]\d+|bf16|Ref(?:<\w+>)?)"


class _Rules:
    """Kinds with what matches them, the first that does wins; one group of one pattern each."""

    def __init__(self, *rules: tuple[Kind, str]) -> None:
        self.pattern = re.compile("|".join(f"({rule})" for _, rule in rules))
        self.kinds = (Kind.TEXT, *(kind for kind, _ in rules))


_RULES: Final[dict[Language, _Rules]] = {
    Language.HLO: _Rules(
        (Kind.COMMENT, r"//.*|/\*.*?(?:\*/|$)"),
        (Kind.STRING, _STRING),
        (Kind.KEYWORD, r"\b(?:HloModule|ENTRY|ROOT)\b|^(?:FileNames|FunctionNames|FileLocations|StackFrames)\b"),
        (Kind.SHAPE, rf"\b(?:{_DTYPES})\[[^\[\]]*\]"),
        (Kind.LAYOUT, r"(?<=\])\{[^{}\"=]*\}"),
        (Kind.NAME, r"%[\w.\-#]+"),
        (Kind.ATTRIBUTE, r"\b[A-Za-z_][\w.\-]*(?==)"),
        (Kind.OPCODE, r"(?<=[\])}] )[a-z][\w\-]*(?=\()"),
        (Kind.NUMBER, _NUMBER),
        (Kind.KEYWORD, r"\b(?:true|false|nan|inf)\b"),
        (Kind.TEXT, r"[A-Za-z_][\w.\-]*"),
        (Kind.PUNCTUATION, r"(?:->|<=|[=(){}\[\],:;])+"),
    ),
    Language.STABLEHLO: _Rules(
        (Kind.COMMENT, r"//.*"),
        (Kind.STRING, _STRING),
        (Kind.SHAPE, r"\b(?:tensor|memref|vector|tuple|complex)<[^<>]*(?:<[^<>]*>[^<>]*)*>|![\w.]+(?:<[^<>]*>)?"),
        (Kind.NAME, r"[%@^][\w.$\-#]+|#(?:loc\d*|\w+)\b"),
        (Kind.KEYWORD, r"\b(?:module|func\.func|public|private|return|attributes|cond|do|loc|true|false|dense|unit)\b"),
        (Kind.OPCODE, r"\b[a-z_]+\.[a-z_][\w.]*"),
        (Kind.ATTRIBUTE, r"\b[A-Za-z_][\w.]*(?= ?=(?!=))"),
        (Kind.SHAPE, r"\b(?:[sui]?i\d+|bf16|f\d+(?:E\w+)?|index|none)\b"),
        (Kind.NUMBER, _NUMBER),
        (Kind.TEXT, r"[A-Za-z_][\w.\-]*"),
        (Kind.PUNCTUATION, r"(?:->|[=(){}\[\],:;<>])+"),
    ),
    Language.JAXPR: _Rules(
        (Kind.COMMENT, r"#.*"),
        (Kind.STRING, rf"{_STRING}|'(?:[^'\\]|\\.)*+'?"),
        (Kind.KEYWORD, r"\b(?:let|in|lambda|None|True|False)\b"),
        (Kind.SHAPE, rf"\b{_JAXPR_DTYPES}(?:\[[^\[\]=]*\]|\{{[^{{}}]*\}})|(?<=:){_JAXPR_DTYPES}\b"),
        (Kind.ATTRIBUTE, r"\b[A-Za-z_]\w*(?==)"),
        (Kind.OPCODE, r"(?<== )[a-z_][\w.\-]*"),
        (Kind.NUMBER, _NUMBER),
        (Kind.TEXT, r"[A-Za-z_][\w.]*"),
        (Kind.PUNCTUATION, r"[=(){}\[\],:;]+"),
    ),
}  # fmt: skip
_LONGEST: Final = 20_000
"""Characters of a line that are looked at: a literal can fill a line of megabytes, and no screen is that wide."""


def lex(line: str, language: Language = Language.HLO) -> list[Span]:
    """The spans of one line, in order, without gaps. What lies past 20 000 characters is one span of text."""
    spans: list[Span] = []
    at = 0
    rules = _RULES[language]
    kinds = rules.kinds
    for match in rules.pattern.finditer(line, 0, min(len(line), _LONGEST)):
        kind = kinds[match.lastindex or 0]
        if kind is Kind.TEXT:
            continue  # joins what stands around it
        start = match.start()
        if start > at:
            spans.append(Span(Kind.TEXT, line[at:start]))
        at = match.end()
        spans.append(Span(kind, line[start:at]))
    if at < len(line):
        spans.append(Span(Kind.TEXT, line[at:]))
    return spans


def language_of(text: str) -> Language:
    """The language that the beginning of `text` seems to be written in; HLO where nothing says otherwise."""
    head = text[:4096]
    if re.search(r"^\s*(?:module\b|func\.func\b|#loc|%\S+ = \"?(?:stablehlo|mhlo|func|arith)\.)", head, re.MULTILINE):
        return Language.STABLEHLO
    return Language.JAXPR if re.match(r"\s*(?:let\b|\{ *lambda\b)", head) else Language.HLO
