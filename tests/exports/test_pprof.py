"""The profile of pprof, read back by the wire format alone."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jaxprof.analysis.flame import StackFrame, WeightedStack
from jaxprof.exports import pprof
from jaxprof.exports.source import ExportSource
from report import sessions
from report.page.pages import EVIL, hostile


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Each field of a message: its number, and an integer or bytes (protobuf.dev, "Encoding")."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            assert key & 7 == 2
            size = varint()
            at += size
            yield key >> 3, message[at - size : at]


def packed(content: bytes) -> list[int]:
    return [value for _, value in fields(b"".join(b"\x08" + part for part in _varints(content)))]


def _varints(content: bytes) -> Iterator[bytes]:
    begin = 0
    for at, byte in enumerate(content):
        if byte < 0x80:
            yield content[begin : at + 1]
            begin = at + 1


def read(message: bytes) -> dict[str, Any]:
    """The profile with names in place of numbers: its stacks innermost first, as the format has them."""
    every = list(fields(message))
    strings = [content.decode() for field, content in every if field == 6]
    functions = {}
    for content in (content for field, content in every if field == 5):
        data = dict(fields(content))
        functions[data[1]] = (strings[data[2]], strings[data[4]])
    locations = {}
    for content in (content for field, content in every if field == 4):
        data = dict(fields(content))
        line = dict(fields(data[4]))
        locations[data[1]] = (*functions[line[1]], line[2])
    samples = []
    for content in (content for field, content in every if field == 2):
        data = dict(fields(content))
        samples.append(([locations[number] for number in packed(data[1])], packed(data[2])))
    types = [dict(fields(content)) for field, content in every if field == 1]
    single = {field: value for field, value in every if field in (9, 10, 12, 14)}
    return {
        "types": [(strings[each[1]], strings[each[2]]) for each in types],
        "samples": samples,
        "comments": [strings[number] for field, content in every if field == 13 for number in packed(content)],
        "default": strings[single[14]],
        "time": single[9],
        "duration": single[10],
        "strings": strings,
    }


def test_kernels_are_samples_under_their_program_and_scopes() -> None:
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


def test_a_name_that_is_markup_or_half_a_character_is_kept_or_replaced() -> None:
    session = hostile()
    (run,) = pprof.runs(session)
    (packed_file,) = pprof.pieces(ExportSource(session, [run], Path("s.jaxprof")))
    assert EVIL in read(gzip.decompress(packed_file))["strings"]
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
def test_whatever_the_stacks_are_they_are_read_back(stacks: list[WeightedStack]) -> None:
    profile = read(pprof.profile_bytes(stacks, "n", "c", 1))
    assert [
        (
            [(frame.name, frame.file, frame.line) for frame in reversed(stack.frames)],
            [stack.count, round(stack.seconds * 1e9)],
        )
        for stack in stacks
    ] == profile["samples"]
