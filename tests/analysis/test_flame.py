"""Flame graphs: sums are exact, nothing is hidden, and a search counts each second once."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import program_events as made
from jaxprof.analysis.flame import (
    PICOSECONDS,
    FlameFrame,
    FlameTree,
    StackFrame,
    WeightedStack,
    program_flame,
    run_flame,
    scope_names,
    stacks_flame,
)
from jaxprof.hlo.analysis.origin import op_path
from report import sessions

NAMES = st.lists(st.sampled_from("abcd"), min_size=1, max_size=5)
STACKS = st.lists(st.tuples(NAMES, st.integers(0, 10**15)), max_size=30)


def stack(path: str, seconds: float, count: int = 1) -> WeightedStack:
    return WeightedStack(tuple(map(StackFrame, path.split("/"))), seconds, count)


def named(tree: FlameTree, *names: str) -> int:
    node = tree.find(names)
    assert [tree.names[step] for step in tree.path(node)] == list(names)
    return node


@given(STACKS)
def test_a_frame_is_its_own_time_and_that_of_the_frames_inside_it(rows: list[tuple[list[str], int]]) -> None:
    stacks = [WeightedStack(tuple(map(StackFrame, names)), ps / PICOSECONDS, 1) for names, ps in rows]
    tree = stacks_flame(stacks, "measured", "scope").tree
    assert tree.total == sum(ps for _, ps in rows) == sum(tree.own)
    for node in range(len(tree)):
        inside = tree.inside(node)
        assert tree.totals[node] == tree.own[node] + sum(tree.totals[child] for child in inside)
        assert [tree.totals[child] for child in inside] == sorted((tree.totals[c] for c in inside), reverse=True)
    assert [node for node, _ in tree.in_order(0)] != []
    assert len(list(tree.in_order(0))) == len(tree)


@given(STACKS, st.sampled_from("abcd"))
def test_a_search_counts_what_is_inside_another_match_once(rows: list[tuple[list[str], int]], name: str) -> None:
    stacks = [WeightedStack(tuple(map(StackFrame, names)), ps / PICOSECONDS, 1) for names, ps in rows]
    tree = stacks_flame(stacks, "measured", "scope").tree
    found = tree.matching(re.compile(name).search)
    assert found.amount == sum(ps for names, ps in rows if name in names)
    assert found.count == len(found.largest_first()) == tree.names.count(name)


def test_several_small_frames_are_one_that_knows_their_sum_and_their_matches() -> None:
    tree = stacks_flame(
        [stack("f/a", 3), stack("f/b", 2), stack("f/c/x", 1), stack("f/d", 0.5)], "measured", "scope"
    ).tree
    small = FlameFrame(named(tree, "f"), 2, 2)
    assert (tree.name_of(small), tree.total_of(small), tree.own_of(small)) == ("2 smaller", 15 * 10**11, 0)
    assert tree.around(small) == named(tree, "f")
    assert tree.matching(re.compile("x").search).marks(small)
    assert not tree.matching(re.compile("a").search).marks(small)


def test_the_frames_of_a_program_are_its_wall_time_to_the_picosecond() -> None:
    lines = [made.line(91, 0.25, "device_busy", "float()"), made.line(12, 0.5, "host_busy", under=90, function="load")]
    windows = made.steady(4, {"device_busy": 0.4, "host_busy": 0.5}, lines)
    program = made.result(*windows, wall=10.0)
    graph = program_flame(program)
    tree = graph.tree
    assert tree.total == round(program.wall_seconds * PICOSECONDS)
    loop = named(tree, "main (train.py)", "loop at line 85")
    assert tree.totals[loop] == 3 * PICOSECONDS
    assert (
        tree.totals[named(tree, "main (train.py)", "loop at line 85", "line 91 float()", "[device busy]")]
        == PICOSECONDS
    )
    assert tree.totals[tree.find(["main (train.py)", "loop at line 85", "line 90"])] == 2 * PICOSECONDS
    assert tree.totals[named(tree, "no line", "[device busy]")] == pytest.approx(0.6 * PICOSECONDS, abs=1)
    assert tree.totals[named(tree, "no line", "[not seen]")] == pytest.approx(6.4 * PICOSECONDS, abs=1)
    place = graph.place_of(named(tree, "main (train.py)", "loop at line 85", "line 91 float()"))
    assert (place.file, place.line) == ("/home/me/work/train.py", 91)


def test_kernels_are_the_time_of_the_capture_with_what_belongs_to_no_op() -> None:
    session = sessions.captured()
    run = next(run for run in session.runs.values() if run.measured)
    graph = run_flame(session, run)
    event = run.measured["run"]
    assert graph.basis == "measured"
    captured = [row.self_seconds for row in event.rows] + list(event.unattributed_seconds.values())
    assert graph.tree.total == sum(round(took * PICOSECONDS) for took in captured)
    assert graph.tree.totals[named(graph.tree, "no HLO op")] == 10**8
    assert any("no scope" in graph.tree.names[node] for node in range(len(graph.tree)))


def test_scopes_by_the_thousand_are_shown_to_a_depth() -> None:
    assert len(scope_names(op_path("a/" * 10_000))) == 200, "each kernel's frames are as many as its scopes"
    assert scope_names(op_path("jit(step)/block/dot")) == ("step", "block")
