"""Times and intervals in words, and lines of source files, opened with care."""

import re

from jaxprof.hlo.analysis.origin import HloSourceLocation
from jaxprof.stats.summary import summarise
from jaxprof.tui.kit.format import ago, half_width, half_width_short, interval, moment
from jaxprof.tui.kit.python_source import excerpt


def test_a_time_is_local_and_one_that_no_calendar_has_is_unknown():
    assert re.fullmatch(r"2026-01-\d\d \d\d:\d\d", moment(1_768_000_000.0))
    for seconds in (-1e18, 1e300, float("inf"), float("nan")):
        assert moment(seconds) == "-"
    assert ago(-1e18) == "-"


def test_an_interval_wider_than_the_median_has_its_two_ends_alone():
    narrow, wide = summarise([1.0, 1.01, 1.02, 1.0, 1.01, 1.0]), summarise([0.1, 9.0, 0.2, 9.0, 1.0, 0.1])
    assert half_width(narrow).startswith(" ± ")
    assert half_width(wide) == ""
    assert " to " in interval(wide)
    assert half_width_short(wide) == "± >100 %"
    assert half_width_short(narrow) in half_width(narrow)
    assert half_width(None) == " -"


def test_a_source_file_is_read_only_if_it_is_one(tmp_path):
    path = tmp_path / "m.py"
    path.write_text("a = 1\nb = 2\nc = 3\n")
    assert excerpt(HloSourceLocation(str(path), 2), 1).lines == ((1, "a = 1"), (2, "b = 2"), (3, "c = 3"))
    for bad in ("/dev/zero", str(tmp_path), "/no/such/file", "a\0b"):
        assert excerpt(HloSourceLocation(bad, 1), 1).lines == ()
