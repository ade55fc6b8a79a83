"""Claims about a program or a job, one per row: the cost, what was observed, where, and the fix."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from textual.content import Content

from jaxprof.text import safe
from jaxprof.tui.kit.drawing import cell
from jaxprof.tui.kit.row_list import RowList

_COST = 8
_INDENT = _COST + 4
"""Columns before the text: a mark, the cost, and the blanks around them."""
_STYLES = {"!": "$warning", "✗": "bold $error", "✓": "$better"}


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim about a program or a job."""

    text: str
    mark: str = ""
    """`!` for missing data, `✗` for a finding of a job, `✓` if nothing was found."""
    cost: str = ""
    place: str = ""
    fix: str = ""
    about: Any = None
    """What Enter leads to: a process or a line; None for nothing."""
    style: str = "bold"


class ClaimList(RowList):
    """The first line of each claim, and the lines below it, for all claims if there is room."""

    UNFOLDS = True

    def __init__(self, empty: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.EMPTY = empty  # type: ignore[misc]
        self._claims: dict[Hashable, Claim] = {}
        self._words: list[str] = []

    def show(self, claims: Iterable[Claim]) -> None:
        """Show other claims."""
        by_key: dict[Hashable, Claim] = {(claim.mark, claim.text): claim for claim in claims}
        if by_key != self._claims:
            self._claims = by_key
            self._list()

    def set_filter(self, text: str) -> None:
        self._words = text.casefold().split()
        self._list()

    def _list(self) -> None:
        texts = {key: f"{claim.text} {claim.place} {claim.fix}".casefold() for key, claim in self._claims.items()}
        self.set_keys([key for key, text in texts.items() if all(word in text for word in self._words)])

    @property
    def claim(self) -> Claim | None:
        """The claim under the cursor."""
        return self._claims.get(self.current) if self._keys else None

    def lines_wanted(self, width: int, most: int) -> int:
        """Return how many of `most` lines the list needs: enough for all claims, or if they do not fit, for the longest
        one in full and one line of each other claim."""
        counts = [len(_lines(self._claims[key], width)) for key in self._keys] or [1]
        return max(1, min(most, sum(counts) if sum(counts) <= most else len(counts) - 1 + max(counts)))

    def draw_row(self, index: int, width: int) -> Content:
        claim = self._claims[self._keys[index]]
        if index in self._below:
            return _lines(claim, width)[0]
        return _head(claim) + cell(claim.text, width - _INDENT, claim.style)

    def below(self, index: int, width: int) -> Sequence[Content]:
        return _lines(self._claims[self._keys[index]], width)[1:]

    def _fitting(self, below: Mapping[int, Sequence[Content]], left: int) -> dict[int, Sequence[Content]]:
        """Also return the lines of the other claims, from the first on, as far as `left` lines reach; the last ones may
        be cut."""
        shown = super()._fitting(below, left)
        left -= sum(map(len, shown.values()))
        width = max(1, self.scrollable_content_region.width)
        for index, lines in below.items():
            if left > 0 and index != self._cursor:
                cut = len(lines) > left
                shown[index] = [*lines[: left - 1], _continued(lines[left - 1], width)] if cut else lines
                left -= len(shown[index])
        return dict(sorted(shown.items()))


def _continued(line: Content, width: int) -> Content:
    return line.rstrip().truncate(max(1, width - 2)) + Content(" …")


def _head(claim: Claim) -> Content:
    cost = cell(claim.cost, _COST, "bold $warning", right=True)
    return Content.assemble(" ", (claim.mark or " ", _STYLES.get(claim.mark, "")), cost, "  ")


def _lines(claim: Claim, width: int) -> list[Content]:
    """Return all lines of a claim: what was observed and its cost, the source line, and the fix."""
    room = max(12, width - _INDENT)
    parts = ((claim.text, claim.style), (claim.place, "$primary"), (claim.fix, "$text-muted"))
    lines = [line for text, style in parts if text for line in Content.styled(safe(text), style).wrap(room)]
    indent = Content(" " * _INDENT)
    return [_head(claim) + (lines[0] if lines else ""), *(indent + line for line in lines[1:])]
