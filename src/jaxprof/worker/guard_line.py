"""What one line of JAX's transfer guard says: direction, type, bytes. Read leniently: the wording is not promised.

Copies on JAX's fast path for jitted calls are logged without a word on what was copied (0.7 to 0.12); their type and
size are unknown. A copy to several devices is logged once for each, with the type of the whole array.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

_TYPED: Final = (
    re.compile(r"aval=\w*\(?(?P<dtype>\w+(?:<\w+>)?)\[(?P<dims>[^\]]*)\]"),
    re.compile(r"shape=[(\[](?P<dims>[^)\]]*)[)\]],\s*dtype=(?:\w*\.)?(?P<dtype>\w+)"),
)
_SHARDED_DIMENSION: Final = re.compile(r"@(\([^)]*\)|\w+)")
_TO: Final = re.compile(r"dst_sharding=(?P<sharding>\w+)\(")
_SPEC: Final = re.compile(r"spec=\w+\((?P<spec>(?:[^()]|\([^()]*\))*)\)")
_MESH: Final = re.compile(r"'(?P<axis>[^']+)': (?P<size>\d+)")
_AXIS: Final = re.compile(r"'([^']+)'")
_DTYPE: Final = re.compile(r"k?(?P<kind>bfloat|float|uint|int|complex|bf|f|u|s|i|c)(?P<bits>\d+)(?P<rest>\w*)\Z", re.I)
_SHORT: Final = {"bfloat": "bf", "float": "f", "uint": "u", "int": "i", "complex": "c", "s": "i"}
_BOOL: Final = frozenset({"bool", "pred", "kpred"})
_LONGEST_TYPE: Final = 80


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy, as far as the line tells."""

    direction: str
    """`host_to_device`, `device_to_host` or `device_to_device`."""
    type: str
    """`f32[4]`, of the whole array; empty where the line does not tell."""
    bytes: int | None
    """That were copied to this device; None where the line does not tell."""


def read_copy(direction: str, said: str) -> Copy:
    """`direction` as the line has it (`host-to-device`), `said` what stands after `transfer:`."""
    direction = direction.replace("-", "_")
    found = next((match for pattern in _TYPED if (match := pattern.search(said))), None)
    if found is None:
        return Copy(direction, "", None)
    short, item = _dtype(found["dtype"])
    dims = _SHARDED_DIMENSION.sub("", found["dims"]).replace(" ", "").strip(",")
    sizes = [int(size) if size.isdigit() else None for size in dims.split(",")] if dims else []
    kind = f"{short}[{dims}]"[:_LONGEST_TYPE]
    known = [size for size in sizes if size is not None]
    parts = _parts(said)
    if item is None or parts is None or len(known) < len(sizes):
        return Copy(direction, kind, None)
    return Copy(direction, kind, item * math.prod(known) // parts)


def _dtype(name: str) -> tuple[str, int | None]:
    """`float32` → `f32`, 4 bytes. Numbers of less than a byte take one on the host."""
    if name.lower() in _BOOL:
        return "bool", 1
    found = _DTYPE.match(name)
    if found is None:
        return name, None
    kind, bits = found["kind"].lower(), int(found["bits"])
    return f"{_SHORT.get(kind, kind)}{bits}{found['rest']}", max(1, bits // 8)


def _parts(said: str) -> int | None:
    """Into how many parts the array is split over devices, of which one was copied; None where that cannot be read."""
    to = _TO.search(said)
    if to is None or to["sharding"] == "SingleDeviceSharding":
        return 1
    spec = _SPEC.search(said)
    if to["sharding"] != "NamedSharding" or spec is None:
        return None
    mesh = {axis["axis"]: int(axis["size"]) for axis in _MESH.finditer(said)}
    axes = _AXIS.findall(spec["spec"])
    return math.prod(mesh[axis] for axis in axes) or None if all(axis in mesh for axis in axes) else None
