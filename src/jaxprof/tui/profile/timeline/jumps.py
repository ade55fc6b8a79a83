"""The jumps of the cursor: to the next idle stretch, to the longest of a row, to the same kernel again.

Each answers whether there was anywhere to go, so that a key that does nothing can say why.
"""

from __future__ import annotations

from jaxprof.analysis.lanes.jumps import Stretch, longest_idle, longest_interval, next_idle
from jaxprof.analysis.lanes.search import Matches, same
from jaxprof.tui.profile.timeline.browse import Browse, TimelineRow


class Jumps:
    """Where the cursor of one timeline can go, and where it has gone."""

    def __init__(self, browse: Browse) -> None:
        self._browse = browse
        self._longest: tuple[str, TimelineRow, Stretch] | None = None
        """The last jump to a longest: of what, in which row, and where."""
        self._same: tuple[object, Matches] | None = None
        """What is the same as the last interval that this was asked of."""

    def idle(self, step: int) -> bool:
        """Goes to the next or the previous idle stretch of the row that is at least a column wide."""
        browse = self._browse
        under = browse.under_cursor
        least = max(1, browse.window.span // browse.width)
        found = next_idle(under[1], browse.time, step, least) if under is not None else None
        if found is not None:
            browse.look_at(found.begin)
        return found is not None

    def longest(self, kind: str) -> bool:
        """Goes to the longest `interval`, or `idle` stretch, of the row; from there to the next longest."""
        browse = self._browse
        under, before = browse.under_cursor, self.rank
        if under is None:
            return False
        find = longest_idle if kind == "idle" else longest_interval
        found = find(under[1], before if self._longest is not None and self._longest[0] == kind else None)
        if found is not None:
            browse.look_at(found.begin)
            self._longest = kind, browse.places[browse.line], found
        return found is not None

    @property
    def rank(self) -> Stretch | None:
        """Where the last jump to a longest went; None once the cursor has left it."""
        browse = self._browse
        if self._longest is None or not browse.places:
            return None
        _, row, found = self._longest
        return found if (row, found.begin) == (browse.places[browse.line], browse.time) else None

    @property
    def same(self) -> tuple[Matches, int] | None:
        """What is the same as the interval under the cursor, and which of them it is; None in an idle stretch."""
        browse = self._browse
        under = browse.under_cursor
        if under is None or under[2] is None or under[1].values is not None:
            return None
        lane, row, at = under
        label = int(row.label[at])
        key = (id(browse.lanes), lane.device, lane.kind, lane.labels[label])
        if self._same is None or self._same[0] != key:
            self._same = key, same(browse.lanes, lane, label)
        matches = self._same[1]
        return matches, matches.place_of(int(row.starts[at]), browse.places[browse.line].lane)

    def again(self, step: int) -> bool:
        """Goes to the next or the previous interval that is the same as the one under the cursor."""
        found = self.same
        if found is None or not 0 <= found[1] + step < len(found[0]):
            return False
        matches, at = found[0], found[1] + step
        lane, row = int(matches.lane[at]), int(matches.row[at])
        closed = TimelineRow(lane, -1)
        outermost = self._browse.lanes.lanes[lane].rows[row].level == 0
        place = closed if outermost and closed in self._browse.places else TimelineRow(lane, row)
        self._browse.go(place, int(matches.starts[at]))
        return True
