"""What was measured last, for Home: read off the listing of the kept sessions, none of which is opened for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxprof.units import seconds

if TYPE_CHECKING:
    from jaxprof.store import Entry


def last_medians(workload: str, entries: Sequence[Entry]) -> dict[str, str]:
    """What each variant took in the newest session that has it, in words; `entries` are the newest first."""
    found: dict[str, str] = {}
    for entry in entries:
        for closed in entry.closed:
            if closed.workload == workload and closed.median_seconds is not None and closed.variant not in found:
                where = "" if closed.device == "cpu:0" else f" {closed.device}"
                found[closed.variant] = f"last {seconds(closed.median_seconds)}{where}"
    return found
