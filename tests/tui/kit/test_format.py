from __future__ import annotations

import re

from jaxprof.stats import summarise
from jaxprof.tui.kit.format import ago, half_width, half_width_short, interval, moment


def test_a_time_is_local_and_one_that_no_calendar_has_is_unknown() -> None:
    assert re.fullmatch(r"2026-01-\d\d \d\d:\d\d", moment(1_768_000_000.0))
    for seconds in (-1e18, 1e300, float("inf"), float("nan")):
        assert moment(seconds) == "-"
    assert ago(-1e18) == "-"


def test_an_interval_wider_than_the_median_has_its_two_ends_alone() -> None:
    narrow, wide = summarise([1.0, 1.01, 1.02, 1.0, 1.01, 1.0]), summarise([0.1, 9.0, 0.2, 9.0, 1.0, 0.1])
    assert half_width(narrow).startswith(" ± ")
    assert half_width(wide) == ""
    assert " to " in interval(wide)
    assert half_width_short(wide).startswith("±")
    assert half_width(None) == " -"
