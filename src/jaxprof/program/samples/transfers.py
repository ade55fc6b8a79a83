"""Copies between host and device that stack samples came upon, put together by line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from jaxprof.events import TransfersSeen
from jaxprof.program.samples.states import Line

MOST_ROWS: Final = 64


@dataclass(slots=True)
class _Row:
    count: int = 0
    seconds: float = 0.0
    bytes: int | None = None


class SampledTransfers:
    """`saw` for each sample in an implicit transfer, `collect` at the end of a stretch."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, int, str], _Row] = {}

    def saw(self, direction: str, line: Line, seconds: float, size: int | None) -> None:
        """A sample; `size` in bytes of the array that was copied, where it is known."""
        key = (direction, line.file, line.line, line.call)
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= MOST_ROWS:
                return
            row = self._rows[key] = _Row()
        row.count += 1
        row.seconds += seconds
        if size is not None:
            row.bytes = size + (row.bytes or 0)

    def collect(self, now: float) -> TransfersSeen | None:
        """The rows since the last time; None where there are none."""
        rows: list[dict[str, Any]] = [
            {
                "direction": direction,
                "count": row.count,
                "bytes": row.bytes,
                "seconds": row.seconds,
                "file": file,
                "line": line,
                "call": call,
                "source": "samples",
            }
            for (direction, file, line, call), row in self._rows.items()
        ]
        self._rows.clear()
        return TransfersSeen(monotonic_seconds=now, rows=rows) if rows else None
