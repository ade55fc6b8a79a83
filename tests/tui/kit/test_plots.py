"""Pictures made of characters: scales, lines, samples and phases."""

import math

import pytest

from golden import held_cases
from jaxprof.base.text import columns
from jaxprof.stats.summary import summarise, two_modes
from jaxprof.tui.kit.canvas import Scale, spanning
from jaxprof.tui.kit.drawing import parts_bar
from jaxprof.tui.kit.plots import (
    Axis,
    Mark,
    PlotLine,
    area_plot,
    count_tick,
    distribution,
    line_plot,
    seconds_tick,
    trend,
    whole_tick,
)
from tui.session_tapes import Tape

SAMPLES = Tape().noise(0.63e-3, 60)
BEYOND = [*SAMPLES, 5e-3, 1e-6]
"""With one that is too slow for the scale, and one that is too fast."""
MODAL = [*Tape().noise(1.2e-3, 60), *Tape().noise(3.4e-3, 40)]
"""Most calls are fast: of the median alone, the slow ones are outliers, and would not be drawn."""


AXES = Axis("n", count_tick, log=True), Axis("time", seconds_tick, log=True)


def plot(width, height):
    sizes = (1e3, 1e4, 1e5, 1e6)
    numpy = PlotLine("numpy", tuple((n, n * 4e-9) for n in sizes), "$baseline", "●")
    jit = PlotLine("jit", tuple((n, 2e-5) for n in sizes), "$primary", "▲")
    return line_plot([numpy, jit], *AXES, width, height, (Mark(1e4, 2e-5, "n ≈ 10 000"),))


@pytest.mark.parametrize(
    ("limit", "shown", "hidden"),
    [(10.0, "┄┄ device 10 ┄┄┄", "above"), (7.0, "┄┄ device 7 ┄┄┄", "above"), (1e3, "device 1000, above", "┄┄")],
)
def test_an_area_has_its_limit_where_the_scale_reaches_it(limit, shown, hidden):
    argument = PlotLine("argument", ((0, 2.0), (4, 2.0), (8, 2.0)), "red", "A")
    temporary = PlotLine("temporary", ((0, 0.0), (4, 6.0), (8, 0.0)), "blue", "T")
    axes = Axis("instructions", whole_tick), Axis("MiB", count_tick)
    mark = Mark(0, limit, f"device {limit:g}", "red", "┄")
    plot = area_plot([argument, temporary], *axes, 80, 14, [], mark)
    text = plot.plain
    assert shown in text
    assert hidden not in text
    left, right = (sum(line[at : at + 30].count("T") for line in lines_of(plot)[1:]) for at in (3, 45))
    assert left == 0, "it begins in the middle"
    assert right > 100, "it begins in the middle"


def test_a_peak_of_one_of_many_points_is_drawn():
    sizes = PlotLine("temporary", tuple((x, 9.0 if x == 2500 else 1.0) for x in range(5000)), "blue", "T")
    axes = Axis("instructions", whole_tick), Axis("MiB", count_tick)
    plot = area_plot([sizes], *axes, 60, 14, [], Mark(0, math.nan, "unknown"))
    assert "unknown" not in plot.plain
    assert lines_of(plot)[2].count("T") == 1


def lines_of(content):
    return content.plain.split("\n")


@pytest.mark.parametrize("log", [False, True])
def test_scale_is_never_empty(log):
    for values in ([], [5.0], [5.0, 5.0], [0.0, 0.0], [math.inf, 2.0]):
        scale = spanning(values, log=log)
        assert scale.high > scale.low
        assert all(
            0 <= scale.fraction(value) <= 1 for value in values if math.isfinite(value) and (value > 0 or not log)
        )
    scale = spanning([0.0, -3.0, 1.0, 100.0], log=True, margin=0.0)
    assert (scale.fraction(10.0), scale.fraction(0.0)) == (pytest.approx(0.5), -math.inf)
    assert Scale(900.0, 1.1e6, log=True).ticks(6) == pytest.approx([1e3, 1e4, 1e5, 1e6])
    assert Scale(0.0, 1.0).ticks(6) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])


SIZES = [(24, 6), (38, 9), (76, 12), (118, 30), (198, 50)]
PICTURES = {
    "plot": plot,
    "no points": lambda width, height: line_plot([PlotLine("jit", ())], *AXES, width, height),
    "distribution": lambda width, height: distribution(SAMPLES, summarise(SAMPLES), width, height),
    "trend": lambda width, height: trend(BEYOND, summarise(BEYOND), width, height),
    "two modes": lambda width, height: distribution(MODAL, summarise(MODAL), width, height, modes=two_modes(MODAL)),
    "two modes in order": lambda width, height: trend(MODAL, summarise(MODAL), width, height, modes=two_modes(MODAL)),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_fills_its_room_and_is_as_wide_in_ascii(name):
    for width, height in SIZES:
        lines = lines_of(PICTURES[name](width, height))
        if name not in ("plot", "no points"):
            assert len(lines) == height
        assert all(columns(line) <= width for line in lines)


def test_pictures_are_as_they_were():
    drawn = {name: lines_of(draw(60, 9)) for name, draw in PICTURES.items()}
    held_cases(
        "plots.txt", {name: "".join(f"  {line}".rstrip() + "\n" for line in lines) for name, lines in drawn.items()}
    )


def test_stacked_parts_are_drawn_to_an_eighth_of_a_column():
    parts = [(1.0, "red"), (0.5, "green"), (6.0, "blue")]
    assert parts_bar(parts, 10.0, 10).plain == "█" + "▌" + "█" * 5 + "▌"
    assert parts_bar(parts, 10.0, 10).spans[1].style == "green on blue"
    assert [parts_bar([(share, "red")], 1.0, 8).plain for share in (1e-9, 0.5, 1.0)] == ["▏", "█" * 4, "█" * 8]
    assert parts_bar([], 1.0, 8).plain == ""
