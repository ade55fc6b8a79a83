"""Where the time of a program went: a bar of its states, the same as a table, and over time. Pure functions.

A segment carries its name if there is room, because not everybody can tell the colours apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from textual.content import Content

from jaxprof.analysis.programs.parts import NOT_SEEN
from jaxprof.text import columns, shorten
from jaxprof.tui.kit.drawing import SPARKS, cell, hang, styled_runs
from jaxprof.tui.kit.phase_bars import plain_bar
from jaxprof.units import percent, seconds

STATES = {
    "import": ("import", "$state-import"),
    "data": ("data", "$state-data"),
    "trace": ("trace", "$phase-trace"),
    "lower": ("lower", "$phase-lower"),
    "compile": ("compile", "$phase-compile"),
    "transfer": ("transfer", "$phase-transfer"),
    "device_busy": ("device", "$phase-run"),
    "host_busy": ("host", "$state-host"),
    "waiting": ("waiting", "$state-waiting"),
    "stopped": ("stopped", "$warning"),
}
"""Each state's short name and colour, in the order in which they are stacked."""
EXPLAINED = {
    "import": "modules are imported",
    "data": "a loader or iterator that feeds the loop",
    "trace": "JAX traces Python",
    "lower": "JAX writes StableHLO",
    "compile": "XLA compiles",
    "transfer": "copies between host and device",
    "device_busy": "in a compiled function, or blocked until it is done",
    "host_busy": "Python, NumPy, and JAX's dispatch op by op",
    "waiting": "blocked on something else",
    "stopped": "by a signal, or with its container",
    NOT_SEEN: "before recording began, after it ended, or between samples",
}


def state_title(state: str) -> str:
    """The short name of a state; a state of a newer version keeps its own name."""
    return STATES[state][0] if state in STATES else state.replace("_", " ")


def state_style(state: str) -> str:
    """The colour of a state."""
    return STATES[state][1] if state in STATES else "$bar-track"


def in_order(shares: Mapping[str, float]) -> list[tuple[str, float]]:
    """States with their seconds in stacking order; unknown ones, and what was not seen, come last."""
    ranks = {state: rank for rank, state in enumerate(STATES)}
    nonzero = [(state, value) for state, value in shares.items() if value > 0]
    return sorted(nonzero, key=lambda pair: (pair[0] == NOT_SEEN, ranks.get(pair[0], len(ranks))))


def share_bar(shares: Mapping[str, float], width: int) -> Content:
    """The states end to end over `width` columns, each with its name if it fits."""
    rows = in_order(shares)
    total = sum(value for _, value in rows)
    if not total or width < 1:
        return Content.styled(" " * max(0, width), "on $bar-track")
    parts: list[tuple[str, str]] = []
    done, used = 0.0, 0
    for state, value in rows:
        done += value
        until = round(done / total * width)
        room = until - used
        used = until
        if room <= 0:
            continue
        name, share = state_title(state), percent(value / total)
        text = next((text for text in (f" {name} {share}", f" {name}") if columns(text) < room), "")
        style = f"$text-muted on {state_style(state)}" if state == NOT_SEEN else f"$background on {state_style(state)}"
        parts.append((text.ljust(room), style))
    return Content.assemble(*parts)


def share_table(rows: Sequence[tuple[str, float, bool]], wall_seconds: float, width: int) -> list[Content]:
    """State, seconds, share, a bar, and the meaning if there is room. `rows`: state, seconds, whether exact.

    The last line is the sum, which is the wall time: what was not seen has a line of its own.
    """
    longest = max((value for _, value, _ in rows), default=0.0)
    if not longest:
        return [Content.styled("No time was recorded.", "$text-muted")]
    graph = max(6, min(24, (width - 28) // 3))
    rest = width - 34 - graph
    lines = []
    for state, value, exact in rows:
        if value <= 0:
            continue
        share = value / wall_seconds if wall_seconds else None
        note = EXPLAINED.get(state, "")
        row = Content.assemble(
            ("■ ", state_style(state)), cell(state_title(state), 9), cell(seconds(value), 10, "bold", right=True),
            cell(_share(share), 8, "$text-muted", right=True), "   " if exact or state == NOT_SEEN else " ≈ ",
            plain_bar(value / longest, graph, state_style(state)), "  ",
        )  # fmt: skip
        lines += hang(row, note, width, "$quiet") if rest >= min(24, columns(note)) else [row]
    total = sum(value for _, value, _ in rows)
    lines.append(
        Content.assemble(
            cell("  total", 11, "$text-muted"), cell(seconds(total), 10, "bold", right=True),
            cell(_share(total / wall_seconds if wall_seconds else None), 8, "$text-muted", right=True),
            (shorten(" ≈ from stack samples", max(1, width - 29)), "$quiet"),
        )
    )  # fmt: skip
    return lines


def _share(share: float | None) -> str:
    return "< 0.1 %" if share is not None and 0 < share < 1e-3 else percent(share)


def state_columns(states: Sequence[Mapping[str, float]], height: int) -> list[Content]:
    """Over time, a column for each of `states` (shares of 1), stacked from below; `height` lines.

    A cell has eight levels and can show two states: the one at its bottom, and the most frequent above it.
    """
    levels = [_levels(column, height * 8) for column in states]
    lines = []
    for row in range(height):
        base = (height - 1 - row) * 8
        lines.append(styled_runs(_cell(column[base : base + 8]) for column in levels))
    return lines


def _levels(shares: Mapping[str, float], count: int) -> list[str]:
    """The state at each of `count` levels from below; empty above them."""
    levels: list[str] = []
    done = 0.0
    for state, share in in_order(shares):
        done += share
        levels += [state] * (min(count, round(done * count)) - len(levels))
    return levels + [""] * (count - len(levels))


def _cell(levels: Sequence[str]) -> tuple[str, str]:
    bottom = levels[0]
    until = next((index for index, state in enumerate(levels) if state != bottom), len(levels))
    if until == len(levels):
        return (" ", "") if not bottom else ("█", state_style(bottom))
    top = Counter(levels[until:]).most_common(1)[0][0]
    if not bottom:
        return " ", ""
    over = f" on {state_style(top)}" if top else ""
    return SPARKS[until - 1], state_style(bottom) + over


def spark_columns(values: Sequence[float | None], high: float, style: str) -> Content:
    """One line over time: each value as a column of eight heights, from 0 to `high`; unknown ones are blank."""
    text = "".join(
        " " if value is None else SPARKS[min(7, max(0, int(value / high * 8)))] if high > 0 else SPARKS[0]
        for value in values
    )
    return Content.styled(text, style)
