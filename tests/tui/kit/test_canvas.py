"""The canvas and its scales: dots, lines, covers, round ticks; every picture survives ASCII."""

from __future__ import annotations

import math

import pytest
from textual.content import Content

from jaxprof.stats import summarise
from jaxprof.text import columns
from jaxprof.tui.kit.canvas import Canvas, Scale, spanning
from jaxprof.tui.kit.phase_bars import phase_bars
from jaxprof.tui.kit.plots import Mark, distribution, trend
from jaxprof.tui.terminal_driver import TO_ASCII
from tui.kit.drawings import ROWS, SAMPLES, lines_of, plot


def test_a_canvas_has_eight_dots_a_cell_and_ignores_what_lies_outside() -> None:
    canvas = Canvas(2, 1)
    for x, y in ((0, 0), (3, 3), (-1, 0), (4, 0), (0, 4)):
        canvas.dot(x, y)
    assert [row.plain for row in canvas.rows()] == ["\u2801\u2880"]


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
