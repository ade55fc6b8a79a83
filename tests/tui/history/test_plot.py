from __future__ import annotations

from pathlib import Path

import kept_histories as kept
from jaxprof.analysis.history import read_history
from jaxprof.tui.history.screen import history_plot


def test_points_are_numbered_and_what_lies_between_them_is_not(tmp_path: Path) -> None:
    found = read_history(kept.keep_all(tmp_path, [0.010, 0.011]))
    lines = history_plot(found, found.series[0], 60, 14).plain.splitlines()
    assert len(lines) == 14
    assert lines[-1].split() == ["1", "2"]


def test_one_point_is_no_chart(tmp_path: Path) -> None:
    found = read_history(kept.keep_all(tmp_path, [0.010]))
    assert history_plot(found, found.series[0], 60, 14).plain.split() == ["one", "point", "so", "far"]
