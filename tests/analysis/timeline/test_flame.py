"""Flame graphs: sums are exact, nothing is hidden."""

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

import program_events as made
from jaxprof.analysis.timeline.flame import (
    PICOSECONDS,
    StackFrame,
    WeightedStack,
    kernel_frames,
    program_flame,
    stacks_flame,
)
from jaxprof.hlo.kernels.origin import op_path

NAMES = st.lists(st.sampled_from("abcd"), min_size=1, max_size=5)
STACKS = st.lists(st.tuples(NAMES, st.integers(0, 10**15)), max_size=30)


def named(frame, *names):
    for name in names:
        [frame] = [inner for inner in frame.inside if inner.at.name == name]
    return frame


def flame(rows):
    stacks = [WeightedStack(tuple(map(StackFrame, names)), ps / PICOSECONDS, 1) for names, ps in rows]
    return stacks_flame(stacks, "measured")


@given(STACKS)
def test_frame_is_own_time_and_inner_frames(rows):
    graph = flame(rows)
    assert graph.root.total == sum(ps for _, ps in rows) == sum(frame.own for frame in graph.frames)
    for frame in graph.frames:
        inside = [inner.total for inner in frame.inside]
        assert frame.total == frame.own + sum(inside)
        assert inside == sorted(inside, reverse=True)
    assert len(list(graph.nested())) == sum(frame.total > 0 or frame is graph.root for frame in graph.frames)


def test_scopes_by_the_thousand_are_shown_to_a_depth():
    def names(path):
        return [frame.name for frame in kernel_frames("", "kernel", SimpleNamespace(path=op_path(path), source=None))]

    assert len(names("a/" * 10_000)) == 201, "each kernel's frames are as many as its scopes"
    assert names("jit(step)/block/dot") == ["step", "block", "kernel"]


def test_program_frames_add_up_to_the_wall_time():
    """What they are is in `tests/net/program.txt`."""
    lines = [made.line(91, 0.25, "device_busy", "float()"), made.line(12, 0.5, "host_busy", under=90, function="load")]
    program = made.result(*made.steady(10, {"device_busy": 0.4, "host_busy": 0.5}, lines), wall=20.5)
    root = program_flame(program).root
    assert root.total == round(program.wall_seconds * PICOSECONDS)
    inside = named(root, "main (train.py)", "loop at line 85", "line 90", "load (train.py)", "line 12")
    assert inside.total == 5 * PICOSECONDS
    line = named(root, "main (train.py)", "loop at line 85", "line 91 float()")
    assert line.at[1:] == ("/home/me/work/train.py", 91)
