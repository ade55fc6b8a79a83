"""Arguments written down: `f32[1024,1024]`, `bf16[8,128]`, `i32[10]`, `f32[]`, `key`, `3`, `2.5`.

The notation is that of jaxprs. A name in a shape, `f32[n,n]`, is a parameter of the workload. Arrays are filled with
seeded random numbers: normal ones for floats, 0 to 9 for integers. Nested arguments are written as in Python (`nested`
reads them): `{'w': f32[8,4], 'b': f32[4]}`, `(f32[3], None, 'relu')`; `x=f32[3]` is given by its name. Other objects
have no notation here; they come from an inputs function. NumPy and jax are imported where an array is made, and not
before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import prod
from typing import TYPE_CHECKING, Any, Literal

from jaxprof.errors import UsageError

if TYPE_CHECKING:
    import numpy

    from jaxprof.workloads.model import Parameters

_BITS = {
    "float16": 16,
    "bfloat16": 16,
    "float32": 32,
    "float64": 64,
    "float8_e4m3fn": 8,
    "float8_e5m2": 8,
    "int8": 8,
    "int16": 16,
    "int32": 32,
    "int64": 64,
    "uint8": 8,
    "uint16": 16,
    "uint32": 32,
    "uint64": 64,
    "complex64": 64,
    "complex128": 128,
    "bool": 8,
}
_SHORT = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "c64": "complex64",
    "c128": "complex128",
    "pred": "bool",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}
_INTEGERS_BELOW = 10
_ARRAY = re.compile(r"\s*(\w+)\s*\[([^\[\]]*)\]\s*")
_KEY = re.compile(r"key(?:<(\w+)>)?(?:\[([^\[\]]*)\])?")
_EXAMPLES = (
    "Write f32[1024,1024], bf16[8,128], i32[10], f32[] for a scalar array, key, a number (3, 2.5), "
    "or several of them: {'w': f32[8,4], 'b': f32[4]}."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One argument, as it was written."""

    text: str
    kind: Literal["array", "key", "number", "word", "nested"]
    """`word`: a string or None, as it is; `nested`: a container of `parts`."""
    dtype: str = ""
    """NumPy's (or ml_dtypes') name of it; of a key, what makes it, where that is not JAX's default."""
    shape: tuple[int | str, ...] = ()
    """Sizes; a word is the name of a parameter."""
    number: bool | int | float = 0
    word: str | None = None
    container: str = ""
    """`tuple`, `list`, `dict`, or the `module:Name` of a named tuple."""
    parts: tuple[tuple[str | int, Spec], ...] = ()
    """Of a container, in order: key, name or index, and what is there."""
    keyword: str = ""
    """The name by which the argument is given; empty where its place says it."""

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that the shape, or one inside, speaks of."""
        inside = [name for _, part in self.parts for name in part.names]
        return (*(size for size in self.shape if isinstance(size, str)), *inside)

    def check(self, parameters: Parameters) -> None:
        """Raises UsageError where a shape, or one inside, names no parameter."""
        self.sizes(parameters)
        for _, part in self.parts:
            part.check(parameters)

    def sizes(self, parameters: Parameters) -> tuple[int, ...]:
        """The shape in numbers. Raises UsageError for a name that is no parameter, or a value that is no size."""
        return tuple(self._size(size, parameters) for size in self.shape)

    def bytes(self, parameters: Parameters) -> int:
        """What the array takes, or all that is inside."""
        if self.kind == "nested":
            return sum(part.bytes(parameters) for _, part in self.parts)
        return prod(self.sizes(parameters)) * _BITS[self.dtype] // 8 if self.kind == "array" else 8

    def _size(self, size: int | str, parameters: Parameters) -> int:
        if isinstance(size, int):
            return size
        if size not in parameters:
            known = f"The parameters are: {', '.join(parameters)}." if parameters else "There are no parameters."
            raise UsageError(f"{self.text}: there is no parameter {size!r}", f"{known} Or write a number.")
        value = parameters[size]
        if not isinstance(value, int) or value < 0:
            raise UsageError(f"{self.text}: {size}={value} is not a size", "A size is a whole number from 0.")
        return value


def parse(text: str) -> Spec:
    """The spec that `text` says. Raises UsageError showing how one is written."""
    from jaxprof.workloads.nested import parse_argument

    return parse_argument(text)


def parse_leaf(text: str) -> Spec:
    """As `parse`, for an argument that has nothing inside it."""
    stripped = text.strip()
    key = _KEY.fullmatch(stripped)
    if key:
        return Spec(text=stripped, kind="key", dtype=key[1] or "", shape=_shape(key[2] or "", stripped))
    if stripped == "None":
        return Spec(text=stripped, kind="word")
    if stripped in ("True", "False"):
        return Spec(text=stripped, kind="number", number=stripped == "True")
    match = _ARRAY.fullmatch(text)
    if match:
        return Spec(text=stripped, kind="array", dtype=_dtype(match[1], stripped), shape=_shape(match[2], stripped))
    for read in (int, float):
        try:
            return Spec(text=stripped, kind="number", number=read(stripped))
        except ValueError:
            continue
    if stripped in _BITS or stripped in _SHORT:
        raise UsageError(f"{stripped!r} has no shape", f"{stripped}[] is a scalar, {stripped}[8,128] a matrix.")
    raise cannot_read(text)


def cannot_read(text: str) -> UsageError:
    """The error for what is no argument."""
    return UsageError(f"cannot read the argument {text!r}", _EXAMPLES)


def array_text(dtype: str, shape: Sequence[int]) -> str | None:
    """The spec of an array, the dtype by NumPy's name: `f32[8,4]`; None for a dtype that has no spec."""
    if dtype not in _BITS:
        return None
    short = next((name for name, known in _SHORT.items() if known == dtype), dtype)
    return f"{short}[{','.join(map(str, shape))}]"


