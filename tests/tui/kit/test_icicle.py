"""The flame graph: where frames are drawn, zoom with keys and mouse, search, and the words for a frame."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jaxprof.analysis.flame import ROOT, Branches, FlameFrame, StackFrame, WeightedStack, stacks_flame
from jaxprof.tui.kit.icicle import IciclePane
from jaxprof.tui.kit.icicle_browse import layout
from tui import recorded
from tui.fakes import walking

TREES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10**9)), min_size=1, max_size=40)


def tree_of(frames):
    """Each frame inside an earlier one, with an amount of its own."""
    branches = Branches()
    for number, (parent, amount) in enumerate(frames):
        node = branches.branch(parent % (number + 1), f"frame {number}")
        branches.end(node, amount, 1, number)
    return branches.tree()


@given(TREES, st.integers(1, 120))
def test_every_column_belongs_to_one_frame_at_each_depth_which_is_as_wide_as_its_share(frames, width):
    tree = tree_of(frames)
    rows = layout(tree, FlameFrame(ROOT), width)
    assert bool(rows) == (tree.total > 0)
    for row in rows:
        assert [span.begin for span in row] == [0, *(span.end for span in row[:-1])]
        assert row[-1].end == width
        assert all(span.begin < span.end for span in row)
    for above, below in pairwise(rows):
        for holder in above:
            inside = [span for span in below if holder.begin <= span.begin < holder.end and span.frame is not None]
            assert all(span.end <= holder.end and holder.frame is not None for span in inside)
            assert {tree.around(span.frame) for span in inside} <= {holder.frame and holder.frame.node}
            whole = tree.total_of(holder.frame) if holder.frame is not None else 1
            shares = [tree.total_of(span.frame) / whole * (holder.end - holder.begin) for span in inside]
            thin = sum(share < 1 for share in shares)
            for span, share in zip(inside, shares, strict=True):
                too_wide = abs(share - (span.end - span.begin))
                assert too_wide < 1 + thin, "only what is narrower than a column takes from others"


@given(TREES, st.integers(20, 120))
def test_every_frame_can_be_reached_by_zooming(frames, width):
    tree = tree_of(frames)
    seen = set()
    tried = set()
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


def graph(*rows):
    stacks = [WeightedStack(tuple(map(StackFrame, path.split("/"))), seconds, 1) for path, seconds in rows]
    return stacks_flame(stacks, "measured", "scope")


def kernels():
    """Two blocks, and a hundred kernels that are too small to be drawn one by one."""
    small = [(f"step/norm/small.{number}", 0.001) for number in range(100)]
    return graph(
        ("step/block_0/attention/dot.1", 5.0), ("step/block_0/mlp/dot.2", 3.0), ("step/block_1/dot.3", 2.0), *small
    )


def top(view):
    return view.browse.graph.tree.name_of(view.browse.top)


def column(view, name):
    """Where a frame with that name is drawn, in the widget."""
    tree, high = view.browse.graph.tree, (view.size.height - 1) // len(view.browse.rows)
    for row, spans in enumerate(view.browse.rows):
        for span in spans:
            if span.frame is not None and tree.name_of(span.frame) == name:
                return span.begin, 1 + row * max(1, min(3, high))
    raise AssertionError(f"{name} is not drawn")


async def test_keys_clicks_searches_and_growth():
    async with walking((100, 30)) as walk:
        await walk.show(recorded.finished(), "program")
        await walk.press("m O")
        pane = walk.find(IciclePane)
        view = pane.view

        async def clicked(name):
            await walk.pilot.click(view, offset=column(view, name) if name else (1, 0))
            return top(view)

        def cursor():
            return str(view.browse.graph.tree.name_of(view.browse.cursor))

        pane.show(kernels())
        await walk.shows("▶all", "│block_0", "│attention")
        assert await clicked("block_0") == "block_0"
        await walk.shows("all › step › block_0")
        assert [await clicked(name) for name in ("attention", "attention", "")] == ["attention", "block_0", "all"]

        pane.show(kernels())
        await walk.press("down down down right", "self 0 ns · total 3.00 s · 30 % of all · 38 % of block_0")
        await walk.press("up down", "38 % of block_0")  # the way down is the way that the cursor came
        tops = []
        for keys in ("up enter", "down enter escape", "escape"):
            await walk.press(keys)
            tops.append(top(view))
        assert tops == ["block_0", "block_0", "all"]

        pane.show(kernels())
        await walk.press("/ 'dot", "/dot: 3 frames, together 10.0 s, 99 % of all")
        found = []
        for keys in ("enter n", "n N N"):
            await walk.press(keys)
            found.append(cursor())
        assert found == ["dot.1", "dot.3"]
        await walk.through("""
            escape | !/dot
            / ( | not a regular expression
            escape
        """)

        pane.show(kernels())
        await walk.pause()
        await clicked("block_0")
        pane.show(graph(("other/x", 20.0), ("step/block_0/attention/dot.1", 6.0), ("step/block_0/mlp", 4.0)), same=True)
        await walk.shows("total 10.0 s")
        assert top(view) == "block_0"
        await walk.press("escape")
        assert top(view) == "all"

        pane.show(kernels())
        view.go(view.browse.graph.tree.find(["step", "norm", "small.99"]))
        await walk.pause()
        assert cursor() == "small.99", "it zooms until the frame is drawn"

        await walk.show(recorded.finished(), "program")
        await walk.through("down down down down down enter | @SourceLines")
