"""The details of a run: the curve of the break-even."""

from __future__ import annotations

from jaxprof.analysis.run_result import BreakEvenCurve
from jaxprof.tui.results.run_detail import break_even_plot


def test_a_break_even_curve_crosses_where_it_says() -> None:
    curve = BreakEvenCurve("jit", "numpy", 0.63e-3, 4.37e-3, 75e-3, 0.9e-3, 21)
    text = break_even_plot(curve, 76, 14).plain
    assert "21 calls" in text
    assert "total time over calls   ┄ numpy   ─ jit" in text
    never = BreakEvenCurve("jit", "numpy", 5e-3, 4e-3, 75e-3, 0.9e-3, None)
    assert "◉" not in break_even_plot(never, 76, 14).plain
    assert never.calls >= 2 * 75e-3 / 4e-3
