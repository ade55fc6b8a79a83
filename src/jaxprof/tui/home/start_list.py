"""The list of the Start screen: what runs, the programs of this folder, the kept sessions and jobs, and the examples,
which are the workloads of the catalogue. Who has no program and no session yet gets the ways to measure one.

The first frame has the ways and the examples; a thread adds the others. No program is imported to find it, and none
starts without its dialog: a file that happens to lie in the folder is shown before it runs.
"""

from __future__ import annotations

import shlex
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from textual.content import Content
from textual.message import Message

from jaxprof.base.text import REDACTED, safe
from jaxprof.base.units import percent, seconds
from jaxprof.base.values import frozen
from jaxprof.events.base import with_failures
from jaxprof.tui.keys import ACTIONS, key_of
from jaxprof.tui.kit.drawing import cell, mark, parts_bar, wrap_content
from jaxprof.tui.kit.guard import HIDDEN, Hidden
from jaxprof.tui.kit.row_list import Heading, RowList
from jaxprof.tui.kit.table_columns import Cell, Span, TableColumn, either

if TYPE_CHECKING:
    from jaxprof.runner.program import ProgramCommand
    from jaxprof.session import Entry
    from jaxprof.tui.home.plan_options import HomeOptions
    from jaxprof.workloads.model import WorkloadInfo

MOST_HERE = 5
"""Most programs of this folder listed, until the user asks for all."""
_SOURCE_SHOWN = 4_000
"""Characters of a program's source that the preview shows."""
_NAME = 19
"""Columns of the name of a workload, before its title."""


@frozen
class StartRow:
    """A line: a session or job, a program, a workload, or a way to measure something else."""

    title: str
    note: str
    explains: str = ""
    """What Enter does, for the preview; a workload's description. A kept session has its summary there."""
    action: str = ""
    """The action that Enter runs; empty for a program, a session and a workload."""
    program: ProgramCommand | None = None
    source: str = ""
    entry: Entry | None = None
    trouble: str = ""
    """What is wrong with that session; empty if nothing is."""
    asks: str = ""
    """A function with the specs of its arguments, as the dialog asks for them."""
    workload: str = ""

    @property
    def key(self) -> Hashable:
        if self.entry is not None:
            return self.entry.path
        return self.workload or (self.action, self.asks or self.title)

    @property
    def verb(self) -> tuple[str, str]:
        """What Enter does, or else the key that does the same; and the style."""
        runs = self.program is not None or self.workload or self.asks
        word = "open" if self.entry is not None else "run" if runs else ""
        name = self.action if "." in self.action else f"home.{self.action}"
        key = key_of(name) if name in ACTIONS else ""
        return (word, "$text-muted") if word else (key, "bold $footer-key-foreground")


WAYS = (
    StartRow(
        "Profile a script…", "",
        "Runs a program of yours unchanged, as python does, and says where its time goes: the slowest lines, what was "
        "compiled, why it was compiled again, copies, memory, and what to change.",
        "program",
    ),
    StartRow(
        "Measure a function…", "",
        "Times a function of yours phase by phase (trace, lower, compile, first run, steady run) on each device, and "
        "its NumPy twin if it has one: is it faster, and from how many calls on?",
        "own",
    ),
    StartRow(
        "Open a session…", "",
        "A session of jaxprof, also from another machine; a profile that JAX, TensorBoard or a trainer wrote; or HLO: "
        "text, a proto, the folder of a dump.",
        "open_file",
    ),
    StartRow(
        "Keys and screens", "",
        "For each screen: what it answers, and its key; then all keys of this one.",
        "app.help",
    ),
)  # fmt: skip
_OLDER = StartRow("Older sessions…", "", "Lists all kept sessions and jobs.", "list_all")
_MORE_PROGRAMS = StartRow(
    "More programs here…", "", "Lists all programs of this folder that import jax, and all kept sessions.", "list_all"
)
_EXAMPLES = Heading(" Examples", "bold $primary")


