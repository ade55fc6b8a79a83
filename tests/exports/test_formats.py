"""The registry of formats, and that the command knows them. pprof's, read by the wire format alone (protobuf.dev)."""

import gzip

from hypothesis import given
from hypothesis import strategies as st

from golden import figures_text, held
from jaxprof.analysis.flame import StackFrame, WeightedStack
from jaxprof.cli.commands.export import NAMES
from jaxprof.exports import pprof
from jaxprof.exports.formats import FORMATS
from jaxprof.hlo.read.wire import Message
from report import sessions


def test_the_command_knows_the_formats_that_there_are():
    assert tuple(FORMATS) == NAMES


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
    (packed_file,) = pprof.pieces(session, run)
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
