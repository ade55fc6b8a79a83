"""Values as short text: `f32[4]`, `weak type f32[]`, `P('data') over 4 devices`, `3`.

The `repr` of the user's objects is never called: it could run their code, print an array, or wait for a device. What
looks like a secret is left out here: a part of a long value that is shown alone has lost its name.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import sys
from functools import lru_cache
from typing import Any

_SHORT = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "complex64": "c64", "complex128": "c128",
    "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "int4": "i4", "int2": "i2",
    "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8", "uint4": "u4", "uint2": "u2", "bool": "bool",
}  # fmt: skip
_NARROW = {
    "float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64",
}  # fmt: skip
_TEXT_AT_MOST = 120
_EXAMINED_AT_MOST = 4096
"""Characters of a text that are searched for secrets: far more than are shown, as the end of a URL tells its
password."""
_PARTS_AT_MOST = 12
_DEPTH_AT_MOST = 3


@lru_cache(maxsize=1024)
def dtype_name(dtype: Any, *, wide: bool) -> str:
    """Return `f32` for `float32`; without 64-bit types (`wide`), `f32` for `float64` too, since JAX narrows it."""
    name = getattr(dtype, "name", None) or str(dtype)
    if not wide:
        name = _NARROW.get(name, name)
    return _SHORT.get(name, name)


@lru_cache(maxsize=1024)
def is_narrowed(dtype: Any) -> bool:
    """Whether JAX halves the width of the type unless 64-bit types are enabled. Remembered, because the name of a dtype
    takes NumPy 5 µs."""
    return getattr(dtype, "name", "") in _NARROW


def array_type(shape: tuple[Any, ...], dtype: str) -> str:
    """Return `f32[4,3]`; dimensions of unknown size are shown as they print."""
    return f"{dtype}[{','.join(map(str, shape))}]"


def array_bytes(shape: tuple[Any, ...], dtype: str) -> int | None:
    """Return the bytes of an array of that shape and short dtype; None if unknown."""
    width = "".join(filter(str.isdigit, dtype[:4].partition("E")[0]))  # `f8E4M3FN` has 8 bits
    bits = {"bool": 8, "c64": 64, "c128": 128}.get(dtype) or int(width or 0)
    if not bits or not dtype.startswith(("f", "bf", "i", "u", "c", "bool")) or not all(type(n) is int for n in shape):
        return None
    return int(math.prod(shape)) * bits // 8


def sharding_text(sharding: Any) -> str:
    """Return `cpu:1` for one device, `P('data') over 4 devices` for several; empty if the sharding names no devices."""
    try:
        devices = sharding.device_set
    except (AttributeError, NotImplementedError, ValueError):
        return ""  # an abstract sharding, without devices
    memory = getattr(sharding, "memory_kind", None)
    kept_elsewhere = f" in {memory}" if memory and memory not in ("device", "unpinned_host") else ""
    if len(devices) == 1:
        (device,) = devices
        return f"{device.platform}:{device.id}{kept_elsewhere}"
    spec = getattr(sharding, "spec", None)
    words = type(sharding).__name__ if spec is None else f"P({', '.join(_axes(part) for part in spec)})"
    return f"{words} over {len(devices)} devices{kept_elsewhere}"


def _axes(part: Any) -> str:
    return repr(part) if part is None or isinstance(part, (str, tuple)) else str(part)


def static_text(value: Any, name: str = "", depth: int = 0) -> str:
    """Return a static value of this name as text: plain values as Python writes them, containers and dataclasses by
    their parts, anything else by its type. What looks like a secret is `[redacted]`."""
    kind = type(value)
    if kind in (str, bytes):
        return _kept(name, repr(value[:_EXAMINED_AT_MOST]))
    if value is None or kind in (bool, int, float, complex, range, slice) or value is Ellipsis:
        return _kept(name, repr(value))
    if isinstance(value, enum.Enum):
        return f"{kind.__name__}.{value.name}"
    if isinstance(value, type):
        return value.__name__
    if depth < _DEPTH_AT_MOST:
        parts = _parts(value, depth + 1)
        if parts is not None:
            return _kept(name, parts)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.dtype, numpy.generic)):
        return _kept(name, str(value[:_EXAMINED_AT_MOST] if isinstance(value, (numpy.str_, numpy.bytes_)) else value))
    qualified = getattr(value, "__qualname__", None) if callable(value) and kind.__module__ == "builtins" else None
    return qualified if isinstance(qualified, str) else kind.__name__


def _parts(value: Any, depth: int) -> str | None:
    """Return a container, a named tuple or a dataclass as text, part by part; None for anything else."""
    kind = type(value)
    if kind in (tuple, list, set, frozenset):
        first = value[0] if kind is tuple and len(value) == 2 else None
        name = first if type(first) is str and first != "token" else ""  # ('token', 'embed') are names of axes
        inner = [static_text(part, "" if part is first else name, depth) for part in list(value)[:_PARTS_AT_MOST]]
        more = ["…"] if len(value) > _PARTS_AT_MOST else []
        opening, closing = "()" if kind is tuple else "[]" if kind is list else "{}"
        comma = "," if kind is tuple and len(value) == 1 else ""
        return f"{opening}{', '.join(inner + more)}{comma}{closing}"
    if kind is dict:
        items = list(value.items())[:_PARTS_AT_MOST]
        pairs = [f"{static_text(k, '', depth)}: {static_text(v, k if type(k) is str else '', depth)}" for k, v in items]
        return f"{{{', '.join(pairs)}}}"
    fields: list[str] = []
    if isinstance(value, tuple) and hasattr(kind, "_fields"):
        fields = list(kind._fields)
    elif dataclasses.is_dataclass(value):
        fields = [item.name for item in dataclasses.fields(value) if item.name in getattr(value, "__dict__", ())]
    if not fields:
        return None
    shown = [f"{name}={static_text(getattr(value, name), name, depth)}" for name in fields[:_PARTS_AT_MOST]]
    return f"{kind.__name__}({', '.join(shown)})"


def _kept(name: str, text: str) -> str:
    from jaxprof.base.redaction import without_secret  # 5 ms, for which only a program with such a value waits

    text = without_secret(name, text)
    return text if len(text) <= _TEXT_AT_MOST else text[: _TEXT_AT_MOST - 1] + "…"
