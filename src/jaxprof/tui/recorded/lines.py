"""The lines of a program that took its time: what was seen at a line in several states and calls, put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxprof.results.programs.parts import LineTime
    from jaxprof.results.programs.places import Place


@dataclass(frozen=True, slots=True)
class HotLine:
    """One line, with what was spent there in each state."""

    where: Place
    seconds: float
    states: tuple[tuple[str, float], ...]
    """State and seconds, the longest first."""
    call: str
    """What is called there most of the time; empty where nothing was seen."""


def hottest(lines: Iterable[LineTime], most: int) -> list[HotLine]:
    """The lines that took most, the longest first."""
    states: dict[Place, Counter[str]] = {}
    calls: dict[Place, Counter[str]] = {}
    for line in lines:
        states.setdefault(line.place, Counter())[line.state] += line.seconds  # type: ignore[assignment]
        if line.call:
            calls.setdefault(line.place, Counter())[line.call] += line.seconds  # type: ignore[assignment]
    totals = sorted(((sum(found.values()), place) for place, found in states.items()), key=lambda pair: -pair[0])
    return [
        HotLine(place, total, tuple(states[place].most_common()), _first(calls.get(place)))
        for total, place in totals[:most]
    ]


def _first(counted: Counter[str] | None) -> str:
    return counted.most_common(1)[0][0] if counted else ""