def make(specs: Sequence[Spec], parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
    """The arguments: NumPy arrays, numbers as they are, and for `key` a typed JAX key. Raises UsageError."""
    return tuple(_make(spec, parameters, random) for spec in specs)


def _make(spec: Spec, parameters: Parameters, random: numpy.random.Generator) -> Any:
    if spec.kind == "number":
        return spec.number
    if spec.kind == "word":
        return spec.word
    if spec.kind == "key":
        return _make_key(spec, parameters, random)
    if spec.kind == "nested":
        from jaxprof.workloads.nested import put_together

        return put_together(spec, [(label, _make(part, parameters, random)) for label, part in spec.parts])
    shape, dtype = spec.sizes(parameters), spec.dtype
    if dtype == "bool":
        return random.random(shape) < 0.5
    if dtype.startswith(("int", "uint")):
        return random.integers(_INTEGERS_BELOW, size=shape, dtype="int64").astype(dtype)
    if dtype.startswith("complex"):
        part = "float32" if dtype == "complex64" else "float64"
        return random.standard_normal((*shape, 2), dtype=part).view(dtype)[..., 0]  # type: ignore[call-overload]
    if dtype in ("float32", "float64"):
        return random.standard_normal(shape, dtype=dtype)  # type: ignore[call-overload]
    return random.standard_normal(shape, dtype="float32").astype(_narrow(dtype))


def _make_key(spec: Spec, parameters: Parameters, random: numpy.random.Generator) -> Any:
    import jax

    try:
        key = jax.random.key(int(random.integers(2**31)), impl=spec.dtype or None)
    except ValueError as error:
        raise UsageError(f"{spec.text}: {error}", "Write key for a key of JAX's default kind.") from None
    return jax.random.split(key, spec.sizes(parameters)) if spec.shape else key


def _narrow(dtype: str) -> Any:
    if dtype == "float16":
        return dtype
    import ml_dtypes

    return getattr(ml_dtypes, dtype)


def _dtype(name: str, text: str) -> str:
    dtype = _SHORT.get(name, name)
    if dtype not in _BITS:
        near = get_close_matches(name, [*_SHORT, *_BITS], n=3, cutoff=0.5)
        mend = f"Did you mean {', '.join(near)}?" if near else f"Known: {', '.join([*_SHORT, *_BITS])}."
        raise UsageError(f"{text}: unknown dtype {name!r}", mend)
    return dtype


def _shape(text: str, whole: str) -> tuple[int | str, ...]:
    """The sizes between the brackets; a comma at the end is allowed, as in Python."""
    items = [item.strip() for item in text.split(",")]
    if items[-1] == "":
        items.pop()
    return tuple(_dimension(item, whole) for item in items)


def _dimension(item: str, whole: str) -> int | str:
    if item.isidentifier():
        return item
    try:
        size = float(item)
        if size < 0 or size != int(size):
            raise ValueError(item)
    except (ValueError, OverflowError):
        raise UsageError(f"{whole}: {item!r} is not a size", f"A size is a whole number from 0. {_EXAMPLES}") from None
    return int(size)