def own_rows(
    entries: Iterable[Entry], folder: Path, *, more: bool = False, most: int | None = MOST_HERE
) -> list[StartRow]:
    """Return the sessions that are recorded now, at most `most` programs of this folder and functions that were
    measured, each with the arguments of the last time, then the other sessions; without any of them, the ways to
    measure. `more`: there are older sessions, too. Reads files: for threads only."""
    from jaxprof.workloads.scripts import scripts_with_jax

    kept = list(entries)
    first = [_session_row(entry) for entry in kept if entry.running]
    others = [_session_row(entry) for entry in kept if not entry.running]
    programs = scripts_with_jax(folder)
    rest = [_MORE_PROGRAMS] if most is not None and len(programs) > most else []
    here = []
    for path in programs[:most]:
        from jaxprof.runner.program import ProgramCommand  # not needed for the first frame

        explains = (
            f"{path.name} imports jax. Enter asks for its arguments, Enter again runs it unchanged and says where its "
            "time goes: the slowest lines, what was compiled and why again, copies, memory, and what to change."
        )
        source = ""
        with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
            source = file.read(_SOURCE_SHOWN)
        last = next((entry for entry in kept if path.name in entry.workloads and entry.job is None), None)
        arguments = arguments_of(last) if last is not None else ()
        program = ProgramCommand(path=path.name, arguments=arguments, directory=str(path.parent))
        here.append(StartRow(shlex.join((path.name, *arguments)), "", explains, program=program, source=source))
    # Functions of files that are still here, those measured last first.
    functions = []
    explains = "Enter asks whether to import it, with the arguments of the last time; then it can be measured again."
    specs = (plan.spec for entry in kept for plan in entry.planned if plan.spec.how != "program")
    seen = {spec.target: spec for spec in reversed([*specs]) if spec.target.rpartition(":")[0].endswith(".py")}
    for target, spec in reversed(seen.items()):
        written_in, _, name = target.rpartition(":")
        if REDACTED not in " ".join(spec.arguments) and Path(written_in).is_file():
            asks = " ".join((target, *spec.arguments))
            functions.append(StartRow(name, Path(written_in).name, f"{written_in}. {explains}", asks=asks))
    return [*first, *functions[:most], *here, *rest, *others, *([_OLDER] if more else [])] or list(WAYS)


def arguments_of(entry: Entry) -> tuple[str, ...]:
    """Return the arguments with which the program of a session was started; empty if it was none, and where one was
    redacted."""
    words = entry.header.command if entry.header is not None and entry.planned[:1] else []
    program = entry.planned[0].spec if words else None
    if program is None or program.how != "program" or REDACTED in " ".join(words):
        return ()
    names = [Path(word).name for word in words]
    return tuple(words[names.index(program.workload) + 1 :]) if program.workload in names else ()


def _session_row(entry: Entry) -> StartRow:
    from jaxprof.tui.kit.format import ago  # not needed for the first frame

    note, trouble = ago(entry.modified_seconds), ""
    if entry.problem:
        trouble = "unreadable"
    elif entry.running:
        note = "● running"
    elif entry.job is not None and entry.complete and entry.job.missing:
        trouble = f"{entry.job.missing} missing"
    elif entry.state != "complete" and not entry.live:  # whoever has run it may add to it
        trouble = entry.state
    else:
        trouble = with_failures("", (run.status for run in entry.closed)).removeprefix(", ")
    title = " ".join((", ".join(entry.workloads) or entry.name, shlex.join(arguments_of(entry)))).rstrip()
    return StartRow(title, note, entry=entry, trouble=trouble)


def _took(row: StartRow) -> str:
    times = [run.wall_seconds for run in row.entry.closed if run.wall_seconds] if row.entry is not None else []
    return seconds(sum(times)) if times else ""


def _spent(row: StartRow) -> Mapping[str, float]:
    """Return the seconds of a recorded program by state; empty for another row."""
    closed = row.entry.closed if row.entry is not None and row.entry.job is None else ()
    return next((run.spent for run in closed if run.spent), {})


def _bar(row: StartRow) -> Cell:
    spent = _spent(row)
    if not spent:
        return ""
    from jaxprof.tui.kit.program_summary import in_order, state_style  # not needed for the first frame

    parts = [(took, state_style(state)) for state, took in in_order(spent)]
    return lambda width: parts_bar(parts, sum(spent.values()), width)


def _most(row: StartRow) -> str:
    """Return the largest state of a program, `compile 79 %`; for measured runs, the last median."""
    if spent := _spent(row):
        from jaxprof.tui.kit.program_summary import state_title  # not needed for the first frame

        state = max(spent, key=lambda each: spent[each])
        return f"{state_title(state)} {percent(spent[state] / sum(spent.values()))}"
    closed = row.entry.closed if row.entry is not None else ()
    last = next((run for run in reversed(closed) if run.median_seconds is not None), None)
    return f"{last.variant} {seconds(last.median_seconds)}" if last is not None else ""


def _note(row: StartRow) -> Cell:
    """Return the note of a row; where there is no room for the words of a trouble, a mark stands for them."""
    if row.workload:
        return ""
    forms = (f"{row.trouble}, {row.note}", f"✗ {row.note}") if row.trouble else (row.note,)
    return either(*forms, style="$text-muted", right=True)


