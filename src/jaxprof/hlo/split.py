"""Cuts the text between a computation's braces into instructions.

One pass of a regular expression finds the lines that begin an instruction. Where the text is not one instruction a line
(literals and attributes over several lines, strings with line ends in them, computations written in place, lines that
are no instruction at all) the instruction is read to its end, and what follows decides.
"""

from __future__ import annotations

import re
from array import array
from typing import NamedTuple

from jaxprof.hlo import record
from jaxprof.hlo.syntax import skip_blank

_LINE = re.compile(r"\n[ \t]*+(ROOT[ \t]++(?!=))?%?([^\s=%,(){}\"/]++)[ \t]*+=[ \t]")
_HERE = re.compile(r"(ROOT\s++(?!=))?%?([^\s=%,(){}\"/]++)\s*+=\s*+(?=[(\w])")


class Pieces(NamedTuple):
    """The instructions of one computation: number n has `names[n]` and lies from `starts[n]` to `starts[n + 1]`."""

    names: list[str]
    starts: array[int]
    root: int | None
    """The number of the instruction marked ROOT (the last, if there are several)."""


def instructions(text: str, start: int, end: int) -> Pieces:
    """Cuts `text[start:end]`, the inside of a computation's braces. What is no instruction becomes one without name."""
    names: list[str] = []
    starts = array("Q")
    root: int | None = None
    budget = record.Budget(2 * (end - start))
    at = start
    # One line behind, without a list: a million tuples would be the peak of what reading the module takes.
    lines = _LINE.finditer(text, start, end)
    line = next(lines, None)
    while line:
        following = next(lines, None)
        begin = line.start()
        if begin >= at:
            if at < begin:
                root = _read_on(text, at, begin, names, starts, root)
            names.append(line[2])
            starts.append(begin)
            if line[1]:
                root = len(names) - 1
            at = following.start() if following else end
            if text[at - 1] == "{" or text.find("\n", begin + 1, at) >= 0 or text.count('"', begin, at) % 2:
                _, at = record.read_whole(text, begin, at, end, budget)
        line = following
    root = _read_on(text, at, end, names, starts, root)
    starts.append(end)
    return Pieces(names, starts, root)


def _read_on(text: str, at: int, end: int, names: list[str], starts: array[int], root: int | None) -> int | None:
    """Adds what stands between `at` and `end`, where no line begins an instruction in the usual way."""
    at = skip_blank(text, at, end)
    while at < end:
        here = _HERE.match(text, at, end)
        names.append(here[2] if here else "")
        starts.append(at)
        if here and here[1]:
            root = len(names) - 1
        found, after = record.read_whole(text, at, end, end, record.Budget(0))
        if found is None:
            line_end = text.find("\n", at, end)
            after = line_end if line_end >= 0 else end
        at = skip_blank(text, max(after, at + 1), end)
    return root
