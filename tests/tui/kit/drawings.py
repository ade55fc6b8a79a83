"""Pictures as text, and what several tests draw."""

from __future__ import annotations

from textual.content import Content

from jaxprof.text import columns
from jaxprof.tui.kit.phase_bars import PhaseRow
from jaxprof.tui.kit.plots import Axis, Mark, PlotLine, count_tick, line_plot, seconds_tick
from tui.session_tapes import Tape

SAMPLES = Tape().noise(0.63e-3, 60)


SIZES = [(24, 6), (38, 9), (76, 12), (118, 30), (198, 50)]


def lines_of(content: Content) -> list[str]:
    return content.plain.split("\n")


def fills(content: Content, width: int, height: int) -> bool:
    lines = lines_of(content)
    return len(lines) == height and all(columns(line) <= width for line in lines)


def plot(width: int, height: int, marks: tuple[Mark, ...] = ()) -> Content:
    sizes = (1e3, 1e4, 1e5, 1e6)
    return line_plot(
        [
            PlotLine("numpy", tuple((n, n * 4e-9) for n in sizes), "$baseline", "●"),
            PlotLine("jit", tuple((n, 2e-5) for n in sizes), "$primary", "▲"),
        ],
        Axis("n", count_tick, log=True),
        Axis("time", seconds_tick, log=True),
        width,
        height,
        marks,
    )


ROWS = [
    PhaseRow("numpy", {"run": 4.37e-3}),
    PhaseRow("jit", {"trace": 6e-3, "compile": 38e-3, "first_run": 0.9e-3, "run": 0.63e-3, "transfer_out": None}),
]