class StartList(RowList[StartRow], keys="start"):
    STAYS_ON_TOP = True

    class Marked(Message):
        """The user has marked or unmarked a row."""

    def __init__(self, infos: Mapping[str, WorkloadInfo | None], choices: HomeOptions) -> None:
        super().__init__(
            (
                TableColumn("", lambda row: mark(True) if row.key in self.marked else row.verb, 4),
                TableColumn("title", self._title, 14, weight=1),
                TableColumn("took", _took, 6, most=10, fits=True, right=True, priority=1),
                TableColumn("bar", _bar, 8, priority=2),
                TableColumn("most", _most, 14, style="$text-muted", priority=2),
                TableColumn("note", _note, 4, most=30, fits=True),
            ),
            titles=False,
            id="start",
        )  # fmt: skip
        self._infos, self._choices = infos, choices
        self._own: Sequence[StartRow] = WAYS
        self.show()

    def show(self, own: Sequence[StartRow] | None = None) -> None:
        """Show these rows of the user's own, and the workloads. A cursor on the first row stays there."""
        self._own = self._own if own is None else own
        examples: dict[Hashable, StartRow | Heading] = {"examples": _EXAMPLES}
        rows: dict[Hashable, StartRow | Heading] = {}
        for name, info in self._infos.items():
            if info is None:  # its description has not been read yet
                examples[name] = StartRow(name, "", workload=name)
            else:
                is_own = info.origin != "built in"
                title = f"yours · {info.title}" if is_own else info.title
                row = StartRow(name, title, f"{info.description} {info.origin}", workload=name)
                (rows if is_own else examples)[name] = row
        rows |= {row.key: row for row in self._own} | examples
        self.show_rows(rows)
        self.marked = [key for key in self.marked if key in rows]

    def haystack(self, row: StartRow) -> str:
        entry = row.entry
        if entry is None:
            return f"{row.title} {row.note} {row.explains}" if row.workload else row.title
        hosts = entry.job.hosts if entry.job is not None else [entry.header.host] if entry.header is not None else []
        return " ".join([row.title, entry.name, *hosts, *(plan.spec.device for plan in entry.planned)])

    def rows_left_by_filter(self) -> dict[Hashable, StartRow | Heading]:
        """Return the rows that the filter leaves, those first whose titles begin so, then those whose titles have the
        words: Enter chooses the first one."""

        def rank(row: StartRow | Heading) -> tuple[bool, bool]:
            title, text = "" if isinstance(row, Heading) else row.title.casefold(), " ".join(self._words)
            return not title.startswith(text), text not in title

        left = super().rows_left_by_filter()
        return dict(sorted(left.items(), key=lambda pair: rank(pair[1]))) if self._words else left

    def set_filter(self, text: str) -> None:
        super().set_filter(text)
        if self._words:
            self.move_to(0)

    def _title(self, row: StartRow) -> Cell:
        if not row.workload:
            return safe(row.title) if row.note else Span(safe(row.title))
        star = "*" if self._choices.is_changed(row.workload) else " "
        name = Content.assemble(cell(row.title, _NAME), (star, "bold $accent"), " ")
        return Span(lambda width: name + cell(row.note, max(0, width - _NAME - 2), "$text-muted"))

    @property
    def entry(self) -> Entry | None:
        """The kept session or job under the cursor; None if the row is another one."""
        return self.current_row.entry if self.current_row is not None else None

    def action_mark(self) -> None:
        self.toggle(self.current)
        self.action_move(1)
        self.post_message(self.Marked())

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        if action == "copy_path" and self.entry is None:
            return HIDDEN
        row = self.current_row
        if action == "mark" and row is not None:
            if row.entry is not None and row.entry.job is not None:
                return Hidden("a job is not compared; jaxprof compare compares the sessions of two processes")
            if row.entry is None and not row.workload:
                words = "marks a session, of a program too once it has run, or a workload"
                return Hidden(f"{key_of('start.mark')} {words}; {key_of('home.compare')} compares two")
        return super().why_not(action, parameters)

    def action_copy_path(self) -> None:
        if self.entry is not None:
            self.copy(str(self.entry.path))


def explanation_lines(row: StartRow, width: int) -> list[Content]:
    """Return what Enter does with a program or a way to measure, with the beginning of the program."""
    lines = wrap_content(Content.styled(safe(row.explains), "$text-muted"), width)
    if row.source:
        from jaxprof.tui.kit.python_source import highlight_python  # not needed for the first frame

        lines += [Content(""), *highlight_python(row.source).wrap(width)]
    return lines
