"""Arguments written as text: `f32[1024,1024]`, `bf16[8,128]`, `i32[10]`, `f32[]`, `key`, `3`, `2.5`.

The notation is that of jaxprs. A name in a shape, `f32[n,n]`, is a parameter of the workload. Arrays are filled with
seeded random numbers (`workloads.function`). Nested arguments are written as in Python: `{'w': f32[8,4], 'b': f32[4]}`,
`(f32[3], None, 'relu')`; a named tuple is `module:Name(field=f32[3])`; `x=f32[3]` gives the argument by its name. Other
objects have no notation here; they come from an inputs function. Nothing is called or imported here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from math import prod
from typing import TYPE_CHECKING, Literal

from jaxprof.base.errors import UsageError
from jaxprof.base.values import frozen

if TYPE_CHECKING:
    from jaxprof.workloads.model import Parameters

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
_BITS = {dtype: int((re.findall(r"\d+", dtype) or [8])[0]) for dtype in _SHORT.values()}
"""Bits of an element by dtype: the first number in its name; a bool has 8."""
_ARRAY = re.compile(r"\s*(\w+)\s*\[([^\[\]]*)\]\s*")
_KEY = re.compile(r"key(?:<(\w+)>)?(?:\[([^\[\]]*)\])?")
_EXAMPLES = (
    "Write f32[1024,1024], bf16[8,128], i32[10], f32[] for a scalar array, key, a number (3, 2.5), "
    "or several of them: {'w': f32[8,4], 'b': f32[4]}."
)
_KEYWORD = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)")
_BEYOND_PYTHON = re.compile(
    r"""(?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?<=\bkey)<\w+>|(?<=\w)\s*\[\s*\]"""
    r"""|(?<=\w):(?=[A-Za-z_][\w.]*\s*\()"""
)
"""What of the notation is not Python's: `key<rbg>`, `f32[]`, the colon of `module:Name(...)`. Not within strings."""
_LABEL = re.compile(r"-?\d{1,18}|[A-Za-z_]\w*")
_NAMED = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


@frozen(kw_only=True)
class Spec:
    """One argument of a function, as its text describes it: `f32[n,n]`, `key`, `3`, `(f32[4], {"rate": 0.1})`."""

    text: str
    kind: Literal["array", "key", "value", "nested"]
    """`value`: a number, a string or None, as it is; `nested`: a container of `parts`."""
    dtype: str = ""
    """The name in NumPy or ml_dtypes; for a key, its implementation, if it is not JAX's default."""
    shape: tuple[int | str, ...] = ()
    """Sizes; a string is the name of a parameter."""
    value: float | str | None = None
    container: str = ""
    """`tuple`, `list`, `dict`, or the `module:Name` of a named tuple."""
    parts: tuple[tuple[str | int, Spec], ...] = ()
    """The parts of a container, in order: key, name or index, and spec."""
    keyword: str = ""
    """The name by which the argument is given; empty if it is given by position."""

    def check(self, parameters: Parameters) -> None:
        """Raises UsageError if a shape, or one inside, names an unknown parameter."""
        self.sizes(parameters)
        for _, part in self.parts:
            part.check(parameters)

    def sizes(self, parameters: Parameters) -> tuple[int, ...]:
        """Return the shape in numbers. Raises UsageError for an unknown parameter, or a value that is not a size."""
        sizes = []
        for size in self.shape:
            value = size if isinstance(size, int) else parameters.get(size)
            if value is None:
                hint = f"The parameters are: {', '.join(parameters)}." if parameters else "There are no parameters."
                raise UsageError(f"{self.text}: there is no parameter {size!r}", f"{hint} Or write a number.")
            if not isinstance(value, int) or (isinstance(size, str) and value < 0):
                raise UsageError(f"{self.text}: {size}={value} is not a size", "A size is a whole number from 0.")
            sizes.append(value)
        return tuple(sizes)

    def bytes(self, parameters: Parameters) -> int:
        if self.kind == "nested":
            return sum(part.bytes(parameters) for _, part in self.parts)
        return prod(self.sizes(parameters)) * _BITS[self.dtype] // 8 if self.kind == "array" else 8


def parse_leaf(text: str) -> Spec:
    """Return the spec of an argument that is not a container. Raises UsageError with examples."""
    stripped = text.strip()
    key = _KEY.fullmatch(stripped)
    if key:
        return Spec(text=stripped, kind="key", dtype=key[1] or "", shape=_shape(key[2] or "", stripped))
    match = _ARRAY.fullmatch(text)
    if match:
        dtype = _SHORT.get(match[1], match[1])
        if dtype not in _BITS:
            known = [*_SHORT, *_BITS]
            near = get_close_matches(match[1], known, n=3, cutoff=0.5)
            hint = f"Did you mean {', '.join(near)}?" if near else f"Known: {', '.join(known)}."
            raise UsageError(f"{stripped}: unknown dtype {match[1]!r}", hint)
        return Spec(text=stripped, kind="array", dtype=dtype, shape=_shape(match[2], stripped))
    for read in (int, float):
        try:
            return Spec(text=stripped, kind="value", value=read(stripped))
        except ValueError:
            continue
    if stripped in _BITS or stripped in _SHORT:
        raise UsageError(f"{stripped!r} has no shape", f"{stripped}[] is a scalar, {stripped}[8,128] a matrix.")
    raise cannot_read(text)


def cannot_read(text: str) -> UsageError:
    return UsageError(f"cannot read the argument {text!r}", _EXAMPLES)


def array_text(dtype: str, shape: Sequence[int]) -> str | None:
    """Return the spec of an array, the dtype by NumPy's name: `f32[8,4]`; None for a dtype that has no spec."""
    if dtype not in _BITS:
        return None
    short = next((name for name, known in _SHORT.items() if known == dtype), dtype)
    return f"{short}[{','.join(map(str, shape))}]"


def _shape(text: str, spec_text: str) -> tuple[int | str, ...]:
    """Return the sizes between the brackets; a comma at the end is allowed, as in Python."""
    items = [item.strip() for item in text.split(",")]
    if items[-1] == "":
        items.pop()
    sizes: list[int | str] = []
    for item in items:
        if item.isidentifier():
            sizes.append(item)
            continue
        try:
            size = float(item)
            if size < 0 or size != int(size):
                raise ValueError(item)
        except (ValueError, OverflowError):
            raise UsageError(
                f"{spec_text}: {item!r} is not a size", f"A size is a whole number from 0. {_EXAMPLES}"
            ) from None
        sizes.append(int(size))
    return tuple(sizes)


def parse(text: str) -> Spec:
    """Return the spec of one argument. Raises UsageError with examples."""
    keyword = _KEYWORD.match(text)
    written = f"[{' '.join(text[keyword.end() if keyword else 0 :].splitlines())}]"
    try:
        whole = ast.parse(_BEYOND_PYTHON.sub(_as_python, written), mode="eval").body
        if not isinstance(whole, ast.List) or len(whole.elts) != 1:
            raise ValueError
        spec = _spec_of(whole.elts[0], written.encode())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise cannot_read(text) from None
    return replace(spec, text=text.strip(), keyword=keyword[1] if keyword else "")


def _as_python(match: re.Match[str]) -> str:
    """Return the match as a part of a name in Python, of the same length, so that positions stay the same."""
    if match["string"]:
        return match[0]
    return "." if match[0] == ":" else "_" * len(match[0])


def _spec_of(node: ast.expr, line: bytes) -> Spec:
    """Return the spec that `line` has at the place of `node`. Raises ValueError for other expressions of Python."""
    text = _text_of(node, line)
    labels: list[str | int]
    match node:
        case ast.Constant(value=str() | bool() | None as value):
            return Spec(text=text, kind="value", value=value)
        case ast.List(elts=values) | ast.Tuple(elts=values):
            container, labels = type(node).__name__.lower(), [*range(len(values))]
        case ast.Dict(keys=keys, values=values):
            container, labels = "dict", [_label(key, line) for key in keys]
        case ast.Call(func=func, args=[], keywords=fields) if _NAMED.fullmatch(_text_of(func, line)):
            container, labels = _text_of(func, line), [field.arg or "" for field in fields]
            values = [field.value for field in fields]
        case _:
            return parse_leaf(text)
    parts = zip(labels, (_spec_of(value, line) for value in values), strict=True)
    return Spec(text=text, kind="nested", container=container, parts=tuple(parts))


def _label(key: ast.expr | None, line: bytes) -> str | int:
    """Return the key of an entry: a text, with or without quotes, or a whole number."""
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        return key.value
    text = _text_of(key, line) if key is not None else ""
    if not _LABEL.fullmatch(text):
        raise ValueError(text)
    return int(text) if text.lstrip("-").isdigit() else text


def _text_of(node: ast.expr, line: bytes) -> str:
    return line[node.col_offset : node.end_col_offset].decode()


def split_shard(text: str) -> tuple[str, str]:
    """Return the argument that `--shard` names, and how it is split: `x=data,-`. Needs no argument's value, so the
    client can check it before it starts a process. Raises UsageError."""
    selector, equals, written = text.partition("=")
    if not equals or not selector.strip():
        raise UsageError(
            f"cannot read --shard {text!r}",
            "Write 1=data, x=data,-,model or params/*/kernel=-,model; 0=1 splits dimension 1.",
        )
    return selector.strip(), written
