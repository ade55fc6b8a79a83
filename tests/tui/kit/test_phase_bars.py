"""The bars of phases: lengths, labels, and the unknown."""

from __future__ import annotations

import pytest

from jaxprof.text import safe
from jaxprof.tui.kit.phase_bars import PhaseRow, first_result, phase_bars
from tui.kit.drawings import ROWS
from tui.session_tapes import HOSTILE


def test_phase_bars_tell_an_unknown_phase_from_a_missing_one() -> None:
    lines = [line.plain for line in phase_bars(ROWS, 78)]
    numpy, jit = next(line for line in lines if "numpy" in line), next(line for line in lines if "jit" in line)
    assert numpy.count("·") == 4
    assert jit.rstrip().endswith("-")
    assert "one scale for all, linear: 0 to 38.0 ms" in lines[-1]


def lengths(times: list[float], *, logarithmic: bool) -> list[int]:
    rows = [PhaseRow(f"v{index}", {"run": value}) for index, value in enumerate(times)]
    return [line.plain.count("█") for line in phase_bars(rows, 120, logarithmic=logarithmic)[2:-1:2]]


def test_nine_times_as_long_has_nine_times_the_bar() -> None:
    short, long = lengths([6.9e-3, 58.6e-3], logarithmic=False)
    assert long / short == pytest.approx(58.6 / 6.9, rel=0.1)


def test_on_a_logarithmic_scale_a_longer_phase_never_has_a_shorter_bar() -> None:
    bars = lengths([1e-6 * 3**step for step in range(12)], logarithmic=True)
    assert bars == sorted(bars)
    assert bars[-1] > 3 * bars[0]
    lines = phase_bars(ROWS, 78, logarithmic=True, hint="(Y: linear)")
    assert "one scale for all, logarithmic: 100 µs to 100 ms  (Y: linear)" in lines[-1].plain


@pytest.mark.parametrize("width", [76, 116, 196])
def test_phase_bars_stay_within_their_width_whatever_a_variant_is_called(width: int) -> None:
    phases = dict.fromkeys(("trace", "lower", "compile", "transfer_in", "first_run", "run", "transfer_out"), 123.4e-3)
    lines = phase_bars([PhaseRow(HOSTILE * 3, phases), PhaseRow("日本語の名前です", phases)], width)
    assert all(line.cell_length <= width for line in lines)
    assert all(safe(line.plain) == line.plain for line in lines)


def test_stacked_phases_fill_the_width_in_proportion() -> None:
    bar, legend = first_result({"trace": 0.01, "compile": 0.03, "first_run": None, "run": 9.0}, 40)
    assert bar.plain == "█" * 10 + "▓" * 30
    assert legend.plain.split("  ")[:2] == ["█ trace 25 %", "▓ compile 75 %"]
    assert first_result({"run": 1.0}, 40) == []
