"""Flame graphs: sums are exact, nothing is hidden."""

from hypothesis import given
from hypothesis import strategies as st

import program_events as made
from jaxprof.analysis.flame import (
    PICOSECONDS,
    FlameFrame,
    StackFrame,
    WeightedStack,
    program_flame,
    scope_names,
    stacks_flame,
)
from jaxprof.hlo.analysis.origin import op_path

NAMES = st.lists(st.sampled_from("abcd"), min_size=1, max_size=5)
STACKS = st.lists(st.tuples(NAMES, st.integers(0, 10**15)), max_size=30)


def named(tree, *names):
    node = tree.find(names)
    assert [tree.names[step] for step in tree.path(node)] == list(names)
    return node


def flame(rows):
    stacks = [WeightedStack(tuple(map(StackFrame, names)), ps / PICOSECONDS, 1) for names, ps in rows]
    return stacks_flame(stacks, "measured", "scope").tree


@given(STACKS)
def test_a_frame_is_its_own_time_and_that_of_the_frames_inside_it(rows):
    tree = flame(rows)
    assert tree.total == sum(ps for _, ps in rows) == sum(tree.own)
    for node in range(len(tree)):
        inside = [tree.totals[child] for child in tree.inside(node)]
        assert tree.totals[node] == tree.own[node] + sum(inside)
        assert inside == sorted(inside, reverse=True)
    assert len(list(tree.in_order(0))) == len(tree)


def test_several_small_frames_are_one_that_knows_their_sum():
    tree = flame([([*path], ps * 10**12) for path, ps in (("fa", 6), ("fb", 4), ("fcx", 2), ("fd", 1))])
    small = FlameFrame(named(tree, "f"), 2, 2)
    assert (tree.name_of(small), tree.total_of(small), tree.own_of(small)) == ("2 smaller", 3 * 10**12, 0)
    assert tree.around(small) == named(tree, "f")


def test_scopes_by_the_thousand_are_shown_to_a_depth():
    assert len(scope_names(op_path("a/" * 10_000))) == 200, "each kernel's frames are as many as its scopes"
    assert scope_names(op_path("jit(step)/block/dot")) == ("step", "block")


def test_the_frames_of_a_program_are_its_wall_time_to_the_picosecond():
    """What they are is in `tests/net/program.txt`."""
    lines = [made.line(91, 0.25, "device_busy", "float()"), made.line(12, 0.5, "host_busy", under=90, function="load")]
    program = made.result(*made.steady(10, {"device_busy": 0.4, "host_busy": 0.5}, lines), wall=20.5)
    graph = program_flame(program)
    assert graph.tree.total == round(program.wall_seconds * PICOSECONDS)
    inside = named(graph.tree, "main (train.py)", "loop at line 85", "line 90", "load (train.py)", "line 12")
    assert graph.tree.totals[inside] == 5 * PICOSECONDS
    node = named(graph.tree, "main (train.py)", "loop at line 85", "line 91 float()")
    assert (graph.place_of(node).file, graph.place_of(node).line) == ("/home/me/work/train.py", 91)
