"""Shapes, literals and shardings of XLA's protos, in HLO's notation. Numbers are those of `xla/xla_data.proto`."""

from __future__ import annotations

import struct
from math import prod
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jaxprof.hlo.read.wire import Message

PRIMITIVE_TYPES: Final[dict[int, str]] = {
    1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64", 10: "f16", 11: "f32",
    12: "f64", 13: "tuple", 14: "opaque", 15: "c64", 16: "bf16", 17: "token", 18: "c128", 19: "f8e5m2", 20: "f8e4m3fn",
    21: "s4", 22: "u4", 23: "f8e4m3b11fnuz", 24: "f8e5m2fnuz", 25: "f8e4m3fnuz", 26: "s2", 27: "u2", 28: "f8e4m3",
    29: "f8e3m4", 30: "s1", 31: "u1", 32: "f4e2m1fn", 33: "f8e8m0fnu", 34: "buffer", 35: "f6e3m2fn", 36: "f6e2m3fn",
}  # fmt: skip
_TUPLE: Final = 13
_BUFFER: Final = 34
_UNBOUNDED: Final = -(1 << 63)
_SHOWN_ELEMENTS: Final = 16
_DEEPEST: Final = 64


def braced(numbers: Iterable[object]) -> str:
    return "{" + ",".join(map(str, numbers)) + "}"


def quoted(text: str) -> str:
    """A string as HLO text has it: in quotes, with C escapes for what is not printable ASCII."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text and "'" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_escaped, text.encode("utf-8", "replace"))) + '"'


def _escaped(octet: int) -> str:
    letter = {9: "\\t", 10: "\\n", 13: "\\r", 34: '\\"', 39: "\\'", 92: "\\\\"}.get(octet)
    return letter or (chr(octet) if 32 <= octet < 127 else f"\\{octet:03o}")


def shape(proto: Message, *, layouts: bool = True, depth: int = 0) -> str:
    """A `ShapeProto`; without the layouts as in a computation's signature."""
    kind = proto.number(2)
    if kind in (_TUPLE, _BUFFER) and depth < _DEEPEST:
        members = [shape(member, layouts=layouts, depth=depth + 1) for member in proto.messages(4)]
        if kind == _BUFFER:
            return f"b({', '.join(members)})"
        return f"({', '.join(f'/*index={n}*/{m}' if n and n % 5 == 0 else m for n, m in enumerate(members))})"
    name = PRIMITIVE_TYPES.get(kind, f"type{kind}")
    dynamic = proto.numbers(6)
    sizes = [
        "?" if size == _UNBOUNDED else f"<={size}" if number < len(dynamic) and dynamic[number] else str(size)
        for number, size in enumerate(proto.numbers(3))
    ]
    written = f"{name}[{','.join(sizes)}]"
    return written + _layout(proto.message(5), len(sizes)) if layouts and 5 in proto else written


def _layout(proto: Message, rank: int) -> str:
    rest = "".join(
        f"({','.join('*' if size < 0 else str(size) for size in tile.numbers(1))})" for tile in proto.messages(6)
    )
    rest = "T" + rest if rest else ""
    if alignment := proto.number(16):
        rest += f"L({alignment})" if alignment != 1 else ""
    if bits := proto.number(7):
        rest += f"E({bits})"
    if space := proto.number(8):
        rest += f"S({space})"
    if not rest and not rank:
        return ""
    return "{" + ",".join(map(str, proto.numbers(1))) + (":" + rest if rest else "") + "}"


_WHOLE: Final = {4: 4, 5: 5, 8: 6, 9: 7}
"""Literal field by primitive type: varint lists."""
_FLOATING: Final = {11: (8, "f"), 12: (9, "d")}
_PACKED: Final = {2: (15, "b"), 6: (3, "B"), 3: (17, "h"), 7: (16, "H"), 10: (11, "e"), 16: (13, "H")}
"""Literal field by primitive type: little-endian bytes. bfloat16 is the upper half of a float32."""


def literal(proto: Message, depth: int = 0) -> str:
    """A `LiteralProto` of at most 16 elements; `{...}` for a longer one, as XLA's own printer has it."""
    kind = proto.message(1).number(2)
    if kind == _TUPLE and depth < _DEEPEST:
        return f"( {', '.join(literal(member, depth + 1) for member in proto.messages(10)[:_SHOWN_ELEMENTS])} )"
    sizes = proto.message(1).numbers(3)
    count = prod(sizes) if all(size >= 0 for size in sizes) else _SHOWN_ELEMENTS + 1
    if count > _SHOWN_ELEMENTS or len(sizes) > _DEEPEST:
        return "{...}"
    values = _values(proto, kind)
    return _nested(values, sizes) if len(values) == count else "{...}"


