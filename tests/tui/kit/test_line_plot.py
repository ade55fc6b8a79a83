"""Lines over two axes: they fill their room, and name axes, lines and numbers."""

from __future__ import annotations

from jaxprof.tui.kit.plots import Axis, Mark, PlotLine, count_tick, line_plot, seconds_tick
from tui.kit.drawings import lines_of, plot


def test_a_plot_names_its_axes_its_lines_and_its_numbers() -> None:
    lines = lines_of(plot(76, 16, (Mark(1e4, 2e-5, "n ≈ 10 000"),)))
    assert lines[0].startswith("time over n, log-log   ● numpy   ▲ jit")
    assert lines[-1].split()[:2] == ["1", "k"]
    assert lines[-1].rstrip().endswith("1 M")
    assert any(line.startswith(("100 µs┤", " 100 µs┤")) for line in lines)
    text = "\n".join(lines)
    assert "◉" in text
    assert "n ≈ 10 000" in text


def test_a_plot_without_points_says_so() -> None:
    empty = line_plot([PlotLine("jit", ())], Axis("n", count_tick), Axis("time", seconds_tick), 60, 10)
    assert "no points to plot yet" in empty.plain
