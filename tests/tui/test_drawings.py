"""The pictures, as text: what they show, that they fill exactly the room they are given, that they survive ASCII."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from textual.content import Content

from jaxprof.safe_text import columns, safe
from jaxprof.stats import summarise
from jaxprof.tui.ascii_driver import TO_ASCII
from jaxprof.tui.widgets.braille import Canvas
from jaxprof.tui.widgets.break_even import Curve, break_even_plot
from jaxprof.tui.widgets.distribution import distribution
from jaxprof.tui.widgets.line_plot import Axis, Line, Mark, count_tick, line_plot, seconds_tick
from jaxprof.tui.widgets.phase_bars import PhaseRow, phase_bars, plain_bar, stacked
from jaxprof.tui.widgets.scales import Scale, spanning
from jaxprof.tui.widgets.trend import trend
from tui.sessions import HOSTILE, Tape

SAMPLES = Tape().noise(0.63e-3, 60)
SIZES = [(24, 6), (38, 9), (76, 12), (118, 30), (198, 50)]


def lines_of(content: Content) -> list[str]:
    return content.plain.split("\n")


def fills(content: Content, width: int, height: int) -> bool:
    lines = lines_of(content)
    return len(lines) == height and all(columns(line) <= width for line in lines)


def test_a_canvas_has_eight_dots_a_cell_and_ignores_what_lies_outside() -> None:
    canvas = Canvas(2, 1)
    for x, y in ((0, 0), (3, 3), (-1, 0), (4, 0), (0, 4)):
        canvas.dot(x, y)
    assert [row.plain for row in canvas.rows()] == ["\u2801\u2880"]


def test_a_line_on_a_canvas_goes_from_end_to_end() -> None:
    canvas = Canvas(4, 1)
    canvas.line((0, 0), (7, 0))
    assert canvas.rows()[0].plain == "\u2809" * 4
    diagonal = Canvas(2, 1)
    diagonal.line((0, 0), (3, 3))
    assert diagonal.rows()[0].plain == "\u2811\u2884"


def test_a_cover_hides_the_dots_and_takes_its_room() -> None:
    canvas = Canvas(6, 1)
    canvas.line((0, 0), (3, 0))
    canvas.put(1, 0, "●")
    assert canvas.rows()[0].plain == "\u2809●    "
    assert canvas.free(2, 0, 4)
    assert not canvas.free(1, 0, 2)
    assert not canvas.free(4, 0, 3)


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        (Scale(0.0, 42.0), [0, 10, 20, 30, 40]),
        (Scale(0.0, 1.0), [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (Scale(900.0, 1.1e6, log=True), [1e3, 1e4, 1e5, 1e6]),
        (Scale(0.9, 11.0, log=True), [1, 2, 5, 10]),
    ],
)
def test_ticks_are_round_numbers_on_the_scale(scale: Scale, expected: list[float]) -> None:
    assert scale.ticks(6) == pytest.approx(expected)


def test_a_logarithmic_scale_places_factors_evenly_and_leaves_zero_out() -> None:
    scale = spanning([0.0, -3.0, 1.0, 100.0], log=True, margin=0.0)
    assert scale.place(10.0) == pytest.approx(0.5)
    assert scale.place(0.0) == -math.inf


@pytest.mark.parametrize("values", [[], [5.0], [5.0, 5.0], [0.0, 0.0], [math.inf, 2.0]])
@pytest.mark.parametrize("log", [False, True])
def test_a_scale_is_never_empty(values: list[float], log: bool) -> None:
    scale = spanning(values, log=log)
    assert scale.high > scale.low
    assert all(0 <= scale.place(value) <= 1 for value in values if math.isfinite(value) and (value > 0 or not log))


def plot(width: int, height: int, marks: tuple[Mark, ...] = ()) -> Content:
    sizes = (1e3, 1e4, 1e5, 1e6)
    return line_plot(
        [
            Line("numpy", tuple((n, n * 4e-9) for n in sizes), "$baseline", "●"),
            Line("jit", tuple((n, 2e-5) for n in sizes), "$primary", "▲"),
        ],
        Axis("n", count_tick, log=True),
        Axis("time", seconds_tick, log=True),
        width,
        height,
        marks,
    )


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_a_plot_fills_its_room(width: int, height: int) -> None:
    assert fills(plot(width, height), width, height)


def test_a_plot_names_its_axes_its_lines_and_its_numbers() -> None:
    lines = lines_of(plot(76, 16, (Mark(1e4, 2e-5, "n ≈ 10 000"),)))
    assert lines[0].startswith("time over n, log-log   ● numpy   ▲ jit")
    assert lines[-1].split()[:2] == ["1", "k"]
    assert lines[-1].rstrip().endswith("1 M")
    assert any(line.startswith(("100 µs┤", " 100 µs┤")) for line in lines)
    text = "\n".join(lines)
    assert "◉" in text
    assert "n ≈ 10 000" in text


def test_on_logarithmic_axes_a_power_law_is_a_straight_line() -> None:
    columns_of_markers = [line.index("●") for line in lines_of(plot(76, 16)) if "●" in line][1:]
    steps = [before - after for before, after in pairwise(columns_of_markers)]
    assert max(steps) - min(steps) <= 1


def test_a_plot_without_points_says_so() -> None:
    empty = line_plot([Line("jit", ())], Axis("n", count_tick), Axis("time", seconds_tick), 60, 10)
    assert "no points to plot yet" in empty.plain


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_a_distribution_fills_its_room(width: int, height: int) -> None:
    assert fills(distribution(SAMPLES, summarise(SAMPLES), width, height), width, height)


def test_a_distribution_counts_what_lies_beyond_its_scale_and_marks_the_median() -> None:
    samples = [*SAMPLES, 5e-3, 6e-3]
    summary = summarise(samples)
    lines = lines_of(distribution(samples, summary, 60, 8))
    assert lines[-1].endswith("+2 slower")
    assert lines[-2].count("┻") == 1
    assert "━" in lines[-2]
    assert lines[0].strip()
    assert all(character in " ▁▂▃▄▅▆▇█" for line in lines[:-2] for character in line)


def test_few_samples_have_no_interval_in_the_picture() -> None:
    samples = SAMPLES[:3]
    assert "━" not in distribution(samples, summarise(samples), 40, 6).plain
    assert "waiting" in distribution([], None, 40, 6).plain


@pytest.mark.parametrize("samples", [[1e-3] * 9, [0.0, 0.0, 0.0], [1e-9, 1.0], SAMPLES[:1]])
def test_odd_samples_are_drawn_too(samples: list[float]) -> None:
    summary = summarise(samples)
    assert distribution(samples, summary, 40, 8).plain
    assert fills(trend(samples, summary, 40, 8), 40, 8)


def test_a_trend_marks_outliers_at_the_edge_that_they_pass() -> None:
    samples = [*SAMPLES, 5e-3, 1e-6]
    lines = lines_of(trend(samples, summarise(samples), 60, 9))
    assert "▲" in lines[0]
    assert "▼" in lines[-2]
    assert "62 samples   ▲ 2 outliers" in lines[-1]


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_a_trend_fills_its_room(width: int, height: int) -> None:
    assert fills(trend(SAMPLES, summarise(SAMPLES), width, height), width, height)


ROWS = [
    PhaseRow("numpy", {"run": 4.37e-3}),
    PhaseRow("jit", {"trace": 6e-3, "compile": 38e-3, "first_run": 0.9e-3, "run": 0.63e-3, "transfer_out": None}),
]


def test_phase_bars_tell_the_unknown_from_what_there_is_not() -> None:
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


def test_what_is_stacked_fills_the_width_in_proportion() -> None:
    bar, legend = stacked({"trace": 0.01, "compile": 0.03, "first_run": None, "run": 9.0}, 40)
    assert bar.plain == "█" * 40
    assert legend.plain.split("  ")[:2] == ["■ trace 25 %", "■ compile 75 %"]
    assert stacked({"run": 1.0}, 40) == []


def test_a_break_even_curve_crosses_where_it_says() -> None:
    curve = Curve("jit", "numpy", 0.63e-3, 4.37e-3, 75e-3, 0.9e-3, 21)
    text = break_even_plot(curve, 76, 14).plain
    assert "21 calls" in text
    assert "total time over calls   ┄ numpy   ─ jit" in text
    never = Curve("jit", "numpy", 5e-3, 4e-3, 75e-3, 0.9e-3, None)
    assert "◉" not in break_even_plot(never, 76, 14).plain
    assert never.calls >= 2 * 75e-3 / 4e-3


@pytest.mark.parametrize(
    "drawn",
    [
        plot(76, 14, (Mark(1e4, 2e-5, "n ≈ 10 000"),)),
        distribution(SAMPLES, summarise(SAMPLES), 60, 9),
        trend([*SAMPLES, 1.0], summarise([*SAMPLES, 1.0]), 60, 9),
        Content("\n").join(phase_bars(ROWS, 78)),
    ],
    ids=["plot", "distribution", "trend", "phases"],
)
def test_every_picture_can_be_shown_in_ascii_in_the_same_room(drawn: Content) -> None:
    text = drawn.plain.translate(TO_ASCII)
    assert text.isascii()
    assert "?" not in text
    assert [len(line) for line in text.split("\n")] == [columns(line) for line in lines_of(drawn)]
