"""Read instructions in the plain form in which XLA prints nearly all of them, one match per line.

A large module has a million instructions, and some questions concern them all: can every line be read, where did each
instruction come from, does the text hold everything that it uses. One regular expression recognises the plain form;
nothing is cut out of the text or kept. It is strict: whatever it does not recognise counts as not plain, and the caller
parses it with `jaxprof.hlo.text.record`, which takes ten times as long and decides.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jaxprof.hlo.text.record import CALLING_ATTRIBUTES, COMPUTATION_NAME, NO_OPERANDS
from jaxprof.hlo.text.syntax import operand_names, skip_blank

if TYPE_CHECKING:
    from jaxprof.hlo.text.model import Computation


# Sizes of at most 18 digits in all cannot exceed the 64 bits in which XLA counts elements: `shape.py` refuses others.
_SIZE = r"(?:<=)?\d++"
_SIZES = rf"(?=[^\]]{{0,18}}\])(?:{_SIZE}(?:,{_SIZE})*)?"
_ARRAY = rf"[a-z][a-z0-9]*+\[{_SIZES}\](?:\{{[^{{}}\n\"/]*+\}})?"
_SHAPE = rf"(?:{_ARRAY}|\((?:(?:/\*index=\d++\*/)?{_ARRAY}(?:, )?)*\))"
_BEGINNING = r"[ \t]*+(?:ROOT )?%?"
_NAME = r"[^\s=%,(){}\"/]++"
_OPCODE = r"[a-z][\w\-]*+"
# A `#` among the operands is an element of a tuple in its short form, which is not plain.
_OPERANDS = r"[^()\"\n#]*+"

# The metadata precedes the first string, or holds it, so its braces are its own and it is not part of another
# attribute's value.
_LINE = re.compile(
    rf"\n?{_BEGINNING}{_NAME} = {_SHAPE} ({_OPCODE})\({_OPERANDS}\)"
    r"(?:(?:, kind=\w++)?, calls=%?([A-Za-z_0-9][\w.\-]*+)(?=[,\n]|\Z))?"
    r"(?:[^\"\n]*?, metadata=\{([^{}()\[\]\"\\\n]*+(?:\"[^\"\\\n]*+\"[^{}()\[\]\"\\\n]*+)*)\})?"
    r"(?P<rest>[^\"\n]*+(?:\"[^\"\\\n]*+\"[^\"\n]*+)*)(?<!\{)(?=\n|\Z)",
    re.ASCII,
)


def plain_instructions(text: str, at: int, end: int) -> list[tuple[str, str, str]] | None:
    """Return the instructions in `text[at:end]`, which begins and ends between two: the opcode of each, the computation
    that it calls if it is a fusion, and the text between the braces of its metadata. None if one is not plain."""
    made: list[tuple[str, str, str]] = []
    while line := _LINE.match(text, at, end):
        opcode, called, metadata, rest = line.groups()
        if (metadata is None and "metadata" in rest) or (opcode == "fusion" and not called):
            return None
        made.append((opcode, called or "", metadata or ""))
        at = line.end()
    return made if at == end or skip_blank(text, at, end) >= end else None


_PARTS = re.compile(rf"\n{_BEGINNING}({_NAME}) = ({_SHAPE}) ({_OPCODE})\(({_OPERANDS})\)([^\n]*+)", re.ASCII)
_CALLED = re.compile(rf",[ \t]*+(?:{'|'.join(CALLING_ATTRIBUTES)})[ \t]*+=[ \t]*+(\{{[^{{}}]*+\}}|[^\s,{{}}]++)")


def shapes_if_whole(computation: Computation) -> set[str] | None:
    """Return the shapes in a computation, as written; None if a line is not plain, or uses a value of no instruction
    there or a computation that the text lacks.

    For 3 MB of HLO this takes 40 ms, and reading every instruction 250 ms.
    """
    text, (_, at, end) = computation.source.text, computation.span
    there = computation.module.computations
    names, shapes, operands = set(), set(), set()
    # A set of the names of a million instructions would take as much memory as their text: then one by one.
    known = computation.by_name if end - at > 16 << 20 else None
    for line in _PARTS.finditer(text, at, end):
        if line.start() != at:
            return None
        name, shape, opcode, inside, rest = line.groups()
        shapes.add(shape)
        at = line.end()
        if known is None:
            names.add(name)
        if opcode in NO_OPERANDS:
            continue
        if known is None:
            operands.add(inside)
        elif not all(map(known.__contains__, operand_names(inside))):
            return None
        # A comment between an attribute's name and its value is legal, but no printer writes it.
        if "/*" in rest:
            return None
        for value in _CALLED.findall(rest):
            if not all(map(there.__contains__, COMPUTATION_NAME.findall(value))):
                return None
    used = {operand for inside in operands for operand in operand_names(inside)}
    return shapes if used <= names and skip_blank(text, at, end) >= end else None
