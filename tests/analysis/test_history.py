from itertools import chain

import pytest

import kept_histories as kept
from jaxprof.analysis.history import read_history


def only(history):
    (series,) = history.series
    return series


def read(folder, measure="run", word="", last=None):
    return read_history(sorted(folder.glob("*")), measure, word, last=last)


def test_what_is_not_the_same_measurement_is_another_series(tmp_path):
    function = {"workload": "f.py:step", "target": "/a/f.py:step", "arguments": ("f32[8]",)}
    measured = [
        {}, {"variant": "eager", "how": "eager"}, {"parameters": {"n": 2000}}, {"kind": "NVIDIA H100"},
        {"precision": "highest"}, function, {**function, "arguments": ("f32[9]",)},
        {**function, "target": "/b/f.py:step"},
    ]  # fmt: skip
    runs = [kept.run(f"r{number}", number / 100, **spec) for number, spec in enumerate(measured, 1)]
    kept.keep(tmp_path, 0, chain.from_iterable(runs))
    kept.keep(tmp_path, 1, kept.run("r1", 0.01), cpu="Another CPU")
    for word, values in {"": [1, 1, 2, 3, 4, 5, 6, 7, 8], "/a/f.py:step": [6, 7], "matmul:eager": [2]}.items():
        assert sorted(round(100 * series.points[0].value) for series in read(tmp_path, word=word).series) == values


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


def test_what_changed_between_two_points_is_said_at_the_second(tmp_path):
    edited = {"jax": "0.11.0", "source": "def f(x): return x\n", "settings": {"XLA_FLAGS": "--a"}}
    first, other = {"commit": "a1b2c3d"}, {"commit": "e4f5a6b"}
    for number, more in enumerate(({}, {}, edited, {**edited, **first}, {**edited, **first, "dirty": True}, other)):
        kept.keep(tmp_path, number, kept.run("r1", 0.01, **more), driver="560.2" if more else "550.1")
    changes = [{one.code: one.after for one in point.changed} for point in only(read(tmp_path)).points]
    assert changes[:2] == [{}, {}]
    assert changes[2].keys() == {"jax", "jaxlib", "XLA_FLAGS", "NVIDIA driver", "source"}
    assert changes[3:5] == [{"git commit": "a1b2c3d"}, {"git commit": "a1b2c3d with changes"}]
    assert changes[5].keys() == {"git commit", "jax", "jaxlib", "XLA_FLAGS", "source"}


def test_a_phase_has_the_interval_of_its_launches(tmp_path):
    runs = [kept.run("r1", 0.01, compile_seconds=(0.04, 0.05, 0.045)), kept.run("r2", 0.01, compile_seconds=())]
    kept.keep(tmp_path, 0, chain.from_iterable(runs))
    (point,) = only(read(tmp_path, "compile")).points
    assert point.low < point.value < point.high
    assert point.value == pytest.approx(0.045)
    assert read(tmp_path, "first_run").series == ()
