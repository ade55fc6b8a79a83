"""Literals of more than a few elements, taken out of program texts: weights that a function closed over must not end
in a file that is kept and shared.

One linear pass; it knows the ways in which jaxprs, StableHLO and HLO write arrays. Quoted strings are left alone.
"""

from __future__ import annotations

import re
from itertools import islice

LARGEST_LITERAL = 16
"""Elements of a literal that is still shown."""

_OPENING = re.compile(
    r"""dense<(?=["\[])                                          # StableHLO
      | constant\((?=\{)                                         # HLO
      | (?<=[\s=(,])\[(?=[-+]?(?:[\d.\[]|nan|inf|[Tt]rue|[Ff]alse))  # a NumPy array in a jaxpr
      | "(?:[^"\\]|\\.)*"
    """,
    re.VERBOSE,
)
_HEXADECIMAL = re.compile(r'"0x[0-9A-Fa-f]*"')
_BRACKETS = {"[": re.compile(r"[\[\]]"), "{": re.compile(r"[{}]")}
_ELEMENT = re.compile(r"[^\s,\[\]{}()]+")
_SHORT = {"[": "[...]", "{": "{...}", '"': "..."}


def elide_literals(text: str, largest: int = LARGEST_LITERAL) -> str:
    """`text` with every array literal of more than `largest` elements shown as `[...]`, `{...}` or `dense<...>`."""
    parts: list[str] = []
    kept = position = 0
    while found := _OPENING.search(text, position):
        position = found.end()
        if found.group().startswith('"'):
            continue
        begin = found.start() if found.group() == "[" else found.end()
        end = _end_of_literal(text, begin)
        if end is None:  # cut off: whatever follows the bracket may be the literal's elements
            parts += [text[kept:begin], _SHORT[text[begin]]]
            kept = len(text)
            break
        if text[begin] == '"' or _larger(text, begin, end, largest):
            parts += [text[kept:begin], _SHORT[text[begin]]]
            kept = end
        position = end
    parts.append(text[kept:])
    return "".join(parts)


def _end_of_literal(text: str, begin: int) -> int | None:
    """The position after the bracket that closes the one at `begin`, or after a hexadecimal string; None without."""
    opener = text[begin]
    if opener == '"':
        found = _HEXADECIMAL.match(text, begin)
        return found.end() if found else None
    depth = 0
    for bracket in _BRACKETS[opener].finditer(text, begin):
        depth += 1 if bracket.group() == opener else -1
        if depth == 0:
            return bracket.end()
    return None


def _larger(text: str, begin: int, end: int, largest: int) -> bool:
    """Whether the literal between the positions holds more than `largest` elements."""
    return len(list(islice(_ELEMENT.finditer(text, begin, end), largest + 1))) > largest
