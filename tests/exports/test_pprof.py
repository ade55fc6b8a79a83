"""The profile of pprof, read back by the wire format alone (protobuf.dev, "Encoding")."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jaxprof.analysis.flame import StackFrame, WeightedStack
from jaxprof.exports import pprof
from jaxprof.exports.formats import ExportSource
from jaxprof.hlo.read.wire import Message
from report import sessions


def read(data: bytes) -> dict[str, Any]:
    """The profile with names in place of numbers: its stacks innermost first, as the format has them."""
    profile = Message(data)
    strings = profile.texts(6)
    functions = {one.number(1): (strings[one.number(2)], strings[one.number(4)]) for one in profile.messages(5)}
    locations = {}
    for one in profile.messages(4):
        (line,) = one.messages(4)
        locations[one.number(1)] = (*functions[line.number(1)], line.number(2))
    return {
        "types": [(strings[one.number(1)], strings[one.number(2)]) for one in profile.messages(1)],
        "samples": [
            ([locations[number] for number in one.numbers(1)], list(one.numbers(2))) for one in profile.messages(2)
        ],
        "comments": [strings[number] for number in profile.numbers(13)],
        "default": strings[profile.number(14)],
        "time": profile.number(9),
        "duration": profile.number(10),
        "strings": strings,
    }


def test_kernels_are_samples_under_their_program_and_scopes():
    session = sessions.captured()
    (run,) = pprof.runs(session)
    (packed_file,) = pprof.pieces(ExportSource(session, [run], Path("s.jaxprof")))
    profile = read(gzip.decompress(packed_file))
    assert profile["types"] == [("executions", "count"), ("time", "nanoseconds")]
    assert profile["default"] == "time"
    assert profile["strings"][0] == ""
    assert profile["time"] == 1000 * 10**9
    stack, values = profile["samples"][0]
    assert stack == [("fusion", "/home/me/selu.py", 28), ("selu", "", 0), ("jit_selu", "", 0)]
    assert values == [20, 4_000_000]
    assert profile["duration"] == sum(values[1] for _, values in profile["samples"])
    assert profile["comments"] == ["selu jit cpu:0: kernels: self time of all executions in the capture"]


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
    assert [
        (
            [(frame.name, frame.file, frame.line) for frame in reversed(stack.frames)],
            [stack.count, round(stack.seconds * 1e9)],
        )
        for stack in stacks
    ] == profile["samples"]
