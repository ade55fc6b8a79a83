"""Split instructions as text: where each begins and ends, and the parts of `ROOT %name = shape opcode(operands),
attribute=value, ...`.

Cutting a computation is one traversal with a regular expression, which finds the lines that begin an instruction. If
the text does not have one instruction per line (literals and attributes over several lines, strings with line ends in
them, computations written in place, lines that are no instruction at all), the instruction is read to its end, and what
follows decides. Splitting an instruction is on demand and forgiving: a text that is not an instruction gives None, and
the caller keeps the raw text.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from jaxprof.base.text import whole_number
from jaxprof.hlo.shape import Shape, parse_shape
from jaxprof.hlo.text import (
    COMMENT,
    OPEN_STRING,
    AttributeList,
    attributes,
    end_of_brackets,
    operand_names,
    skip_blank,
    unquote,
)

# Possessive wherever a character is repeated, so that no text makes these backtrack far; groups as in `__init__.py`.
_NAME = r"\s*+(?:ROOT\s++(?!=))?%?[^\s=%,(){}\"]++\s*+=\s*+"
_ARRAY_SHAPE = r"[A-Za-z]\w*+\[[^\[\]\"]*+\](?:\{[^{}\"]*+(?:\{[^{}\"]*+\}[^{}\"]*+)*\})?"
_BEGINNING = re.compile(
    rf"{_NAME}(?:(?P<shape>{_ARRAY_SHAPE})\s*+|(?P<tuple>\w?\())(?:(?P<opcode>[A-Za-z][\w\-]*+)\((?P<flat>[^()\"/]*+\))?)?",
    re.ASCII,
)
_FLAT_OPERANDS = re.compile(r"[^()\"/]*+\)")
_OPCODE = re.compile(r"\s*+([A-Za-z][\w\-]*+)\(", re.ASCII)
CALLING_ATTRIBUTES = (
    "calls", "to_apply", "body", "condition", "branch_computations", "true_computation", "false_computation",
    "called_computations", "select", "scatter", "decomposition",
)  # fmt: skip
"""Attributes whose value is one computation or a braced list of them, in the order in which XLA lists called
computations (`HloInstruction::called_computations`: a while loop's body before its condition).
"""
# The pattern includes what precedes the name; without it the search takes three times as long.
_MAY_CALL = re.compile(rf"\W(?:{'|'.join(CALLING_ATTRIBUTES)})\s*=", re.ASCII)
_COMMENT = re.compile(COMMENT)
_COMPACT_ELEMENT = re.compile(r"(?<=[\w.\-])#\d")
COMPUTATION_NAME = re.compile(r"%?([A-Za-z_0-9][\w.\-]*)")
NO_OPERANDS = frozenset({"parameter", "constant"})


class Metadata(NamedTuple):
    """Where an instruction came from, as its `metadata={...}` says. Absent fields are empty or 0."""

    op_name: str = ""
    """Path of transformations and scopes: `jit(f)/transpose(jvp(attn))/dot_general`."""
    source_file: str = ""
    source_line: int = 0
    stack_frame_id: int = 0
    """Frame of the module's table; 0 means none. `Module.stack_of` walks it."""
    text: str = ""
    """All metadata, as written between the braces."""

    @property
    def first_name(self) -> str:
        """First of the paths that XLA joined with `;` when it merged operations; the frame belongs to it."""
        return self.op_name.partition(";")[0]


class Record:
    """An instruction's parts as offsets into its text; each is read on first use, and all but the shape are kept."""

    __slots__ = (
        "_attributes", "_called", "_metadata", "_operands", "_shape_span", "inside", "limit",
        "opcode", "text",
    )  # fmt: skip

    def __init__(self, text: str, shape: tuple[int, int], opcode: str, inside: tuple[int, int], limit: int) -> None:
        self.text = text
        self.opcode = opcode
        self.inside = inside
        """Bounds of the text between the parentheses after the opcode."""
        self.limit = limit
        self._shape_span = shape
        self._operands: tuple[str, ...] | None = None
        self._attributes: dict[str, str] | None = None
        self._called: tuple[str, ...] | None = None
        self._metadata: Metadata | None = None

    @property
    def shape(self) -> Shape:
        try:
            return parse_shape(self.shape_text)
        except ValueError:
            return Shape(dtype="")

    @property
    def shape_text(self) -> str:
        """The shape as written."""
        return self.text[slice(*self._shape_span)]

    @property
    def operands(self) -> tuple[str, ...]:
        if self._operands is None:
            start, end = self.inside
            named = start < end and self.opcode not in NO_OPERANDS
            self._operands = operand_names(self.text[start:end]) if named else ()
        return self._operands

    @property
    def has_compact_element(self) -> bool:
        """Whether an operand is an element of a tuple in the short form (`--xla_dump_compact_gte`): `%x#0`, for a
        `get-tuple-element`; `operands` has the tuple."""
        start, end = self.inside
        if self.opcode in NO_OPERANDS or self.text.find("#", start, end) < 0:
            return False
        return _COMPACT_ELEMENT.search(_COMMENT.sub("", self.text[start:end])) is not None

    def attribute_list(self) -> AttributeList:
        """Return the attributes as offsets, read anew."""
        return attributes(self.text, self.inside[1] + 1, self.limit)

    @property
    def attributes(self) -> Mapping[str, str]:
        if self._attributes is None:
            self._attributes = {}
            for item in self.attribute_list().found:
                self._attributes.setdefault(item.name, self.text[item.start : item.end])
        return self._attributes

    def callees(self, implied: Mapping[int, str]) -> tuple[str, ...]:
        """Return the computations that the instruction calls.

        `implied` names those that a short form leaves out, by the offset of the operands of the instruction that stands
        for one (see `jaxprof.hlo.text.parse`).
        """
        if self._called is None:
            if self.inside[0] in implied:
                self._called = (implied[self.inside[0]],)
            # Most instructions call nothing, and a search over the text is ten times cheaper than reading the
            # attributes.
            elif not _MAY_CALL.search(self.text, self.inside[1], self.limit):
                self._called = ()
            else:
                written = self.attributes
                values = [_COMMENT.sub("", written[key]) for key in CALLING_ATTRIBUTES if key in written]
                # A value with `=` is a computation written in place of a name.
                self._called = tuple(
                    name for value in values if "=" not in value for name in COMPUTATION_NAME.findall(value)
                )
        return self._called

    @property
    def metadata(self) -> Metadata:
        if self._metadata is None:
            plain = _PLAIN_METADATA.match(self.text, self.inside[1], self.limit)
            if plain is not None:  # the usual case, in a tenth of the time that all attributes take
                self._metadata = read_metadata(plain[1])
                return self._metadata
            raw = self.attributes.get("metadata", "") if "metadata" in self.text[self.inside[1] : self.limit] else ""
            self._metadata = read_metadata(raw[1:-1] if raw.endswith("}") else raw[1:])
        return self._metadata


UNREADABLE = Record("", (0, 0), "", (0, 0), 0)
"""Stands for a text that is not an instruction: no opcode, operands or attributes."""


def read(text: str, start: int, limit: int) -> Record | None:
    """Return the instruction that begins at `start` and ends before `limit`, or None if there is none."""
    begin = _BEGINNING.match(text, start, limit)
    if begin is None:
        begin = _BEGINNING.match(text, skip_blank(text, start, limit), limit)
        if begin is None:
            return None
    opcode = begin["opcode"]
    shape_start, shape_end = begin.span("shape")
    opened, closed = begin.span("flat")
    if opened >= 0:  # most instructions
        return Record(text, (shape_start, shape_end), opcode, (opened, closed - 1), limit)
    opened = begin.end()
    if shape_start < 0:
        shape_start = begin.start("tuple")
        shape_end = end_of_brackets(text, begin.end("tuple") - 1, limit)
        if shape_end < 0:
            return None
    if not opcode:
        named = _OPCODE.match(text, skip_blank(text, shape_end, limit), limit)
        if named is None:
            return None
        opcode, opened = named[1], named.end()
    flat = _FLAT_OPERANDS.match(text, opened, limit)
    closed = flat.end() if flat else end_of_brackets(text, opened - 1, limit)
    if closed < 0:
        return None
    return Record(text, (shape_start, shape_end), opcode, (opened, closed - 1), limit)


def _end_outside_brackets(text: str, start: int, limit: int) -> int:
    """Return where the instruction that begins at `start` ends; -1 if there is none, or if brackets are open there."""
    instruction = read(text, start, limit)
    found = instruction.attribute_list() if instruction else None
    return found.end if found and found.closed else -1


_PLAIN_METADATA = re.compile(r'[^"]*?, metadata=\{([^{}"\\]*+(?:"[^"\\]*+"[^{}"\\]*+)*)\}')
"""Pattern whose braces are the metadata's own, because the first string after the operands lies in the metadata."""
_METADATA_ITEM = re.compile(rf"(\w+)\s*=\s*({OPEN_STRING}|[^\s\"]++)", re.DOTALL)
_TEXTS = ("op_name", "source_file")
_NUMBERS = ("source_line", "stack_frame_id")


@lru_cache(maxsize=4096)
def read_metadata(inside: str) -> Metadata:
    """Return the items of the text between the braces of `metadata={...}`. Unknown items remain in `text` only."""
    found = dict(_METADATA_ITEM.findall(inside))
    texts = [unquote(found.get(name, "")) for name in _TEXTS]
    numbers = [whole_number(found.get(name, "")) or 0 for name in _NUMBERS]
    return Metadata._make((*texts, *numbers, inside))


_LINE_START = re.compile(
    r"\n[ \t]*+(ROOT[ \t]++(?!=))?%?([^\s=%,(){}\"/]++)[ \t]*+=[ \t]"
    # The shape and the opcode, where the shape is an array and the operands have no brackets.
    r"(?a:([A-Za-z]\w*+\[[^\[\]\"\n]*+\](?:\{[^{}\"\n]*+\})?) ([A-Za-z][\w\-]*+)\((?=[^()\"/\n]*+\)))?"
)
Head: TypeAlias = "tuple[str, str] | None"
_INSTRUCTION_START = re.compile(r"(ROOT\s++(?!=))?%?([^\s=%,(){}\"/]++)\s*+=\s*+(?=[(\w])")


class Split(NamedTuple):
    """The inside of a computation's braces, split into instructions. What is no instruction is one without a name."""

    names: list[str]
    heads: list[Head]
    """Shape as written and opcode of each instruction, if they could be read in passing; each pair is one object."""
    starts: array[int]
    """Where each instruction begins, and where the last one ends."""
    inside: array[int]
    """Where the operands of each instruction begin, which contain no brackets; 0 where `heads` has None."""
    root: int | None
    """Number of the instruction marked ROOT; the last, if there are several."""


def split_instructions(text: str, start: int, end: int) -> Split:
    names: list[str] = []
    heads: list[Head] = []
    known: dict[Head, Head] = {}
    starts, inside = array("Q"), array("Q")
    roots: list[int] = []
    ahead = 2 * (end - start)
    """Characters that may still be looked at ahead, so that malformed text costs linear time as well."""
    at = start
    # One line behind, without a list: a million tuples would be the peak of what reading the module takes.
    lines = _LINE_START.finditer(text, start, end)
    line = next(lines, None)
    while line:
        following = next(lines, None)
        begin = line.start()
        if begin >= at:
            if at < begin:
                _read_on(text, at, begin, names, starts, roots)
                _fill(heads, inside, len(names))
            root, name, shape, opcode = line.groups()
            if root:
                roots.append(len(names))
            names.append(name)
            starts.append(begin)
            if opcode:
                head = shape, opcode
                heads.append(known.setdefault(head, head))
                inside.append(line.end())
            else:
                _fill(heads, inside, len(names))
            at = following.start() if following else end
            if text[at - 1] == "{" or text.find("\n", begin + 1, at) >= 0 or text.count('"', begin, at) % 2:
                whole = _end_outside_brackets(text, begin, at)
                if whole < 0 and at < end and ahead > 0:
                    whole = _end_outside_brackets(text, begin, end)
                    ahead -= (whole if whole >= 0 else end) - begin
                at = whole if whole >= 0 else at
        line = following
    _read_on(text, at, end, names, starts, roots)
    _fill(heads, inside, len(names))
    starts.append(end)
    return Split(names, heads, starts, inside, roots[-1] if roots else None)


def _fill(heads: list[Head], inside: array[int], count: int) -> None:
    more = count - len(heads)
    heads += [None] * more
    inside.extend([0] * more)


def _read_on(text: str, at: int, end: int, names: list[str], starts: array[int], roots: list[int]) -> None:
    """Add the instructions between `at` and `end`, where no line begins an instruction in the usual way."""
    at = skip_blank(text, at, end)
    while at < end:
        here = _INSTRUCTION_START.match(text, at, end)
        if here and here[1]:
            roots.append(len(names))
        names.append(here[2] if here else "")
        starts.append(at)
        instruction = read(text, at, end)
        if instruction:
            after = instruction.attribute_list().end
        else:  # an unreadable line is passed over
            line_end = text.find("\n", at, end)
            after = line_end if line_end >= 0 else end
        at = skip_blank(text, max(after, at + 1), end)


# The plain form, in which XLA prints nearly all instructions, is read with one match per line: a large module has a
# million instructions, and some questions concern them all. Nothing is cut out of the text or kept. It is strict: what
# it does not recognise counts as not plain, and the caller has it read as above, which takes ten times as long and
# decides.
#
# Sizes of at most 18 digits in all cannot exceed the 64 bits in which XLA counts elements: `shape.py` refuses others.
_SIZE = r"(?:<=)?\d++"
_SIZES = rf"(?=[^\]]{{0,18}}\])(?:{_SIZE}(?:,{_SIZE})*)?"
_ARRAY = rf"[a-z][a-z0-9]*+\[{_SIZES}\](?:\{{[^{{}}\n\"/]*+\}})?"
_SHAPE = rf"(?:{_ARRAY}|\((?:(?:/\*index=\d++\*/)?{_ARRAY}(?:, )?)*\))"
_PLAIN_BEGINNING = r"[ \t]*+(?:ROOT )?%?"
_PLAIN_NAME = r"[^\s=%,(){}\"/]++"
_PLAIN_OPCODE = r"[a-z][\w\-]*+"
# A `#` among the operands is an element of a tuple in its short form, which is not plain.
_OPERANDS = r"[^()\"\n#]*+"

# The metadata precedes the first string, or holds it, so its braces are its own and it is not part of another
# attribute's value.
_LINE = re.compile(
    rf"\n?{_PLAIN_BEGINNING}{_PLAIN_NAME} = {_SHAPE} ({_PLAIN_OPCODE})\({_OPERANDS}\)"
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


PLAIN_PARTS = re.compile(
    rf"\n{_PLAIN_BEGINNING}({_PLAIN_NAME}) = ({_SHAPE}) ({_PLAIN_OPCODE})\(({_OPERANDS})\)([^\n]*+)", re.ASCII
)
CALLED = re.compile(rf",[ \t]*+(?:{'|'.join(CALLING_ATTRIBUTES)})[ \t]*+=[ \t]*+(\{{[^{{}}]*+\}}|[^\s,{{}}]++)")
