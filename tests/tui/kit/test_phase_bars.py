"""The bars of phases: lengths, labels, and the unknown."""

from __future__ import annotations

import pytest

from jaxprof.text import safe
from jaxprof.tui.kit.phase_bars import PhaseRow, phase_bars, plain_bar, stacked
from tui.kit.drawings import ROWS
from tui.session_tapes import HOSTILE


def test_phase_bars_tell_an_unknown_phase_from_a_missing_one() -> None:
    lines = [line.plain for line in phase_bars(ROWS, 78)]
    numpy, jit = next(line for line in lines if "numpy" in line), next(line for line in lines if "jit" in line)
    assert numpy.count("·") == 4
    assert jit.rstrip().endswith("-")
    assert "one scale for all, logarithmic: 100 µs to 100 ms" in lines[-1]


def test_a_longer_phase_never_has_a_shorter_bar() -> None:
    times = [1e-6 * 3**step for step in range(12)]
    rows = [PhaseRow(f"v{index}", {"run": value}) for index, value in enumerate(times)]
    bars = [line.plain.count("█") for line in phase_bars(rows, 120)[2:-1:2]]
    assert bars == sorted(bars)
    assert bars[-1] > 3 * bars[0]


@pytest.mark.parametrize("width", [76, 116, 196])
def test_phase_bars_stay_within_their_width_whatever_a_variant_is_called(width: int) -> None:
    phases = dict.fromkeys(("trace", "lower", "compile", "transfer_in", "first_run", "run", "transfer_out"), 123.4e-3)
    lines = phase_bars([PhaseRow(HOSTILE * 3, phases), PhaseRow("日本語の名前です", phases)], width)
    assert all(line.cell_length <= width for line in lines)
    assert all(safe(line.plain) == line.plain for line in lines)


def test_the_smallest_bar_is_seen() -> None:
    assert plain_bar(1e-9, 10, "").plain == "▏         "
    assert plain_bar(1.0, 10, "").plain == "█" * 10
    assert plain_bar(7.0, 10, "").plain == "█" * 10


def test_stacked_phases_fill_the_width_in_proportion() -> None:
    bar, legend = stacked({"trace": 0.01, "compile": 0.03, "first_run": None, "run": 9.0}, 40)
    assert bar.plain == "█" * 40
    assert legend.plain.split("  ")[:2] == ["■ trace 25 %", "■ compile 75 %"]
    assert stacked({"run": 1.0}, 40) == []
