"""The JSON of pytest-benchmark, and the command that writes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jaxprof.exports.pytest_benchmark import _stats, runs, to_pytest_benchmark
from report import sessions

STATS = {
    "min", "max", "mean", "stddev", "rounds", "median", "iqr", "q1", "q3", "iqr_outliers", "stddev_outliers",
    "outliers", "ld15iqr", "hd15iqr", "ops", "total", "data", "iterations",
}  # fmt: skip


def test_the_figures_of_samples() -> None:
    stats = _stats([4.0, 1.0, 2.0, 3.0, 100.0], 7)
    assert set(stats) == STATS
    assert (stats["min"], stats["max"], stats["median"], stats["rounds"], stats["iterations"]) == (1, 100, 3, 5, 7)
    assert (stats["q1"], stats["q3"], stats["iqr"]) == (2, 4, 2)
    assert (stats["ld15iqr"], stats["hd15iqr"], stats["outliers"]) == (1, 4, "1;1")
    assert stats["mean"] == 22
    assert stats["total"] == 110
    assert stats["ops"] == pytest.approx(5 / 110)
    assert stats["data"] == [4.0, 1.0, 2.0, 3.0, 100.0]


def test_each_timed_run_is_a_benchmark() -> None:
    session = sessions.whole()
    timed = runs(session)
    assert 0 < len(timed) < len(session.runs) or all(run.samples("run") for run in session.runs.values())
    data = json.loads(json.dumps(to_pytest_benchmark(session, timed), allow_nan=False))
    assert len(data["benchmarks"]) == len(timed)
    assert len({benchmark["fullname"] for benchmark in data["benchmarks"]}) == len(timed)
    assert data["machine_info"]["cpu"]["brand_raw"] == "A CPU"
    assert data["commit_info"]["id"] is None
    for benchmark, run in zip(data["benchmarks"], timed, strict=True):
        assert set(benchmark["stats"]) == STATS
        assert benchmark["stats"]["rounds"] == len(run.samples("run"))
        assert None not in [value for name, value in benchmark["extra_info"].items() if name in ("flops", "kernels")]


def test_pytest_benchmark_reads_it(tmp_path: Path) -> None:
    """Where it is installed: it is no dependency of the tests."""
    pytest.importorskip("pytest_benchmark")
    import subprocess
    import sys

    session = sessions.whole()
    path = tmp_path / "0001_main.json"
    path.write_text(json.dumps(to_pytest_benchmark(session, runs(session))))
    command = [sys.executable, "-m", "pytest_benchmark", "compare", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "selu" in done.stdout
