"""XLA's array types: the shape of a value, its layout, and the memory that it occupies.

The notation is that of HLO text: `f32[8,<=16,?]{2,1,0:T(8,128)(2,1)E(4)S(1)}`, `(f32[2], token[])`. Nothing here knows
of instructions or files. Parts of a layout beyond the fields below are kept as text and shown again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from math import prod

from jaxprof.base.text import whole_number
from jaxprof.base.values import frozen
from jaxprof.hlo.text import COMMENT

UNBOUNDED = -1
"""Size of a dimension written `?`, which has no upper bound."""

MOST_ELEMENTS = (1 << 63) - 1
"""Most elements of an array; XLA counts them in 64 bits (`ShapeUtil::ValidateShape`)."""

MAIN_MEMORY = 0
HOST_MEMORY = 5
"""Memory spaces of a layout, `S(n)`: the device's own, and the host's (`Layout::kHostMemorySpace`)."""

DTYPE_BITS: dict[str, int] = {
    "pred": 8, "token": 0, "opaque": 0,
    "s1": 1, "s2": 2, "s4": 4, "s8": 8, "s16": 16, "s32": 32, "s64": 64,
    "u1": 1, "u2": 2, "u4": 4, "u8": 8, "u16": 16, "u32": 32, "u64": 64,
    "f4e2m1fn": 4, "f6e2m3fn": 6, "f6e3m2fn": 6,
    "f8e3m4": 8, "f8e4m3": 8, "f8e4m3b11fnuz": 8, "f8e4m3fn": 8, "f8e4m3fnuz": 8,
    "f8e5m2": 8, "f8e5m2fnuz": 8, "f8e8m0fnu": 8,
    "f16": 16, "bf16": 16, "f32": 32, "f64": 64, "c64": 64, "c128": 128,
}  # fmt: skip
"""Significant bits of one element, by XLA's lower-case primitive type name (`xla_data.proto`, `PrimitiveType`)."""


@frozen
class Layout:
    """Order of an array in memory: the part of a shape in braces."""

    minor_to_major: tuple[int, ...]
    """Dimension numbers from the fastest varying to the slowest."""
    tiles: tuple[tuple[int | None, ...], ...] = ()
    """`T(8,128)(2,1)` is `((8, 128), (2, 1))`; None stands for `*`, a dimension that merges with the next."""
    memory_space: int = 0
    """`S(n)`: 0 is the device's default memory, 5 the host's."""
    element_bits: int = 0
    """`E(n)`: bits that one element occupies when packed; 0 if the layout does not say."""
    text: str = ""
    """The layout as written, without the braces."""


