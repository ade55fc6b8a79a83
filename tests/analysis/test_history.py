from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest

import kept_histories as kept
from jaxprof.analysis.history import FEWEST, TOGETHER, LibraryHistory, MeasurementHistory, read_history
from jaxprof.report.history import outcome


def only(history: LibraryHistory) -> MeasurementHistory:
    (series,) = history.series
    return series


def read(folder: Path, measure: str = "run", word: str = "", last: int | None = None) -> LibraryHistory:
    return read_history(sorted(folder.glob("*")), measure, word, last=last)


def test_a_planted_slow_down_is_found_at_its_place(tmp_path):
    kept.keep_all(tmp_path, kept.medians((0.010, 9), (0.012, 8)))
    (change,) = only(read(tmp_path)).changes
    assert (change.last.name, change.first.name) == ("session-008", "session-009")
    assert change.ratio == pytest.approx(1 / 1.2, rel=0.03)
    assert change.p_value <= 0.01


@pytest.mark.parametrize(("days", "expected"), [(0.0, 1), (1.0, 0)])
def test_a_change_between_two_days_is_no_change_yet(tmp_path, days, expected):
    for at, median in enumerate(kept.medians((0.010, 9), (0.012, 8))):
        kept.keep(tmp_path, at, kept.run("r1", median), day=at / 1000 + (days if at >= 9 else 0.0))
    series = only(read(tmp_path))
    assert len(series.changes) == expected
    assert bool(series.unclear) != bool(expected), "that they differ is seen, and why they do is not"


def test_sessions_that_drift_have_no_verdict(tmp_path):
    kept.keep_all(tmp_path, [0.010 * 1.01**at for at in range(24)])
    history = read(tmp_path)
    series = only(history)
    assert (series.changes, series.unclear) == ((), TOGETHER)
    assert outcome(history, series).startswith("no verdict: neighbouring sessions move together")


def test_a_short_history_claims_nothing(tmp_path):
    kept.keep_all(tmp_path, [0.01, 0.01, 0.01, 0.09, 0.09][: FEWEST - 1])
    assert not only(read(tmp_path)).searched


def test_what_is_not_the_same_measurement_is_another_series(tmp_path):
    runs = [
        kept.run("r1", 0.01),
        kept.run("r2", 0.02, variant="eager", how="eager"),
        kept.run("r3", 0.03, parameters={"n": 2000}),
        kept.run("r4", 0.04, kind="NVIDIA H100"),
        kept.run("r5", 0.05, precision="highest"),
        kept.run("r6", 0.06, workload="f.py:step", target="/a/f.py:step", arguments=("f32[8]",)),
        kept.run("r7", 0.07, workload="f.py:step", target="/a/f.py:step", arguments=("f32[9]",)),
        kept.run("r8", 0.08, workload="f.py:step", target="/b/f.py:step", arguments=("f32[8]",)),
    ]
    kept.keep(tmp_path, 0, chain.from_iterable(runs))
    kept.keep(tmp_path, 1, kept.run("r1", 0.01), cpu="Another CPU")
    for word, values in {"": [1, 1, 2, 3, 4, 5, 6, 7, 8], "/a/f.py:step": [6, 7], "matmul:eager": [2]}.items():
        assert sorted(round(100 * series.points[0].value) for series in read(tmp_path, word=word).series) == values


def test_what_changed_between_two_points_is_said_at_the_second(tmp_path):
    kept.keep(tmp_path, 0, kept.run("r1", 0.01), driver="550.1")
    kept.keep(tmp_path, 1, kept.run("r1", 0.01), driver="550.1")
    edited = kept.run("r1", 0.01, jax="0.11.0", source="def f(x): return x\n", settings={"XLA_FLAGS": "--a"})
    kept.keep(tmp_path, 2, edited, driver="560.2")
    first, same, other = only(read(tmp_path)).points
    assert first.changed == same.changed == ()
    assert {one.name for one in other.changed} == {"jax", "jaxlib", "XLA_FLAGS", "NVIDIA driver", "source"}


def test_the_commit_of_each_point_is_known_where_it_was_under_git(tmp_path):
    first, other = {"commit": "a1b2c3d"}, {"commit": "e4f5a6b"}
    for number, revision in enumerate(({}, first, first, {**first, "dirty": True}, other)):
        kept.keep(tmp_path, number, kept.run("r1", 0.01, **revision))
    changes = [[(one.name, one.after) for one in point.changed] for point in only(read(tmp_path)).points]
    assert [each[0][1] if each else "" for each in changes] == ["", "a1b2c3d", "", "a1b2c3d with changes", "e4f5a6b"]
    assert {name for each in changes for name, _ in each} == {"git commit"}


def test_runs_without_a_usable_median_are_counted(tmp_path):
    runs = [
        kept.run("r1", 0.01),
        kept.run("r2", 0.02, status="failed"),
        kept.run("r3", 0.02, samples=1),
        kept.run("r4", 0.02, ended=False),
        kept.run("r5", 0.02, side="A"),
        kept.run("r6", 0.02, side="B"),
    ]
    kept.keep(tmp_path, 0, chain.from_iterable(runs), closed=False)
    history = read(tmp_path)
    assert [point.value for point in only(history).points] == [0.01]
    assert history.left_out == {
        "failed": 1,
        "with fewer than two samples": 1,
        "not ended": 1,
        "side of a measured comparison": 2,
    }


def test_a_phase_has_the_interval_of_its_launches(tmp_path):
    runs = [
        kept.run("r1", 0.01, compile_seconds=(0.04, 0.05, 0.045)),
        kept.run("r2", 0.01, variant="numpy", how="numpy", compile_seconds=()),
    ]
    kept.keep(tmp_path, 0, chain.from_iterable(runs))
    (point,) = only(read(tmp_path, "compile")).points
    assert point.value == pytest.approx(0.045)
    assert point.high is not None
    assert point.low < point.value < point.high
    assert read(tmp_path, "first_run").series == ()
