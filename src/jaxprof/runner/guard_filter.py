"""Takes the lines of JAX's transfer guard out of a program's stderr and counts the copies that they report.

Everything else is passed on byte for byte. A line of the guard may follow half a line of the program's (a progress
bar), and may come in two pieces: text that could be its beginning is held back, for `HOLD_SECONDS` at most.

A line is read leniently, because its wording is not promised. Copies on JAX's fast path for jitted calls are logged
without what was copied (0.7 to 0.12), so their type and size are unknown. A copy to several devices is logged once for
each, with the type of the whole array.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from jaxprof.text import whole_number

if TYPE_CHECKING:
    from jaxprof.events import TransfersSeen

_TYPED: Final = (
    re.compile(r"aval=\w*\(?(?P<dtype>\w+(?:<\w+>)?)\[(?P<dims>[^\]]*)\]"),
    re.compile(r"shape=[(\[](?P<dims>[^)\]]*)[)\]],\s*dtype=(?:\w*\.)?(?P<dtype>\w+)"),
)
_SHARDED_DIMENSION: Final = re.compile(r"@(\([^)]*\)|\w+)")
_TO: Final = re.compile(r"dst_sharding=(?P<sharding>\w+)\(")
_SPEC: Final = re.compile(r"spec=\w+\((?P<spec>(?:[^()]|\([^()]*\))*)\)")
_MESH: Final = re.compile(r"'(?P<axis>[^']+)': (?P<size>\d{1,9})")
_AXIS: Final = re.compile(r"'([^']+)'")
_DTYPE: Final = re.compile(
    r"k?(?P<kind>bfloat|float|uint|int|complex|bf|f|u|s|i|c)(?P<bits>\d{1,4})(?P<rest>\w*)\Z", re.IGNORECASE
)
_SHORT: Final = {"bfloat": "bf", "float": "f", "uint": "u", "int": "i", "complex": "c", "s": "i"}
_BOOL: Final = frozenset({"bool", "pred", "kpred"})
_LONGEST_TYPE: Final = 80
HOLD_SECONDS: Final = 0.05
MOST_KINDS: Final = 256
"""Types counted separately; the others are counted together."""
OTHER_TYPES: Final = "other types"
COLLECT_SECONDS: Final = 1.0
_LONGEST: Final = 4096
"""Length of a line of the guard in bytes: a write of this size reaches a pipe in one piece."""
_MOST_READ: Final = 1024
"""Different lines whose parsed form is cached."""
_LINE: Final = re.compile(
    rb"[IWEF]\d{4} \d\d:\d\d:\d+\.\d+ +\d+ \w+\.cc:\d+\] "
    rb"(?P<direction>(?:host|device)-to-(?:host|device)) transfer:(?P<detail>[^\n]{0,%d})\n" % _LONGEST
)
_BEGINNING: Final = re.compile(
    rb"[IWEF](?:\d{0,4}|\d{4} [\d:]{0,20}|\d{4} \d\d:\d\d:\d+\.[\d ]{0,40}"
    rb"(?:\w+(?:\.(?:c(?:c(?::\d*(?:\](?: (?:[hd][^\n]{0,%d})?)?)?)?)?)?)?)?)\Z" % _LONGEST
)
"""The beginning of a line of the guard, at the end of the text so far."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy, as far as the line describes it."""

    direction: str
    """`host_to_device`, `device_to_host` or `device_to_device`."""
    type: str
    """`f32[4]`, of the whole array; empty if the line does not give it."""
    bytes: int | None
    """Bytes copied to this device; None if the line does not give them."""


