"""The totals of a range, or of what is in view: how busy and idle each lane was, and what took most of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from textual.content import Content

from jaxprof.analysis.lanes.kinds import KINDS
from jaxprof.text import shorten, shorten_middle
from jaxprof.tui.kit.drawing import bar, cell
from jaxprof.tui.profile.timeline.drawing import lane_name
from jaxprof.tui.profile.timeline.facts import NS, STYLES
from jaxprof.units import counted, integer, percent_or_less, seconds

if TYPE_CHECKING:
    from jaxprof.analysis.lanes.rows import Lanes
    from jaxprof.analysis.lanes.totals import LaneTotals, NameTotal, RangeTotals

Item = TypeVar("Item")
_GAP = 3
"""Columns between the two tables."""
_TIME, _SHARE, _COUNT = 8, 8, 8
"""Columns of a time, a share and a number, with a space before it."""


def range_facts(lanes: Lanes, totals: RangeTotals, lane: int, width: int, height: int, name: str, keys: str) -> Content:
    """The totals of a range, called `name`, in `width` by `height`. Beside each other stand the lanes, the one under
    the cursor first, and the names that took most of the time: of its device's kernels or, on a host, of the lane
    itself. `keys` says what can be done with the range."""
    head = Content.assemble(
        (name, "bold $accent"), f"  {seconds(totals.span_ns * NS)}  from {seconds(totals.begin * NS, 5)} "
        f"to {seconds(totals.end * NS, 5)}",
    )  # fmt: skip
    if head.cell_length + len(keys) + 3 <= width:
        head += Content.styled(f"   {keys}", "$text-muted")
    left = max(24, (width - _GAP) // 2)
    right = width - _GAP - left
    of = lanes.lanes[lane]
    here = totals.of(lane)
    if of.on_device:
        names, title = totals.kernels(lanes, of.device), f"kernels of {of.device}"
        names = names or (here.names if here is not None else ())
    else:
        names, title = (here.names if here is not None else ()), lane_name(of)
    rows = max(1, height - 1)
    beside = zip(
        _lane_table(lanes, totals, lane, left, rows),
        _name_table(names, title, totals.span_ns, right, rows),
        strict=True,
    )
    lines = [head.truncate(width, ellipsis=True), *(one + Content(" " * _GAP) + other for one, other in beside)]
    return Content("\n").join(lines[:height])


def _lane_table(lanes: Lanes, totals: RangeTotals, lane: int, width: int, rows: int) -> list[Content]:
    """A heading and a line for each lane that did anything, with busy and idle time; exactly `rows` lines."""
    ran = [found for found in totals.lanes if found.count or found.lane == lane]
    device = lanes.lanes[lane].device
    listed = sorted(ran, key=lambda found: (found.lane != lane, (other := lanes.lanes[found.lane]).device != device,
                                            not other.on_device))  # fmt: skip
    quiet = sum(found.left_out == 0 for found in totals.lanes if found not in ran)
    name = width - 2 * _TIME - _SHARE - _COUNT
    events = name >= 12
    name += 0 if events else _COUNT

    def line(found: LaneTotals) -> Content:
        words = lane_name(lanes.lanes[found.lane])
        threads = f" ×{found.threads}" if found.threads > 1 else ""
        return Content.assemble(
            cell(shorten(words, max(4, name - len(threads) - 1)) + threads, name,
                 "bold" if found.lane == lane else "$foreground"),
            cell(percent_or_less(found.busy_share), _SHARE, "bold", right=True),
            cell(seconds(found.busy_ns * NS), _TIME, right=True),
            cell(seconds(found.idle_ns and found.idle_ns * NS), _TIME, "$text-muted", right=True),
            cell(integer(found.count), _COUNT if events else 0, "$text-muted", right=True),
        )  # fmt: skip

    heading = _heading("lane", name, (("busy", _SHARE), ("", _TIME), ("idle", _TIME), ("events", _COUNT * events)))
    rest = f"{counted(quiet, 'lane')} idle throughout" if quiet else ""
    return _filled(heading, listed, line, rows, width, "lane", rest)


def _name_table(names: Sequence[NameTotal], title: str, span: int, width: int, rows: int) -> list[Content]:
    """A heading and a line for each name, the longest first; exactly `rows` lines."""
    share = _SHARE if width >= _TIME + _SHARE + _COUNT + 20 else 0
    name = width - _TIME - share - _COUNT - 2
    most = names[0].self_ns if names else 0
    bars = max(0, min(16, name - 40))
    name -= bars

    def line(total: NameTotal) -> Content:
        return Content.assemble(
            ("■ ", STYLES[KINDS[total.kind]]),
            cell(shorten_middle(total.name, name), name, "$foreground"),
            bar(total.self_ns / most if most else None, bars - 1 if bars else 0),
            " " if bars else "",
            cell(seconds(total.self_ns * NS), _TIME, "bold", right=True),
            cell(percent_or_less(total.self_ns / max(1, span)), share, "$text-muted", right=True),
            cell(f"×{integer(total.count)}", _COUNT, "$text-muted", right=True),
        )

    heading = _heading(title, name + 2 + bars, (("self", _TIME), ("", share), ("", _COUNT)))
    return _filled(heading, names, line, rows, width, "name", "" if names else "nothing ran")


def _heading(title: str, width: int, columns: Sequence[tuple[str, int]]) -> Content:
    return Content.assemble(
        cell(title, width, "$text-muted"),
        *(cell(word, room, "$text-muted", right=True) for word, room in columns),
    )


def _filled(
    heading: Content,
    items: Sequence[Item],
    line: Callable[[Item], Content],
    rows: int,
    width: int,
    what: str,
    rest: str,
) -> list[Content]:
    """The heading, as many lines as fit, and how many more there are; empty lines up to `rows`. Only the lines that
    fit are made: a lane may have thousands of names."""
    fit = len(items) if len(items) < rows else max(0, rows - 2)
    if fit < len(items):
        more = counted(len(items) - fit, f"more {what}")
        rest = f"and {more}" + (f", {rest}" if rest else "")
    shown = [heading, *map(line, items[:fit])]
    if rest and len(shown) < rows:
        shown.append(Content.styled(shorten(rest, width), "$text-muted"))
    shown += [Content("")] * (rows - len(shown))
    return [one.truncate(width, ellipsis=True).pad_right(max(0, width - one.cell_length)) for one in shown[:rows]]
