"""The registry of formats, and that the command knows them. speedscope's JSON: events that open and close in order,
stacks whose weights add up. The JSON of pytest-benchmark. pprof's, read by the wire format alone (protobuf.dev)."""

import gzip
import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from folding import fold
from golden import figures_text, held, held_cases
from jaxprof import events as e
from jaxprof.analysis.flame import StackFrame, WeightedStack
from jaxprof.cli.commands.export import NAMES
from jaxprof.exports import pprof, speedscope
from jaxprof.exports.formats import FORMATS, ExportSource
from jaxprof.exports.pytest_benchmark import _stats, runs, to_pytest_benchmark
from jaxprof.hlo.read.wire import Message
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


def read(data):
    """The profile with names in place of numbers: its stacks innermost first, as the format has them."""
    profile = Message(data)
    strings = profile.texts(6)
    functions = {one.number(1): (strings[one.number(2)], strings[one.number(4)]) for one in profile.messages(5)}
    locations = {}
    for one in profile.messages(4):
        (line,) = one.messages(4)
        locations[one.number(1)] = (*functions[line.number(1)], line.number(2))
    samples = [([locations[each] for each in one.numbers(1)], list(one.numbers(2))) for one in profile.messages(2)]
    return {
        "types": [(strings[one.number(1)], strings[one.number(2)]) for one in profile.messages(1)],
        "samples": samples,
        "comments": [strings[number] for number in profile.numbers(13)],
        "default": strings[profile.number(14)],
        "time": profile.number(9),
        "duration": profile.number(10),
    }


def test_kernels_are_samples_under_their_program_and_scopes():
    session = sessions.captured()
    (run,) = pprof.runs(session)
    (packed_file,) = pprof.pieces(ExportSource(session, [run], Path("s.jaxprof")))
    held("profile_of_pprof.txt", figures_text(*read(gzip.decompress(packed_file)).items()))


def test_half_a_character_is_replaced():
    lone = [WeightedStack((StackFrame("\ud800"),), 1.0, 1)]
    assert read(pprof.profile_bytes(lone, "n", "", 0))["samples"] == [([("?", "", 0)], [1, 10**9])]


FRAME = st.builds(
    StackFrame,
    st.text(st.characters(codec="utf-8"), max_size=8),
    st.sampled_from(["", "a.py"]),
    st.integers(1, 1 << 40),
)
STACK = st.builds(
    WeightedStack,
    st.lists(FRAME, min_size=1, max_size=6).map(tuple),
    st.integers(0, 10**6).map(float),
    st.integers(0, 1 << 40),
)


@given(st.lists(STACK, max_size=8))
def test_whatever_the_stacks_are_they_are_read_back(stacks):
    profile = read(pprof.profile_bytes(stacks, "n", "c", 1))
    for stack, (frames, values) in zip(stacks, profile["samples"], strict=True):
        assert frames == [(frame.name, frame.file, frame.line) for frame in reversed(stack.frames)]
        assert values == [stack.count, round(stack.seconds * 1e9)]
