"""The lines of JAX's transfer guard, taken out of a program's stderr and counted.

Everything else is passed on byte for byte. A line of the guard may stand behind half a line of the program's (a
progress bar), and may come in two pieces: what could be its beginning is held back, for `HOLD_SECONDS` at most.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from jaxprof.worker.guard_line import Copy, read_copy

if TYPE_CHECKING:
    from jaxprof.events import TransfersSeen

HOLD_SECONDS: Final = 0.05
MOST_KINDS: Final = 256
"""Types that are told apart; the rest is counted together."""
OTHER_TYPES: Final = "other types"
COLLECT_SECONDS: Final = 1.0
_LONGEST: Final = 4096
"""Bytes of a line of the guard: so much goes to a pipe in one piece."""
_MOST_READ: Final = 1024
"""Different lines whose meaning is remembered."""
_LINE: Final = re.compile(
    rb"[IWEF]\d{4} \d\d:\d\d:\d+\.\d+ +\d+ \w+\.cc:\d+\] "
    rb"(?P<direction>(?:host|device)-to-(?:host|device)) transfer:(?P<said>[^\n]{0,%d})\n" % _LONGEST
)
_BEGINNING: Final = re.compile(
    rb"[IWEF](?:\d{0,4}|\d{4} [\d:]{0,20}|\d{4} \d\d:\d\d:\d+\.[\d ]{0,40}"
    rb"(?:\w+(?:\.(?:c(?:c(?::\d*(?:\](?: (?:[hd][^\n]{0,%d})?)?)?)?)?)?)?)?)\Z" % _LONGEST
)
"""The beginning of a line of the guard, at the end of what has come so far."""


@dataclass(slots=True)
class _Count:
    count: int = 0
    bytes: int | None = None


class GuardFilter:
    """`feed` what came and pass on what it gives; `collect` the counts now and then. For one thread."""

    def __init__(self) -> None:
        self._held = b""
        self._held_until = 0.0
        self._read: dict[tuple[bytes, bytes], Copy] = {}
        self._kinds: set[tuple[str, str]] = set()
        self._counts: dict[Copy, int] = {}
        self._collected = 0.0

    def feed(self, data: bytes, now: float) -> bytes:
        """What of `data`, and of what was held back, is the program's own."""
        rest = _LINE.sub(self._take, self._held + data)
        beginning = _BEGINNING.search(rest, max(rest.rfind(b"\n") + 1, len(rest) - 2 * _LONGEST))
        if beginning is None:
            self._held = b""
            return rest
        self._held = rest[beginning.start() :]
        self._held_until = now + HOLD_SECONDS
        return rest[: beginning.start()]

    def wait_seconds(self, now: float) -> float | None:
        """How long what is held back may wait; None where nothing is."""
        return max(0.0, self._held_until - now) if self._held else None

    def release(self) -> bytes:
        """What was held back: it has waited long enough, or nothing more will come."""
        held, self._held = self._held, b""
        return held

    def collect(self, now: float, *, last: bool = False) -> TransfersSeen | None:
        """What was counted since the last time; None where there is nothing, or less than a second has passed."""
        if not self._counts or (not last and now - self._collected < COLLECT_SECONDS):
            return None
        from jaxprof.events import TransfersSeen

        self._collected = now
        rows: dict[tuple[str, str, bool], _Count] = {}
        for copy, count in self._counts.items():
            row = rows.setdefault((copy.direction, copy.type, copy.bytes is None), _Count())
            row.count += count
            if copy.bytes is not None:
                row.bytes = (row.bytes or 0) + count * copy.bytes
        self._counts.clear()
        return TransfersSeen(monotonic_seconds=now, rows=[_row(*key[:2], row) for key, row in rows.items()])

    def _take(self, found: re.Match[bytes]) -> bytes:
        key = (found["direction"], found["said"])
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


def _row(direction: str, type_: str, row: _Count) -> dict[str, Any]:
    return {
        "direction": direction,
        "type": type_,
        "count": row.count,
        "bytes": row.bytes,
        "seconds": None,
        "source": "guard",
    }