@frozen
class Shape:
    """Type of a value. Equal shapes with different layouts are different.

    `dtype` is `tuple` for a tuple, `buffer` for `b(...)`, `token`, `opaque`, or the element's type. An unknown type
    keeps its name and has no known size (`element_bits` is 0, `known` is false).
    """

    dtype: str
    dimensions: tuple[int, ...] = ()
    """Sizes; the upper bound for a dynamic dimension, `UNBOUNDED` if there is none."""
    dynamic: tuple[int, ...] = ()
    """Numbers of the dimensions whose size is known only at run time."""
    layout: Layout | None = None
    tuple_shapes: tuple[Shape, ...] = ()
    """Members of a tuple, in order; for a `buffer` the one array that it holds."""

    @property
    def is_tuple(self) -> bool:
        return self.dtype == "tuple"

    @property
    def is_array(self) -> bool:
        """Whether the shape has elements of its own: neither tuple, buffer, token nor opaque."""
        return self.dtype not in ("tuple", "buffer", "token", "opaque")

    @property
    def rank(self) -> int:
        return len(self.dimensions)

    @property
    def known(self) -> bool:
        """Whether every dtype is known and every dimension has a bound, so that `bytes` is right."""
        if self.tuple_shapes or self.is_tuple:
            return all(shape.known for shape in self.tuple_shapes)
        return self.dtype in DTYPE_BITS and UNBOUNDED not in self.dimensions

    @property
    def elements(self) -> int:
        """Number of elements at the upper bound; for a tuple the sum over its members. An unbounded dimension counts as
        one."""
        if self.tuple_shapes:
            return sum(shape.elements for shape in self.tuple_shapes)
        return prod(1 if size == UNBOUNDED else size for size in self.dimensions) if self.is_array else 0

    @property
    def minor_to_major(self) -> tuple[int, ...]:
        """Dimensions in the order in memory, the one whose elements lie together first. Without a layout, or with one
        of another rank, as in a damaged text, the last dimension comes first."""
        stated = self.layout.minor_to_major if self.layout is not None else ()
        every = range(self.rank)
        return stated if sorted(stated) == [*every] else tuple(reversed(every))

    @property
    def element_bits(self) -> int:
        """Bits that one element occupies: whole bytes, as XLA stores it, unless the layout packs it (`E(4)`)."""
        if self.layout and self.layout.element_bits:
            return self.layout.element_bits
        bits = DTYPE_BITS.get(self.dtype, 0)
        return (bits + 7) // 8 * 8

    @property
    def bytes(self) -> int:
        """Bytes of the elements; for a tuple the sum over its members (without its table of pointers).

        Padding of a tiled layout is not counted: see `padded_bytes`.
        """
        if self.tuple_shapes:
            return sum(shape.bytes for shape in self.tuple_shapes)
        return (self.elements * self.element_bits + 7) // 8

    @property
    def padded_bytes(self) -> int:
        """Bytes with every tiled dimension rounded up to whole tiles (the first tile; TPU layouts)."""
        if self.tuple_shapes:
            return sum(shape.padded_bytes for shape in self.tuple_shapes)
        if not self.is_array or self.layout is None or not self.layout.tiles:
            return self.bytes
        tile = self.layout.tiles[0]
        if None in tile or self.layout.minor_to_major != self.minor_to_major or UNBOUNDED in self.dimensions:
            return self.bytes
        physical = [self.dimensions[number] for number in reversed(self.minor_to_major)]
        physical = [1] * (len(tile) - len(physical)) + physical
        for offset, size in enumerate(reversed(tile), start=1):
            if size:
                physical[-offset] = -(-physical[-offset] // size) * size
        return (prod(physical) * self.element_bits + 7) // 8

    def leaves(self) -> tuple[Shape, ...]:
        """Return the arrays, tokens and opaques in the shape, in order; tuples are flattened."""
        if not self.tuple_shapes:
            return () if self.is_tuple else (self,)
        return tuple(leaf for shape in self.tuple_shapes for leaf in shape.leaves())

    def member(self, indices: Iterable[int]) -> Shape:
        """Return the member of nested tuples at these indices, outermost first, as far as there are such members."""
        shape = self
        for index in indices:
            if index >= len(shape.tuple_shapes):
                break
            shape = shape.tuple_shapes[index]
        return shape

    def without_layout(self) -> Shape:
        """Return the type without layouts: a copy between layouts does not change it."""
        members = tuple(shape.without_layout() for shape in self.tuple_shapes)
        return Shape(self.dtype, self.dimensions, self.dynamic, None, members)

    def __str__(self) -> str:
        if self.is_tuple:
            return f"({', '.join(map(str, self.tuple_shapes))})"
        if self.dtype == "buffer":
            return f"b({', '.join(map(str, self.tuple_shapes))})"
        sizes = ("?" if size == UNBOUNDED else f"{'<=' * (number in self.dynamic)}{size}"
                 for number, size in enumerate(self.dimensions))  # fmt: skip
        layout = "{" + self.layout.text + "}" if self.layout else ""
        return f"{self.dtype}[{','.join(sizes)}]{layout}"


_ARRAY = re.compile(
    r"\s*+(?P<dtype>[A-Za-z][A-Za-z0-9]*+)\s*+\[(?P<sizes>[^\[\]{}()]*+)\]"
    r"(?:\{(?P<layout>[^{}]*+(?:\{[^{}]*+\}[^{}]*+)*)\})?"
)
_COMMENT = re.compile(COMMENT)
_SIZE = re.compile(r"\s*(?:(<=)?\s*(\d{1,19})|(\?))\s*")
_PROPERTY = re.compile(r"([A-Z#*]+)((?:\([^()]*(?:\([^()]*\)[^()]*)*\))+)")
_DEEPEST = 64


@lru_cache(maxsize=4096)
def parse_shape(text: str) -> Shape:
    """Return the shape that `text` spells; comments are allowed. Raises ValueError if `text` as a whole is not a
    shape."""
    source = _COMMENT.sub("", text) if "/*" in text else text
    shape, end = _shape(source, 0, 0)
    if source[end:].strip():
        raise ValueError(f"not a shape: {text[:200]!r}")
    return shape


def _shape(text: str, at: int, depth: int) -> tuple[Shape, int]:
    if match := _ARRAY.match(text, at):
        sizes: list[int] = []
        dynamic: list[int] = []
        written = match["sizes"]
        if written.isdigit() and len(written) < 19:  # in 64 bits
            sizes.append(int(written))
        elif written.strip():
            for number, part in enumerate(written.split(",")):
                size = _SIZE.fullmatch(part)
                if size is None:
                    raise ValueError(f"not a size: {part!r}")
                if size[1] or size[3]:
                    dynamic.append(number)
                sizes.append(UNBOUNDED if size[3] else int(size[2]))
        # Of fewer digits there are fewer elements.
        if len(written) > 18 and prod(max(size, 1) for size in sizes) > MOST_ELEMENTS:
            raise ValueError(f"more elements than XLA counts: {match[0][:200]!r}")
        layout = match["layout"]
        return Shape(
            match["dtype"], tuple(sizes), tuple(dynamic), None if layout is None else parse_layout(layout)
        ), match.end()
    begin = at + len(text[at : at + 64]) - len(text[at : at + 64].lstrip())
    kind = "buffer" if text.startswith("b(", begin) else "tuple"
    at = begin + (kind == "buffer")
    if depth > _DEEPEST or not text.startswith("(", at):
        raise ValueError(f"not a shape: {text[begin : begin + 200]!r}")
    at += 1
    members: list[Shape] = []
    while not (close := _CLOSE.match(text, at)):
        if members:
            if not (comma := _COMMA.match(text, at)):
                raise ValueError(f"expected a comma: {text[at : at + 200]!r}")
            at = comma.end()
        member, at = _shape(text, at, depth + 1)
        members.append(member)
    return Shape(kind, tuple_shapes=tuple(members)), close.end()


_CLOSE = re.compile(r"\s*\)")
_COMMA = re.compile(r"\s*,")


@lru_cache(maxsize=1024)
def parse_layout(text: str) -> Layout:
    """Return the layout that `text`, the part between a shape's braces, spells. Unknown parts stay in `text`."""
    order, _, rest = text.partition(":")
    # A text from outside may be of any length.
    properties = dict(_PROPERTY.findall(rest[:4096]))
    space, bits = (whole_number(properties.get(letter, "")[1:-1]) or 0 for letter in "SE")
    return Layout(
        tuple(int(number) for number in order.split(",") if number.strip().isdecimal() and len(number) < 10),
        tuple(
            tuple(whole_number(size.strip()) for size in tile.split(","))
            for tile in properties.get("T", "")[1:-1].split(")(")
            if tile
        ),
        space,
        bits,
        text,
    )
