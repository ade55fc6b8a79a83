"""Where time went: that of a program by line, with its text if the file can be read here, under the loops that led to a
line, and over time with the tables; that of a compilation by stage, and by phases and passes as they nest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.analysis.flame import PICOSECONDS, StackFrame, line_stacks, program_flame, stacks_flame
from jaxprof.analysis.measured import passes_in, stage_times
from jaxprof.analysis.programs.result import states_by_column
from jaxprof.events import SourceLocation
from jaxprof.report.program import TIME_LINE, parts_beside, time_line_rows
from jaxprof.report.renderers import Table
from jaxprof.tui.kit.canvas import Scale, ruler
from jaxprof.tui.kit.drawing import hang, spark
from jaxprof.tui.kit.format import place_text
from jaxprof.tui.kit.picture import Lines, ScrollPane
from jaxprof.tui.kit.plots import seconds_tick
from jaxprof.tui.kit.program_summary import state_style, state_title
from jaxprof.tui.kit.python_source import lines_around
from jaxprof.tui.kit.table_columns import report_contents, table_lines
from jaxprof.tui.kit.time_tree import DEEPEST, TimeNode
from jaxprof.units import percent

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.analysis.flame import FlameFrame
    from jaxprof.analysis.programs.result import ProgramResult
    from jaxprof.events import PassTimes


def nested(program: ProgramResult) -> Mapping[str, TimeNode]:
    """Return the lines of a program under the loops and lines that led to them; empty if no time was recorded."""
    return _tree(
        program_flame(program).root, lambda frame: (frame.at.name, place_text(_where(frame), program.directory))
    )


MOST = 200
"""Most lines that are shown with their text."""


def by_line(program: ProgramResult) -> Mapping[str, TimeNode]:
    """Return the lines of a program, then the time without a known line; empty if no line was sampled.

    A line has its text if the file can be read here, else the call that took most of its time, and beside it the state
    that took most of its time, with its share if there are several, which then are inside.
    """
    stacks = line_stacks(program)
    of_lines = [replace(stack, frames=_line_and_state(stack.frames)) for stack in stacks]
    root = stacks_flame(of_lines, "sampled", "line").root
    shown = {id(frame) for frame in root.inside[:MOST]}
    longest_last = [line for line in reversed(program.lines) if line.call]
    calls = {(line.place.file, line.place.line): line.call for line in longest_last}

    def words(frame: FlameFrame) -> tuple[str, str]:
        where = _where(frame)
        if frame.above is not root or where is None:
            return frame.at.name, ""
        text = lines_around(where, 0) if id(frame) in shown else ()
        source = (text[0][1].strip() if text else "") or calls.get((where.file, where.line), "")
        longest = frame.inside[0]
        share = f" {percent(longest.total / frame.total)}" if len(frame.inside) > 1 else ""
        return f"{place_text(where, program.directory)}  {source}".rstrip(), state_title(_state(longest)) + share

    def of_one_state(line: TimeNode) -> TimeNode:
        (state, *more) = line.inside
        return line if more else replace(state, name=line.name, note=line.note)

    trees = _tree(root, words)
    lines = sorted((line for tree in trees.values() for line in tree.inside), key=lambda line: line.where is None)
    inside = tuple(map(of_one_state, lines))
    return {name: replace(tree, inside=inside) for name, tree in trees.items() if program.lines}


def _line_and_state(frames: tuple[StackFrame, ...]) -> tuple[StackFrame, ...]:
    """Return the line and the state of a stack; lines with one place have one name, whatever they call."""
    *_, line, state = frames
    return (line._replace(name="") if line.line is not None else line, state)


def _where(frame: FlameFrame) -> SourceLocation | None:
    return SourceLocation(frame.at.file, frame.at.line) if frame.at.file else None


def _state(frame: FlameFrame) -> str:
    return frame.at.name.strip("[]").replace(" ", "_")


def _tree(root: FlameFrame, words: Callable[[FlameFrame], tuple[str, str]]) -> Mapping[str, TimeNode]:
    """Return the tree of a graph, whose frames have these names and notes."""

    def node(frame: FlameFrame) -> TimeNode:
        took, own, style = frame.total / PICOSECONDS, frame.own / PICOSECONDS, state_style(_state(frame))
        inside, (name, note) = tuple(node(inner) for inner in frame.inside if inner.total), words(frame)
        return TimeNode(name, took, own, frame.count, inside, note, style, _where(frame))

    return {"": node(root)} if root.total else {}


# -- of a compilation -----------------------------------------------------------------------------------------


def passes(tree: PassTimes) -> Mapping[str, TimeNode]:
    """Return the phases and passes of a compile by stage, and as they nest."""
    return {"by stage": _stages(tree), "nested": _passes(tree)}


def _passes(node: PassTimes, depth: int = 0) -> TimeNode:
    """Return a phase or pass with those inside it."""
    inside = tuple(_passes(child, depth + 1) for child in node.children) if depth < DEEPEST else ()
    return TimeNode(node.name, node.seconds, node.self_seconds, node.count, inside, node.stage)


def _stages(tree: PassTimes) -> TimeNode:
    """Return the stages, each with the self times of its phases and passes, the longest first. A self time is the time
    that nothing inside covers, so that stages add up to the compilation; with several threads, to more than it took."""
    found = sorted(passes_in(tree), key=lambda node: -node.self_seconds)
    stages = []
    for stage in stage_times(tree):
        inside = tuple(
            TimeNode(node.name, node.self_seconds, node.self_seconds, node.count, (), stage.stage)
            for node in found
            if node.stage == stage.stage and node.self_seconds > 0
        )
        stages.append(TimeNode(stage.stage, stage.seconds, 0.0, 1, inside, ""))
    return TimeNode("all stages of all threads", sum(stage.seconds for stage in stages), 0.0, 1, tuple(stages), "")


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
    axis = ruler(Scale(0.0, result.wall_seconds), room, lambda tick, _: seconds_tick(tick), "╷") if shares else ""
    right = [Content.styled(axis, "$quiet"), *lanes, Content("")]
    return [
        *(line.pad_right(beside - line.cell_length) + lane for line, lane in zip(figures, right, strict=True)),
        *more,
    ]
