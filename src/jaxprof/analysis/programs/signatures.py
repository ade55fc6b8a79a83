"""What varies in the arguments of one function from compilation to compilation, in words and in numbers.

Only recorded signatures count: merged rows keep the signature of one of them, so there may have been more shapes than
are counted here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from jaxprof.events import Compiled
from jaxprof.light_dataclass import dataclass

_TYPE = re.compile(r"([A-Za-z][\w<>:]*)\[([\d,]*)\]")
_LISTED = 4
"""Number of types or values that are listed; of more, the range, or the first ones and their number."""


@dataclass(frozen=True, slots=True)
class ArrayType:
    """`f32[4,128]`."""

    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Variation:
    """One argument that was not the same in every compilation."""

    name: str
    types: tuple[str, ...]
    """The different types, in the order in which they came: `f32[4]`; for a static argument, its values."""
    static: bool

    @property
    def summary(self) -> str:
        """`f32[1..412,128]`, `f32[4], bf16[4]`, `3, 4, 5, … (12 values)`."""
        if self.static or len(self.types) <= 2:
            return _listed(self.types, "values" if self.static else "types")
        arrays = _arrays(self.types)
        if len(arrays) < len(self.types):
            return _listed(self.types, "types")
        ranks = {len(array.shape) for array in arrays}
        dtypes = "|".join(dict.fromkeys(array.dtype for array in arrays))
        if len(ranks) > 1:
            return f"{dtypes} of {min(ranks)} to {max(ranks)} dimensions"
        return f"{dtypes}[{','.join(map(_extent, zip(*(array.shape for array in arrays), strict=True)))}]"


@dataclass(frozen=True, slots=True)
class Padding:
    """How many compilations would be left if the varying sizes were padded."""

    shapes: int
    """Number of different shapes that were seen."""
    buckets: int
    """Number that is left when each varying size is padded to the next power of two."""
    smallest: int
    largest: int
    """Smallest of the varying sizes, in all arguments."""


@lru_cache(maxsize=8192)
def array_type(text: str) -> ArrayType | None:
    """The dtype and shape in `text`; None for anything but an array's type, such as a static value."""
    match = _TYPE.match(text)
    if match is None:
        return None
    try:
        shape = tuple(int(size) for size in match.group(2).split(",") if size)
    except ValueError:  # more digits than Python converts: no array has that size
        return None
    return ArrayType(match.group(1), shape)


class Signatures:
    """The different signatures of one function. Takes each row once."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: dict[tuple[tuple[str, bool], ...], dict[tuple[str, ...], None]] = {}
        """By the names of the arguments (and whether each is static): tuples of their types."""

    def take(self, row: Compiled) -> None:
        """Adds the signature of a row."""
        heads = tuple((leaf.name or f"argument {at}", leaf.static) for at, leaf in enumerate(row.signature))
        self._seen.setdefault(heads, {})[tuple(leaf.type for leaf in row.signature)] = None

    def variations(self) -> tuple[Variation, ...]:
        """The arguments whose type, or static value, was not always the same; in the order of the arguments."""
        types: dict[tuple[str, bool], dict[str, None]] = {}
        for heads, column in self._columns():
            types.setdefault(heads, {}).update(dict.fromkeys(column))
        return tuple(Variation(name, tuple(seen), static) for (name, static), seen in types.items() if len(seen) > 1)

    def padding(self) -> Padding | None:
        """What bucketing by powers of two would give; None unless only sizes vary, in arrays of one rank."""
        if len(self._seen) != 1:
            return None
        axes: list[tuple[int, ...]] = []
        for (_, static), column in self._columns():
            if not static and (sizes := _varying_sizes(tuple(dict.fromkeys(column)))) is not None:
                axes += [each for each in _every_axis(column) if len(set(each)) > 1] if sizes else []
        if not axes:
            return None
        exact = set(zip(*axes, strict=True))
        rounded = {tuple(map(_power_of_two, sizes)) for sizes in exact}
        return Padding(len(exact), len(rounded), min(map(min, axes)), max(map(max, axes)))

    def _columns(self) -> Iterator[tuple[tuple[str, bool], tuple[str, ...]]]:
        """Each argument with its type in each signature."""
        for heads, signatures in self._seen.items():
            yield from zip(heads, zip(*signatures, strict=True), strict=True)


def _arrays(types: Sequence[str]) -> list[ArrayType]:
    return [array for text in types if (array := array_type(text)) is not None]


def _varying_sizes(types: Sequence[str]) -> bool | None:
    """Whether only sizes vary among `types`; None if they have several dtypes or ranks."""
    arrays = _arrays(types)
    if len(arrays) < len(types) or len({(array.dtype, len(array.shape)) for array in arrays}) != 1:
        return None
    return len(types) > 1


def _every_axis(types: Sequence[str]) -> Iterator[tuple[int, ...]]:
    return zip(*(array.shape for array in _arrays(types)), strict=True)


def _power_of_two(size: int) -> int:
    return 1 << (size - 1).bit_length() if size > 1 else size


def _extent(sizes: Sequence[int]) -> str:
    least, most = min(sizes), max(sizes)
    return str(least) if least == most else f"{least}..{most}"


def _listed(texts: Sequence[str], kind: str) -> str:
    if len(texts) <= _LISTED:
        return ", ".join(texts)
    return f"{', '.join(texts[: _LISTED - 1])}, … ({len(texts)} {kind})"