def _values(proto: Message, kind: int) -> list[str]:
    if kind == 1:
        return ["true" if value else "false" for value in proto.numbers(2)]
    if kind in _WHOLE:
        unsigned = kind in (8, 9)
        return [str(value % (1 << 64) if unsigned else value) for value in proto.numbers(_WHOLE[kind])]
    if kind in _FLOATING:
        number, code = _FLOATING[kind]
        return [_shortest(value, code) for value in proto.floats(number, code)]
    if kind in _PACKED:
        number, code = _PACKED[kind]
        data = proto.octets(number)
        size = struct.calcsize(code)
        unpacked = struct.unpack(f"<{len(data) // size}{code}", data[: len(data) // size * size])
        if kind == 16:
            halves = [struct.unpack("<f", struct.pack("<I", value << 16))[0] for value in unpacked]
            return [f"{value:.4g}" for value in halves]
        return [_shortest(value, code) if code == "e" else str(value) for value in unpacked]
    return []


_DIGITS: Final = {"e": (5, 5), "f": (6, 9), "d": (15, 17)}


def _shortest(value: float, code: str) -> str:
    """The value as C's `%g` has it, with more digits only where they are needed to tell it from its neighbours."""
    few, all_of_them = _DIGITS[code]
    text = f"{value:.{few}g}"
    try:
        same = struct.pack(code, float(text)) == struct.pack(code, value)
    except OverflowError:
        same = False
    return text if same else f"{value:.{all_of_them}g}"


def _nested(values: Sequence[str], sizes: Sequence[int]) -> str:
    if not sizes:
        return values[0] if values else "{...}"
    if len(sizes) == 1:
        return "{" + ", ".join(values) + "}"
    step = prod(sizes[1:])
    parts = (_nested(values[n * step : (n + 1) * step], sizes[1:]) for n in range(sizes[0]))
    return "{ " + ", ".join(parts) + " }"


_SHARDING_TYPES: Final = {0: "replicated", 3: "devices", 4: "manual", 5: "unknown", 6: "unreduced"}


def sharding(proto: Message, depth: int = 0) -> str:
    """An `OpSharding`: `{replicated}`, `{devices=[2,4]<=[8]}`, or a braced list for a tuple."""
    if 14 in proto:
        return _named_sharding(proto.message(14))
    kind = proto.number(1)
    if kind == 2 and depth < _DEEPEST:
        return "{" + ", ".join(sharding(member, depth + 1) for member in proto.messages(5)) + "}"
    if kind == 1:
        return f"{{maximal device={','.join(map(str, proto.numbers(4)))}}}"
    if kind != 3:
        return "{" + _SHARDING_TYPES.get(kind, f"type{kind}") + "}"
    tiles = f"devices=[{','.join(map(str, proto.numbers(3)))}]"
    if reshape := proto.numbers(9):
        permutation = proto.numbers(10)
        tiles += f"<=[{','.join(map(str, reshape))}]"
        if permutation != list(range(len(permutation))):
            tiles += f"T({','.join(map(str, permutation))})"
    else:
        tiles += ",".join(map(str, proto.numbers(4)))
    if proto.number(6):
        tiles += " last_tile_dim_replicate"
    if last := proto.numbers(8):
        tiles += (
            f" last_tile_dims={{{', '.join(_SHARDING_TYPES.get(dimension, str(dimension)) for dimension in last)}}}"
        )
    return "{" + tiles + "}"


def mesh(proto: Message) -> str:
    """A `MeshProto`: `mesh['data'=4,'model'=2]`."""
    sizes = ",".join(f"'{axis.text(1)}'={axis.number(2)}" for axis in proto.messages(1))
    if devices := proto.numbers(2):
        sizes += f", device_ids=({','.join(map(str, devices))})"
    return f"mesh[{sizes}]"


def axes(mesh_proto: Message, references: Iterable[Message]) -> str:
    """`AxisRefProto`s by name: `{'data'}`; a part of an axis as `'data':(2)2`, sizes before it and its own."""
    names = [axis.text(1) for axis in mesh_proto.messages(1)]
    written = []
    for reference in references:
        number = reference.number(1)
        name = names[number] if 0 <= number < len(names) else str(number)
        part = reference.message(2)
        written.append(f"'{name}':({part.number(1)}){part.number(2)}" if 2 in reference else f"'{name}'")
    return braced(written)


def _named_sharding(proto: Message) -> str:
    on = proto.message(2)
    if not on.messages(1) and len(on.numbers(2)) == 1:
        return f"{{single_device[device_id={on.numbers(2)[0]}]}}"
    dimensions = [axes(on, dimension.messages(1)) for dimension in proto.messages(3)]
    rest = [
        f"{name}={axes(on, proto.messages(number))}"
        for number, name in ((4, "replicated"), (5, "unreduced"), (7, "manual"))
        if number in proto
    ]
    return "{" + ", ".join([mesh(on), f"[{', '.join(dimensions)}]", *rest]) + "}"
