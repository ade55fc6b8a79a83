"""The registry of formats, and that the command knows them. speedscope's JSON: events that open and close in order,
stacks whose weights add up. The JSON of pytest-benchmark, and the command that writes it."""

import json
from pathlib import Path

from folding import fold
from golden import figures_text, held, held_cases
from jaxprof import events as e
from jaxprof.cli.commands.export import NAMES
from jaxprof.exports import speedscope
from jaxprof.exports.formats import FORMATS, ExportSource
from jaxprof.exports.pytest_benchmark import _stats, runs, to_pytest_benchmark
from report import sessions
from report.page.pages import timeline_text, with_timeline


def test_the_command_knows_the_formats_that_there_are():
    assert tuple(FORMATS) == NAMES
    assert all(callable(form.module.files if form.folder else form.module.pieces) for form in FORMATS.values())


def exported(session):
    source = ExportSource(session, speedscope.runs(session), Path("s.jaxprof"))
    return dict(json.loads("".join(speedscope.pieces(source))))


def names(file, profile):
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


def test_overlapping_intervals_are_profiles_of_their_own():
    text = json.loads(timeline_text())
    text["lanes"] = [{**text["lanes"][0], "name": "async", "duration": [1_500_000] * 6}]
    stored = e.TextRecorded(run="r1", name="timeline", text=json.dumps(text))
    session = fold(sessions.HEADER, [sessions.plan("r1", "jit", "jit"), stored])
    assert [profile["name"] for profile in exported(session)["profiles"]] == ["r1 gpu:0 async", "r1 gpu:0 async (2)"]


def test_kernels_and_passes_are_stacks_with_their_self_times():
    file = exported(with_timeline())
    told = {"frames": figures_text(*file["shared"]["frames"])}
    for profile in file["profiles"]:
        if profile["type"] == "sampled":
            stacks = zip(names(file, profile), profile["weights"], strict=True)
            told[profile["name"]] = figures_text({"end": profile["endValue"]}, *stacks)
    held_cases("speedscope.txt", told)


def test_the_figures_of_samples():
    held("benchmark.txt", figures_text(*_stats([4.0, 1.0, 2.0, 3.0, 100.0], 7).items()))


def test_each_timed_run_is_a_benchmark():
    session = sessions.whole()
    timed = runs(session)
    data = json.loads(json.dumps(to_pytest_benchmark(session, timed), allow_nan=False))
    assert len({benchmark["fullname"] for benchmark in data["benchmarks"]}) == len(timed) == 2
    assert data["machine_info"]["cpu"]["brand_raw"] == "A CPU"
    for benchmark, run in zip(data["benchmarks"], timed, strict=True):
        assert benchmark["stats"]["rounds"] == len(run.samples("run"))
