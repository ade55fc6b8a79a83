from itertools import chain

import kept_histories as kept
from jaxprof.report.history import kept_runs


def read(folder, word=""):
    return kept_runs(sorted(folder.glob("*")), word)


def test_what_is_not_the_same_measurement_stands_apart_and_the_newest_comes_first(tmp_path):
    function = {"workload": "f.py:step", "target": "/a/f.py:step", "arguments": ("f32[8]",)}
    measured = [
        {}, {"variant": "eager", "how": "eager"}, {"parameters": {"n": 2000}}, {"kind": "NVIDIA H100"},
        {"precision": "highest"}, function, {**function, "arguments": ("f32[9]",)},
        {**function, "target": "/b/f.py:step"},
    ]  # fmt: skip
    for day in (0, 1):
        runs = [kept.run(f"r{number}", (number + day / 2) / 100, **spec) for number, spec in enumerate(measured, 1)]
        kept.keep(tmp_path, day, chain.from_iterable(runs))
    for word, expected in {"": range(1, 9), "/a/f.py:step": (6, 7), "matmul:eager": (2,)}.items():
        values = [round(100 * each.row.result.summary.median, 1) for each in read(tmp_path, word)[0]]
        assert values == [value for number in expected for value in (number + 0.5, number)]


def test_runs_without_a_usable_median_are_left_out(tmp_path):
    runs = [
        kept.run("r1", 0.01),
        kept.run("r2", 0.02, status="failed"),
        kept.run("r4", 0.02, ended=False),
        kept.run("r5", 0.02, side="A"),
        kept.run("r6", 0.02, side="B"),
    ]
    kept.keep(tmp_path, 0, chain.from_iterable(runs), closed=False)
    assert [each.row.run.id for each in read(tmp_path)[0]] == ["r1"]
