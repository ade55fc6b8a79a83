"""Where time went: that of a program by line, with its text if the file can be read here, under the loops that led to a
line, and over time with the tables; that of a compilation by stage, and by phases and passes as they nest.

A node's self time is the time that nothing inside it covers. The bars stand below the node that they are part of, one
after the other, as in a flame graph with one row a frame. A filter lists the nodes that it leaves.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

from textual.app import ComposeResult
from textual.content import Content

from jaxprof.analysis.kernels.measured import passes_in, stage_times
from jaxprof.analysis.programs.result import ProgramResult, states_by_column
from jaxprof.analysis.timeline.flame import PICOSECONDS, FlameFrame, line_stacks, program_flame, stacks_flame
from jaxprof.base.text import columns
from jaxprof.base.units import integer, percent, percent_or_less, seconds
from jaxprof.base.values import frozen
from jaxprof.events import PassTimes, SourceLocation
from jaxprof.report import Table
from jaxprof.report.program import TIME_LINE, parts_beside, time_line_rows
from jaxprof.tui.kit.canvas import Scale, ruler
from jaxprof.tui.kit.drawing import cell, hang, spark, stack_parts
from jaxprof.tui.kit.format import location_text
from jaxprof.tui.kit.guard import HIDDEN
from jaxprof.tui.kit.picture import Lines, ScrollPane
from jaxprof.tui.kit.plots import seconds_tick
from jaxprof.tui.kit.program_summary import state_style, state_title
from jaxprof.tui.kit.python_source import lines_around
from jaxprof.tui.kit.row_list import Heading, TreeView
from jaxprof.tui.kit.table_columns import Drawing, TableColumn, report_contents, table_lines

OPEN_FROM = 0.1
"""A node with at least this share of the whole is open at first."""
DEEPEST = 200


@frozen
class TimeNode:
    name: str
    seconds: float
    self_seconds: float
    count: int
    inside: tuple[TimeNode, ...]
    note: str
    """The stage of a pass, or the location of a line."""
    style: str = "$phase-compile"
    where: SourceLocation | None = None


Path = tuple[tuple[str, int], ...]
"""The names on the way to a node, each with its number among siblings of that name."""


def _walk(node: TimeNode, path: Path = (), at: float = 0.0) -> Iterator[tuple[Path, TimeNode, float]]:
    """Yield a node and all inside it, down to `DEEPEST`: each with its path, and the second its bar begins."""
    yield path, node, at
    named: Counter[str] = Counter()
    for inner in node.inside if len(path) < DEEPEST else ():
        named[inner.name] += 1
        yield from _walk(inner, (*path, (inner.name, named[inner.name])), at)
        at += inner.seconds


class TimeTree(TreeView[TimeNode], keys="time_tree"):
    """One row per node; a node with others inside can be opened. There may be several trees of the same times."""

    def __init__(self, what: str, note: str, *, id: str | None = None) -> None:
        """`what` is the title of the names, `note` that of the notes."""
        super().__init__(
            (
                TableColumn(what, self._tree_cell, 34, weight=4, most=64),
                TableColumn(note, lambda node: node.note, 12, weight=1, most=24, priority=1, style="$text-muted"),
                TableColumn("times", lambda node: integer(node.count) if node.count > 1 else "", 5, right=True,
                       style="$text-muted"),
                TableColumn("total", lambda node: seconds(node.seconds), 8, right=True),
                TableColumn("of all", lambda node: percent_or_less(node.seconds / self._whole) if self._whole else "",
                       7, right=True, style="$text-muted"),
                TableColumn("self", lambda node: seconds(node.self_seconds) if node.self_seconds else "", 8, right=True,
                       style="bold", gap=2),
                TableColumn("", self._bar, 6, weight=3),
            ),
            id=id,
        )  # fmt: skip
        self._trees: Mapping[str, TimeNode] = {}
        self._tree_name = ""
        self._of_path: dict[Path, TimeNode] = {}
        self._placed_at: dict[int, tuple[Path, float]] = {}
        """The path of each node, and where its bar begins, by the node's id."""

    def show(self, trees: Mapping[str, TimeNode], *, same: bool = False) -> None:
        """Show the first of these trees, by name; `same`: the tree in view has grown."""
        self._trees = trees
        self._show_tree(self._tree_name if same and self._tree_name in trees else next(iter(trees), ""), same=same)

    def _show_tree(self, name: str, *, same: bool = False) -> None:
        self._tree_name, root = name, self._trees.get(name)
        nodes = list(_walk(root)) if root is not None else []
        self._of_path = {path: node for path, node, _ in nodes}
        self._placed_at = {id(node): (path, at) for path, node, at in nodes}
        if not same or not self.opened:
            self.opened = {path for path, node in self._of_path.items() if node.seconds >= self._whole * OPEN_FROM}
            self.opened_at_first = frozenset(self.opened)
        self.show_rows({(): root} if root is not None else {})
        if not same:
            self.move_to(min(1, self.count - 1))  # on what took most: the row above is the whole
        self.refresh()

    def can_open(self, key: Hashable | None) -> bool:
        return key != () and super().can_open(key)  # the whole is never closed: nothing else would be left

    @property
    def _whole(self) -> float:
        return self._of_path[()].seconds if self._of_path else 0.0

    @property
    def order_in_words(self) -> str:
        return " · ".join(filter(None, (self._tree_name, seconds(self._whole) if self._whole else "")))

    def order_rows(self) -> dict[Hashable, TimeNode | Heading]:
        if not self._words:
            return super().order_rows()
        longest_first = sorted(self._of_path.items(), key=lambda row: -row[1].seconds)
        return {path: node for path, node in longest_first if self._has_words(node)}

    def inside(self, key: Hashable, row: TimeNode) -> Mapping[Hashable, TimeNode]:
        shown = () if self._words else row.inside
        return {self._placed_at[id(inner)][0]: inner for inner in shown if id(inner) in self._placed_at}

    def _tree_cell(self, node: TimeNode) -> Drawing:
        path, _ = self._placed_at[id(node)]

        def draw(width: int) -> Content:
            depth = 0 if self._words else len(path)
            indent = " " * min(depth, max(0, width // 3)) + self.mark_of(path) + " "
            return indent + cell(node.name, max(1, width - columns(indent)), "bold" if node.inside else "")

        return draw

    def haystack(self, row: TimeNode) -> str:
        return f"{row.name} {row.note} {row.where.text if row.where is not None else ''}"

    def _bar(self, node: TimeNode) -> Drawing:
        began = 0.0 if self._words else self._placed_at[id(node)][1]
        inside = node.seconds - node.self_seconds
        parts = ((began, " ", ""), (inside, "░", "$quiet"), (node.self_seconds, "█", node.style))
        return lambda width: stack_parts(parts, self._whole or 1.0, width)

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        return HIDDEN if action == "sort" and len(self._trees) < 2 else super().why_not(action, parameters)

    def action_sort(self) -> None:
        names = list(self._trees)
        self._show_tree(names[(names.index(self._tree_name) + 1) % len(names)])
        self.post_message(self.Sorted())

    def action_choose(self) -> None:
        row = self.current_row
        if row is not None and row.where is not None and row.where.line is not None:
            super().action_choose()
        else:
            self.action_open()


# -- of a program -------------------------------------------------------------------------------------------


def nested(program: ProgramResult) -> Mapping[str, TimeNode]:
    """Return the lines of a program under the loops and lines that led to them; empty if no time was recorded."""
    return _tree(
        program_flame(program).root, lambda frame: (frame.at.name, location_text(_where(frame), program.directory))
    )


MOST = 200
"""Most lines that are shown with their text."""


def by_line(program: ProgramResult) -> Mapping[str, TimeNode]:
    """Return the lines of a program, then the time without a known line; empty if no line was sampled. A line has its
    text if the file can be read here, else the call that took most of its time, and beside it the state that took most
    of its time, with its share if there are several, which then are inside."""
    stacks = line_stacks(program)
    of_lines = []
    for stack in stacks:  # its line and its state; lines with one location have one name, whatever they call
        *_, line, state = stack.frames
        frames = (line._replace(name="") if line.line is not None else line, state)
        of_lines.append(replace(stack, frames=frames))
    root = stacks_flame(of_lines, "sampled").root
    shown = {id(frame) for frame in root.inside[:MOST]}
    longest_last = [line for line in reversed(program.lines) if line.call]
    calls = {(line.location.file, line.location.line): line.call for line in longest_last}

    def words(frame: FlameFrame) -> tuple[str, str]:
        where = _where(frame)
        if frame.above is not root or where is None:
            return frame.at.name, ""
        text = lines_around(where, program.run.sources, 0) if id(frame) in shown else ()
        source = (text[0][1].strip() if text else "") or calls.get((where.file, where.line), "")
        longest = frame.inside[0]
        share = f" {percent(longest.total / frame.total)}" if len(frame.inside) > 1 else ""
        return f"{location_text(where, program.directory)}  {source}".rstrip(), state_title(_state(longest)) + share

    trees = _tree(root, words)
    lines = sorted((line for tree in trees.values() for line in tree.inside), key=lambda line: line.where is None)
    inside = tuple(
        line if len(line.inside) > 1 else replace(line.inside[0], name=line.name, note=line.note) for line in lines
    )
    return {name: replace(tree, inside=inside) for name, tree in trees.items() if program.lines}


def _where(frame: FlameFrame) -> SourceLocation | None:
    return SourceLocation(frame.at.file, frame.at.line) if frame.at.file else None


def _state(frame: FlameFrame) -> str:
    return frame.at.name.strip("[]").replace(" ", "_")


def _tree(root: FlameFrame, words: Callable[[FlameFrame], tuple[str, str]]) -> Mapping[str, TimeNode]:
    def node(frame: FlameFrame) -> TimeNode:
        took, own, style = frame.total / PICOSECONDS, frame.own / PICOSECONDS, state_style(_state(frame))
        inside, (name, note) = tuple(node(inner) for inner in frame.inside if inner.total), words(frame)
        return TimeNode(name, took, own, frame.count, inside, note, style, _where(frame))

    return {"": node(root)} if root.total else {}


# -- of a compilation -----------------------------------------------------------------------------------------


def passes(tree: PassTimes) -> Mapping[str, TimeNode]:
    # The stages have the self times of their phases and passes, which over several threads are more than it took.
    found = sorted(passes_in(tree), key=lambda node: -node.self_seconds)
    stages = []
    for stage in stage_times(tree):
        inside = tuple(
            TimeNode(node.name, node.self_seconds, node.self_seconds, node.count, (), stage.stage)
            for node in found
            if node.stage == stage.stage and node.self_seconds > 0
        )
        stages.append(TimeNode(stage.stage, stage.seconds, 0.0, 1, inside, ""))
    whole = sum(stage.seconds for stage in stages)
    by_stage = TimeNode("all stages of all threads", whole, 0.0, 1, tuple(stages), "")
    return {"by stage": by_stage, "nested": _passes(tree)}


def _passes(node: PassTimes, depth: int = 0) -> TimeNode:
    inside = tuple(_passes(child, depth + 1) for child in node.children) if depth < DEEPEST else ()
    return TimeNode(node.name, node.seconds, node.self_seconds, node.count, inside, node.stage)


# -- over time ------------------------------------------------------------------------------------------------


class TimePane(ScrollPane):
    """A lane over time for each state of a program, with its sum, then the other tables."""

    _shares: tuple[object, Sequence[Mapping[str, float]]] = (None, ())
    """What the lanes depend on, and the share of each state in each of their columns."""

    def compose(self) -> ComposeResult:
        yield Lines(id="how-to-capture")
        yield Lines(id="times")

    def show(self, result: ProgramResult, words: str) -> None:
        """Show the time of a program. `words` say how to get the timeline of its device, if there is none."""
        how = self.query_one("#how-to-capture", Lines)
        how.show(lambda width: [*hang(Content(""), words, width, "$text-muted"), Content("")] if words else ())
        self.query_one("#times", Lines).show(lambda width: time_lines(result, width, self._shares_of))

    def _shares_of(self, result: ProgramResult, count: int) -> Sequence[Mapping[str, float]]:
        """Return the share of each state in `count` columns. Hours have many windows to add up: that is done again each
        time the wall time has grown by a fiftieth."""
        begin, wall = result.began_seconds, result.wall_seconds
        key = (id(result.run), result.ended, count, int(50 * math.log1p(wall)))
        if key != self._shares[0]:
            self._shares = (key, states_by_column(result.sample_windows, begin, begin + wall, count) if wall else ())
        return self._shares[1]


Shares = Callable[["ProgramResult", int], Sequence[Mapping[str, float]]]
"""Function that returns the share of each state in some columns of a program's time."""


def time_lines(result: ProgramResult, width: int, shares_of: Shares) -> list[Content]:
    """Return the time in each state and their sum, each with its lane over time, then the other tables."""
    rows = time_line_rows(result)
    more = [line for part in parts_beside(result) for line in report_contents(("", *part), width)]
    if not rows:
        return [Content.styled("No time was recorded.", "$text-muted"), *more]
    figures = list(table_lines(Table((*TIME_LINE[1:4], *TIME_LINE[5:]), rows), width))
    beside = max(line.cell_length for line in figures) + 2
    room = max(0, width - beside - 1)
    shares = shares_of(result, room)
    lanes = [
        spark([column.get(share.state) for column in shares], room, state_style(share.state))
        for share in result.timeline
        if share.seconds > 0
    ]
    axis = ruler(Scale(0.0, result.wall_seconds), room, lambda tick, _: seconds_tick(tick)) if shares else ""
    right = [Content.styled(axis, "$quiet"), *lanes, Content("")]
    return [
        *(line.pad_right(beside - line.cell_length) + lane for line, lane in zip(figures, right, strict=True)),
        *more,
    ]
