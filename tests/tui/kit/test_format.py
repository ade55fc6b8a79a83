from __future__ import annotations

import re

from jaxprof.tui.kit.format import ago, moment


def test_a_time_is_local_and_one_that_no_calendar_has_is_unknown() -> None:
    assert re.fullmatch(r"2026-01-\d\d \d\d:\d\d", moment(1_768_000_000.0))
    for seconds in (-1e18, 1e300, float("inf"), float("nan")):
        assert moment(seconds) == "-"
    assert ago(-1e18) == "-"
