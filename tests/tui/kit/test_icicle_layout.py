"""Every column belongs to exactly one frame at each depth, and widths are shares."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jaxprof.analysis.flame import ROOT, Branches, FlameFrame, FlameTree
from jaxprof.tui.kit.icicle_browse import layout

TREES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10**9)), min_size=1, max_size=40)


def tree_of(frames: list[tuple[int, int]]) -> FlameTree:
    """Each frame inside an earlier one, with an amount of its own."""
    branches = Branches()
    for number, (parent, amount) in enumerate(frames):
        node = branches.branch(parent % (number + 1), f"frame {number}")
        branches.end(node, amount, 1, number)
    return branches.tree()


@given(TREES, st.integers(1, 120))
def test_every_column_belongs_to_one_frame_at_each_depth(frames: list[tuple[int, int]], width: int) -> None:
    tree = tree_of(frames)
    rows = layout(tree, FlameFrame(ROOT), width)
    assert bool(rows) == (tree.total > 0)
    for row in rows:
        assert [span.begin for span in row] == [0, *(span.end for span in row[:-1])]
        assert row[-1].end == width
        assert all(span.begin < span.end for span in row)
    for above, below in pairwise(rows):
        for span in below:
            holder = next(other for other in above if other.begin <= span.begin and span.end <= other.end)
            if span.frame is not None:
                assert holder.frame is not None
                assert tree.around(span.frame) == holder.frame.node


@given(TREES, st.integers(1, 120))
def test_a_frame_is_as_wide_as_its_share_but_for_those_narrower_than_a_column(
    frames: list[tuple[int, int]], width: int
) -> None:
    tree = tree_of(frames)
    rows = layout(tree, FlameFrame(ROOT), width)
    for above, below in pairwise(rows):
        for holder in above:
            inside = [span for span in below if holder.begin <= span.begin < holder.end and span.frame is not None]
            width_of = {span: span.end - span.begin for span in inside}
            whole = tree.total_of(holder.frame) if holder.frame is not None else 1
            shares = {
                span: tree.total_of(span.frame) / whole * (holder.end - holder.begin) for span in inside if span.frame
            }
            thin = sum(share < 1 for share in shares.values())
            for span, share in shares.items():
                assert abs(share - width_of[span]) < 1 + thin, "only what is narrower than a column takes from others"


@given(TREES, st.integers(20, 120))
def test_every_frame_can_be_reached_by_zooming(frames: list[tuple[int, int]], width: int) -> None:
    tree = tree_of(frames)
    seen: set[int] = set()
    tried: set[FlameFrame] = set()
    pending = [FlameFrame(ROOT)]
    while pending:
        top = pending.pop()
        assert top not in tried, "zooming into a frame shows other frames"
        tried.add(top)
        for row in layout(tree, top, width)[1:2]:
            for span in row:
                if span.frame is not None:
                    seen |= set() if span.frame.size else {span.frame.node}
                    pending.append(span.frame)
    assert seen == {node for node in range(1, len(tree)) if tree.totals[node]}


def test_a_thousand_equal_frames_are_one_fold_that_opens_into_parts() -> None:
    branches = Branches()
    branches.add(ROOT, [f"kernel {n}" for n in range(1000)], [7] * 1000, [1] * 1000, list(range(1000)))
    tree = branches.tree()
    (_, row) = layout(tree, FlameFrame(ROOT), 80)
    assert len(row) == 10
    assert {tree.name_of(span.frame) for span in row if span.frame} == {"100 smaller"}


def test_a_frame_of_one_column_gives_none_of_it_away() -> None:
    tree = tree_of([(0, 255), (1, 706), (1, 1)])
    (_, _, row) = layout(tree, FlameFrame(ROOT), 2)
    assert [(span.end - span.begin, tree.name_of(span.frame)) for span in row if span.frame] == [
        (1, "frame 1"),
        (1, "frame 2"),
    ]
