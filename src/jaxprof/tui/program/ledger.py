"""The compile ledger: a row for each function with the cost of its compilations; opened, a row for each compilation.

The most expensive function comes first; `s` changes the order. The filter searches functions, locations and reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial

from textual.content import Content

from jaxprof.analysis.programs.functions import FunctionCompiles, ReasonCount, row_seconds
from jaxprof.analysis.programs.result import ProgramResult
from jaxprof.analysis.programs.sentences import compile_reason, first_change
from jaxprof.base.text import columns, safe
from jaxprof.base.units import integer, percent, seconds
from jaxprof.events import Compiled
from jaxprof.facts.programs import COMPILES, ProgramRow
from jaxprof.facts.units import TRUTH
from jaxprof.report.program_words import why_again, words
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.canvas import Scale, ruler
from jaxprof.tui.kit.dialogs import TextDialog
from jaxprof.tui.kit.drawing import bar, cell, hang, join_styled, spark
from jaxprof.tui.kit.format import location_in_full, location_text
from jaxprof.tui.kit.plots import seconds_tick
from jaxprof.tui.kit.python_source import SourceLines
from jaxprof.tui.kit.row_list import TreeView
from jaxprof.tui.kit.table_columns import Cell, Drawing, TableColumn, either, in_order

LABEL = 18


class CompilationDialog(TextDialog, keys="compilation"):
    """The facts of a compilation; Enter shows the line that it was called from."""

    def __init__(self, row: ProgramRow) -> None:
        keys = f"Enter shows the line, {key_of('reader.copy')} copies"
        super().__init__(f"Compilation of {row.item.function}", partial(compilation_lines, row), keys)
        self._row = row

    def action_source(self) -> None:
        if where := self._row.item.called_from or self._row.item.defined_at:
            self.app.push_screen(SourceLines(where, self._row.program.run.sources))


def compilation_lines(row: ProgramRow, width: int) -> list[Content]:
    """Return what is known of a compilation, wrapped to `width`: its figures, then its lists, such as its arguments."""
    known = [(fact, value) for fact in COMPILES if fact.key not in _LEFT_OUT and (value := fact.reader()(row))]
    lines = [Content.styled("Arguments unknown.", "$text-muted")] * (not row.item.signature)
    for fact, _ in known:
        if not fact.inside:
            label = Content.styled((fact.title or words(fact.key)).ljust(LABEL), "$primary")
            lines += hang(label, fact.text(row), width, "bold" if fact.key == "reason" else "")
    for fact, value in known:
        if fact.inside:
            lines += [Content(""), Content.styled(words(fact.key), "bold $primary")]
            for each in value:  # its name, its type, and what is true of it
                parts = [part for part in fact.inside if part.applies is None or part.applies(each)]
                parts = [part for part in parts if part.reader()(each)]
                texts = (words(part.key) if part.unit is TRUTH else part.text(each) for part in parts)
                lines += hang(Content("  "), "  ".join(texts), width)
    return lines


_LEFT_OUT = ("function", "called_in")
"""Facts of a compilation that stand in the title, and beside the line."""


LedgerRow = FunctionCompiles | Compiled


def compile_strip(result: ProgramResult, width: int) -> list[Content]:
    """Return the compilations over the wall time: in each column a mark as high as the seconds of its compilations are
    to those of the largest column, in amber where a function of the user's was compiled again. The seconds of a row are
    spread over the time that it covers. Nothing where the compilations fall into one column."""
    label = cell(" compiled ", 10, "$quiet")
    room = width - label.cell_length
    if room < 1 or not result.wall_seconds:
        return []
    took, styles = [0.0] * room, [""] * room
    for row in (row for function in result.functions for row in function.rows if row.began_seconds):
        begin = row.began_seconds - result.began_seconds
        end = begin + row_seconds(row) if row.count == 1 else (row.monotonic_seconds or 0.0) - result.began_seconds
        first, last = (min(room - 1, max(0, int(at / result.wall_seconds * room))) for at in (begin, max(begin, end)))
        again = _reason_style(row) == "$warning" and _name_style(row) == "bold"
        for column in range(first, last + 1):
            took[column] += row_seconds(row) / (last + 1 - first)
            styles[column] = "$warning" if again else styles[column] or "$bar"
    if sum(map(bool, styles)) < 2:
        return []
    most = max(took) or 1.0
    heights = spark([each / most if style else None for each, style in zip(took, styles, strict=True)], room).plain
    axis = ruler(Scale(0.0, result.wall_seconds), room, lambda tick, _: seconds_tick(tick))
    return [
        label + join_styled(zip(heights, styles, strict=True)),
        Content.styled(" " * label.cell_length + axis, "$quiet"),
    ]


def _reasons(function: FunctionCompiles) -> Sequence[ReasonCount]:
    """Return why a function was compiled again; only that it was compiled for the first time if it was not."""
    return [reason for reason in function.reasons if reason.code != "first"] or function.reasons


class LedgerList(TreeView[LedgerRow], keys="ledger"):
    """Functions and, inside the open ones, their compilations. Reasons that do not fit in a row stand below it."""

    UNFOLDS = True
    UNSORTED = "first compiled"
    _result: ProgramResult

    def __init__(self) -> None:
        super().__init__(
            (
                TableColumn("function", self._function, 24, weight=1, most=43,
                            sort=lambda row: (row.function.casefold(), _by_time(row))),
                TableColumn("times",
                            lambda row: "" if isinstance(row, Compiled) and row.count == 1 else integer(row.count),
                            5, right=True, sort=lambda row: -row.count),
                TableColumn("time", lambda row: seconds(row_seconds(row)) if isinstance(row, Compiled) else (
                    seconds(row.seconds), "bold"), 9, right=True, sort=_by_time),
                TableColumn("of all", _of_function(lambda row: percent(self._result.of_wall(row.seconds))), 7,
                            right=True, style="$text-muted", gap=2),
                TableColumn("", _of_function(self._bar), 12, priority=2),
                TableColumn("reason", _reason, 32, weight=3),
            ),
            order="time",
            id="ledger",
        )  # fmt: skip

    def show(self, result: ProgramResult) -> None:
        self._result = result
        at_top = self.cursor == 0 and not self.opened
        ordered = in_order(result.functions, lambda function: function.rows[0].began_seconds if function.rows else 0.0)
        self.show_rows({_key(function): function for function in ordered})
        if at_top:
            self.move_to(0)

    def forget(self) -> None:
        self.opened.clear()

    # -- hooks ------------------------------------------------------------------------------------------------

    def inside(self, key: Hashable, row: LedgerRow) -> Mapping[Hashable, LedgerRow]:
        rows = () if isinstance(row, Compiled) else row.rows
        return {("row", key, index): compiled for index, compiled in enumerate(rows)}

    def haystack(self, row: LedgerRow) -> str:
        if isinstance(row, Compiled):
            return ""
        texts = [row.function, location_in_full(row.defined_at), _whole_reason(row)]
        return " ".join(
            [*texts, *(f"{location_in_full(one.called_from)} {compile_reason(one)}" for one in row.rows[:64])]
        )

    # -- cells ------------------------------------------------------------------------------------------------

    def _function(self, row: LedgerRow) -> Drawing:
        """Return the name of a function, with its location if there is room; for a compilation its caller."""
        if isinstance(row, Compiled):
            where = location_text(row.called_from, self._result.directory)
            if not where:
                where = "op by op" if row.op_by_op else "in a library" if row.library else "unknown location"
            return lambda width: cell("", 4) + cell(where, max(1, width - 4))
        name = Content.assemble(f"{self.mark_of(_key(row))} ", (safe(row.function), _name_style(row)), "  ")
        at = location_text(row.defined_at or row.called_from, self._result.directory)

        def draw(width: int) -> Content:
            room = width - name.cell_length
            return name + cell(at, room, "$quiet") if room >= 10 else name

        return draw

    def _bar(self, row: FunctionCompiles) -> Drawing:
        return lambda width: bar(self._result.of_wall(row.seconds), width, "$phase-compile")

    def below(self, index: int, width: int) -> list[Content]:
        row, last = self.row(self.row_key(index)), self._layout_for(width)[-1]
        room = last.width if last.column.title == "reason" else 0
        if row is None or columns(safe(_whole_reason(row))) <= room:
            return []
        style = _reason_style(row)
        if isinstance(row, Compiled):
            return hang(Content(" " * 6), _whole_reason(row), width - 1, style)
        lines: list[Content] = []
        for reason in _reasons(row):
            lines += hang(Content.styled(f"    {integer(reason.count)} × ", "$quiet"), reason.text, width - 1, style)
        return lines

    # -- keys -------------------------------------------------------------------------------------------------

    def action_choose(self) -> None:
        if isinstance(self.current_row, Compiled):
            super().action_choose()
        else:
            self.action_open()


def _key(function: FunctionCompiles) -> Hashable:
    return function.function, location_in_full(function.defined_at)


def _of_function(of: Callable[[FunctionCompiles], Cell]) -> Callable[[LedgerRow], Cell]:
    return lambda row: "" if isinstance(row, Compiled) else of(row)


def _by_time(row: LedgerRow) -> object:
    return -(row_seconds(row) if isinstance(row, Compiled) else row.seconds)


def _reason(row: LedgerRow) -> Cell:
    """Return the whole reasons, or as much as there is room for; the lines below the row then have all of them."""
    short = first_change(row) if isinstance(row, Compiled) else ""
    return either(_whole_reason(row), short or _whole_reason(row), style=_reason_style(row))


def _whole_reason(row: LedgerRow) -> str:
    """Return the reasons in words, such as `shape of x varies: f32[1..412] ×41`."""
    if not isinstance(row, Compiled):
        counted = ((reason.text, f" ×{integer(reason.count)}" * (reason.count > 1)) for reason in _reasons(row))
        return "; ".join(text + times for text, times in counted)
    saved = f", saved {seconds(row.saved_seconds)}" if row.saved_seconds is not None else ""
    return f"[from the cache{saved}] " * (row.cache == "hit") + why_again(row)


def _reason_style(row: LedgerRow) -> str:
    """Return amber for what was compiled again, unless a library did it."""
    if isinstance(row, Compiled):
        return "$text-muted" if row.reason_code == "first" else "$warning"
    again = any(reason.code != "first" for reason in row.reasons)
    return "$warning" if again and _name_style(row) == "bold" else "$text-muted"


def _name_style(row: LedgerRow) -> str:
    return "$text-muted" if row.library or row.op_by_op else "bold"
