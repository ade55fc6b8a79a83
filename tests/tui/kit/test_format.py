"""Times and intervals in words, and lines of source files, opened with care."""

import hashlib
import re

from textual.content import Content

from jaxprof.hlo.kernels.origin import HloSourceLocation
from jaxprof.stats.summary import summarise
from jaxprof.tui.kit.drawing import hang, whole_parts, wrap_content
from jaxprof.tui.kit.format import ago, half_width, interval, moment
from jaxprof.tui.kit.python_source import source_facts


def test_a_time_is_local_and_one_that_no_calendar_has_is_unknown():
    assert re.fullmatch(r"2026-01-\d\d \d\d:\d\d", moment(1_768_000_000.0))
    for seconds in (-1e18, 1e300, float("inf"), float("nan")):
        assert moment(seconds) == "-"
    assert ago(-1e18) == "-"


def test_interval_wider_than_the_median_has_two_ends():
    narrow, wide = summarise([1.0, 1.01, 1.02, 1.0, 1.01, 1.0]), summarise([0.1, 9.0, 0.2, 9.0, 1.0, 0.1])
    assert half_width(narrow).startswith(" ± ")
    assert half_width(wide) == ""
    assert " to " in interval(wide)
    assert half_width(None) == " -"


def test_why_no_line_of_a_file_is_shown(tmp_path):
    """Of a file that was not recorded it is not said whether it is here."""
    path = tmp_path / "m.py"
    path.write_text("a = 1\n")

    def shown(sources):
        return "\n".join(line.plain for line in source_facts(HloSourceLocation(str(path), 1), 60, sources))

    assert "a = 1" in shown({str(path): hashlib.sha256(b"a = 1\n").hexdigest()})
    for sources, why in (({}, "not recorded"), ({str(path): "0" * 64}, "not here as it was recorded")):
        assert why in shown(sources)
        assert "a = 1" not in shown(sources)


def test_a_part_with_a_figure_is_shown_whole_or_not_at_all():
    parts = ("8 buffers of 6.00 KiB", "instruction 3 of 40", "x")
    assert [whole_parts(parts, width).plain for width in (45, 26, 20)] == [
        "8 buffers of 6.00 KiB · instruction 3 of 40",
        "8 buffers of 6.00 KiB · x",
        "instruction 3 of 40",
    ]


def test_a_wrapped_number_stays_with_its_unit():
    lines = hang(Content("bytes "), "2.00 MiB = 1.50 MiB read + 512 KiB written " + "x" * 50, 36)
    assert [line.plain for line in lines][:2] == ["bytes 2.00 MiB = 1.50 MiB read +", "      512 KiB written"]
    assert all(line.cell_length <= 36 for line in lines)


def test_a_text_without_room_beside_its_head_stands_below_it():
    """It tore words into pieces of a few letters there."""
    lines = [line.plain for line in hang(Content("  products = vjp and jvp  "), "which of them it computes", 30)]
    assert lines == ["  products = vjp and jvp  ", "    which of them it computes"]
    assert [line.plain for line in hang(Content("  n = 1  "), "points", 16)] == ["  n = 1  points"]
    assert hang(Content("head "), "text", 0), "before the first layout a widget has no width"


def test_line_is_not_broken_inside_a_number():
    lines = [line.plain for line in wrap_content(Content("there are 1\u202f045 of them, 12\u202f345 in all"), 12)]
    assert lines == ["there are", "1\u202f045 of", "them, 12\u202f345", "in all"]
