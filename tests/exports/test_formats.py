"""The registry of formats, and that the command knows them. speedscope's JSON: events that open and close in order,
stacks whose weights add up. The JSON of pytest-benchmark, and the command that writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from folding import fold
from jaxprof import events as e
from jaxprof.cli.commands.export import NAMES
from jaxprof.exports import speedscope
from jaxprof.exports.formats import FORMATS, ExportSource
from jaxprof.exports.pytest_benchmark import _stats, runs, to_pytest_benchmark
from jaxprof.session import Session
from report import sessions
from report.page.pages import with_timeline


def test_the_command_knows_the_formats_that_there_are():
    assert tuple(FORMATS) == NAMES
    assert all(callable(form.module.files if form.folder else form.module.pieces) for form in FORMATS.values())


def exported(session: Session) -> dict[str, Any]:
    source = ExportSource(session, speedscope.runs(session), Path("s.jaxprof"))
    return dict(json.loads("".join(speedscope.pieces(source))))


def names(file: dict[str, Any], profile: dict[str, Any]) -> list[list[str]]:
    frames = file["shared"]["frames"]
    return [[frames[number]["name"] for number in stack] for stack in profile["samples"]]


def test_a_lane_is_opened_and_closed_in_order_as_it_nests():
    file = exported(with_timeline())
    (host,) = [profile for profile in file["profiles"] if profile["name"] == "r2 host main"]
    frames = file["shared"]["frames"]
    words = [f"{event['type']}{frames[event['frame']]['name']}" for event in host["events"][:5]]
    assert words == ["Ocall", "Odispatch", "Cdispatch", "Ccall", "Ocall"]
    for profile in file["profiles"]:
        if profile["type"] == "evented":
            times = [event["at"] for event in profile["events"]]
            assert times == sorted(times)
            assert (profile["startValue"], profile["endValue"]) == (times[0], times[-1])
            open_frames: list[int] = []
            for event in profile["events"]:
                if event["type"] == "O":
                    open_frames.append(event["frame"])
                else:
                    assert open_frames.pop() == event["frame"]
            assert open_frames == []


def test_overlapping_intervals_are_profiles_of_their_own():
    lane = {"device": "gpu:0", "name": "async", "kind": "async", "labels": [["a", None], ["b", None]], "label": [0, 1],
            "start": [0, 5], "duration": [10, 10]}  # fmt: skip
    text = json.dumps({"version": 1, "unit": "ns", "started_unix_ns": None, "left_out": 0, "ops": [], "lanes": [lane]})
    session = fold(
        sessions.HEADER, [sessions.plan("r1", "jit", "jit"), e.TextRecorded(run="r1", name="timeline", text=text)]
    )
    assert [profile["name"] for profile in exported(session)["profiles"]] == ["r1 gpu:0 async", "r1 gpu:0 async (2)"]


def test_kernels_and_passes_are_stacks_with_their_self_times():
    file = exported(with_timeline())
    kernels, passes = [profile for profile in file["profiles"] if profile["type"] == "sampled"]
    assert kernels["name"] == "r2 selu jit cpu:0: kernels, self time"
    assert names(file, kernels)[0] == ["jit_selu", "selu", "fusion"]
    assert kernels["weights"] == pytest.approx([4e-3, 1e-3, 1e-8, 1e-4])
    assert names(file, kernels)[-1] == ["no HLO op", "gpu:0"]
    assert names(file, passes)[0] == ["compile", "fusion"]
    assert sum(passes["weights"]) == pytest.approx(passes["endValue"]) == pytest.approx(0.04)
    (source,) = [frame for frame in file["shared"]["frames"] if frame["name"] == "fusion" and "file" in frame]
    assert source == {"name": "fusion", "file": "/home/me/selu.py", "line": 28}


def test_the_figures_of_samples():
    stats = _stats([4.0, 1.0, 2.0, 3.0, 100.0], 7)
    assert stats.pop("stddev") == pytest.approx(43.6, rel=1e-2)
    assert stats == {
        "min": 1, "max": 100, "median": 3, "mean": 22, "total": 110, "rounds": 5, "iterations": 7, "q1": 2, "q3": 4,
        "iqr": 2, "ld15iqr": 1, "hd15iqr": 4, "outliers": "1;1", "iqr_outliers": 1, "stddev_outliers": 1,
        "ops": pytest.approx(5 / 110), "data": [4.0, 1.0, 2.0, 3.0, 100.0],
    }  # fmt: skip


def test_each_timed_run_is_a_benchmark():
    session = sessions.whole()
    timed = runs(session)
    data = json.loads(json.dumps(to_pytest_benchmark(session, timed), allow_nan=False))
    assert len({benchmark["fullname"] for benchmark in data["benchmarks"]}) == len(timed) == 2
    assert data["machine_info"]["cpu"]["brand_raw"] == "A CPU"
    for benchmark, run in zip(data["benchmarks"], timed, strict=True):
        assert benchmark["stats"]["rounds"] == len(run.samples("run"))


def test_pytest_benchmark_reads_it(tmp_path):
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