def read_copy(direction: str, detail: str) -> Copy:
    """`direction` as in the line (`host-to-device`), `detail` the text after `transfer:`."""
    direction = direction.replace("-", "_")
    typed = next((match for pattern in _TYPED if (match := pattern.search(detail))), None)
    if typed is None:
        return Copy(direction, "", None)
    short, item = _dtype(typed["dtype"])
    dims = _SHARDED_DIMENSION.sub("", typed["dims"]).replace(" ", "").strip(",")
    sizes = [whole_number(size) for size in dims.split(",")] if dims else []
    kind = f"{short}[{dims}]"[:_LONGEST_TYPE]
    fixed = [size for size in sizes if size is not None]
    parts = _parts(detail)
    if item is None or parts is None or len(fixed) < len(sizes):
        return Copy(direction, kind, None)
    return Copy(direction, kind, item * math.prod(fixed) // parts)


def _dtype(name: str) -> tuple[str, int | None]:
    """`float32` → `f32`, 4 bytes. Types of less than a byte take one on the host."""
    if name.lower() in _BOOL:
        return "bool", 1
    match = _DTYPE.match(name)
    if match is None:
        return name, None
    kind, bits = match["kind"].lower(), int(match["bits"])
    return f"{_SHORT.get(kind, kind)}{bits}{match['rest']}", max(1, bits // 8)


def _parts(detail: str) -> int | None:
    """The number of parts into which the array is split over devices; one of them was copied. None if it cannot be
    read."""
    to = _TO.search(detail)
    if to is None or to["sharding"] == "SingleDeviceSharding":
        return 1
    spec = _SPEC.search(detail)
    if to["sharding"] != "NamedSharding" or spec is None:
        return None
    mesh = {axis["axis"]: int(axis["size"]) for axis in _MESH.finditer(detail)}
    axes = _AXIS.findall(spec["spec"])
    return math.prod(mesh[axis] for axis in axes) or None if all(axis in mesh for axis in axes) else None


@dataclass(slots=True)
class _Count:
    count: int = 0
    bytes: int | None = None


class GuardFilter:
    """Call `feed` with the input and pass on what it returns; call `collect` for the counts now and then. For one
    thread."""

    def __init__(self) -> None:
        self._held = b""
        self._held_until = 0.0
        self._read: dict[tuple[bytes, bytes], Copy] = {}
        self._kinds: set[tuple[str, str]] = set()
        self._counts: dict[Copy, int] = {}
        self._collected = 0.0

    def feed(self, data: bytes, now: float) -> bytes:
        """The program's own part of `data` and of what was held back."""
        rest = _LINE.sub(self._take, self._held + data)
        beginning = _BEGINNING.search(rest, max(rest.rfind(b"\n") + 1, len(rest) - 2 * _LONGEST))
        if beginning is None:
            self._held = b""
            return rest
        self._held = rest[beginning.start() :]
        self._held_until = now + HOLD_SECONDS
        return rest[: beginning.start()]

    def wait_seconds(self, now: float) -> float | None:
        """How long the held-back text may wait; None if there is none."""
        return max(0.0, self._held_until - now) if self._held else None

    def release(self) -> bytes:
        """The held-back text: it has waited long enough, or nothing more will come."""
        held, self._held = self._held, b""
        return held

    def collect(self, now: float, *, last: bool = False) -> TransfersSeen | None:
        """The counts since the last call; None if there are none, or less than a second has passed."""
        if not self._counts or (not last and now - self._collected < COLLECT_SECONDS):
            return None
        from jaxprof.events import CopiesSeen, TransfersSeen

        self._collected = now
        rows: dict[tuple[str, str, bool], _Count] = {}
        for copy, count in self._counts.items():
            row = rows.setdefault((copy.direction, copy.type, copy.bytes is None), _Count())
            row.count += count
            if copy.bytes is not None:
                row.bytes = (row.bytes or 0) + count * copy.bytes
        self._counts.clear()
        copies = [
            CopiesSeen(direction=direction, source="guard", type=type_, count=row.count, bytes=row.bytes)
            for (direction, type_, _), row in rows.items()
        ]
        return TransfersSeen(monotonic_seconds=now, rows=copies)

    def _take(self, match: re.Match[bytes]) -> bytes:
        key = (match["direction"], match["detail"])
        copy = self._read.get(key)
        if copy is None:
            if len(self._read) >= _MOST_READ:
                self._read.clear()
            copy = self._read[key] = self._bounded(read_copy(key[0].decode(), key[1].decode("utf-8", "replace")))
        self._counts[copy] = self._counts.get(copy, 0) + 1
        return b""

    def _bounded(self, copy: Copy) -> Copy:
        kind = (copy.direction, copy.type)
        if copy.type and kind not in self._kinds:
            if len(self._kinds) >= MOST_KINDS:
                return Copy(copy.direction, OTHER_TYPES, copy.bytes)
            self._kinds.add(kind)
        return copy
