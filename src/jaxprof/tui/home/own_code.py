"""The list `Your code` of the Start screen: running programs, programs of this folder, the kept sessions and jobs, and
the ways to measure anything else.

The first frame has the ways; a thread adds the programs. No program is imported to find it, and none starts without its
dialog: a file that happens to lie in the folder is shown before it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.text import safe, shorten
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.drawing import mark
from jaxprof.tui.kit.format import ago
from jaxprof.tui.kit.guard import HIDDEN, Hidden
from jaxprof.tui.kit.table_columns import Span, TableColumn
from jaxprof.tui.kit.table_view import TableView

if TYPE_CHECKING:
    from jaxprof.session.log import Entry
    from jaxprof.tui.kit.script_dialog import ScriptForm
    from jaxprof.tui.kit.table_columns import Cell

MOST_HERE = 5
"""Most programs of this folder listed."""
_SOURCE_SHOWN = 4_000
"""Characters of a program's source that the pane beside the list shows."""
TOUR = "app.help"
"""Name of the action, and the id of its key."""


@dataclass(frozen=True, slots=True)
class OwnRow:
    """A line: one of your programs, or a way to measure something else."""

    title: str
    note: str
    explains: str = ""
    """What Enter does, for the pane beside the list; a kept session has its summary there."""
    action: str = ""
    """The action of the screen that Enter runs; empty for a program and a session."""
    binding: str = ""
    """Id of the key that does the same as Enter; empty if there is none."""
    form: ScriptForm | None = None
    """The program that Enter offers to run; None if the row is no program."""
    source: str = ""
    """Beginning of the program's source."""
    entry: Entry | None = None
    """The kept session or job that Enter opens."""

    @property
    def path(self) -> Path | None:
        """Where the session or job is; None for another row."""
        return self.entry.path if self.entry is not None else None

    @property
    def key(self) -> str:
        """The key that does the same as Enter; empty if there is none."""
        return key_of(self.binding) if self.binding else ""

    @property
    def verb(self) -> tuple[str, str]:
        """What Enter does, or else the key that does the same; and the style."""
        word = "open" if self.entry is not None else "run" if self.form is not None else ""
        return (word, "$text-muted") if word else (self.key, "bold $footer-key-foreground")


WAYS = (
    OwnRow(
        "Profile a script…", "",
        "Runs a program of yours unchanged, as python does, and says where its time goes: the slowest lines, what was "
        "compiled, why it was compiled again, copies, memory, and what to change.",
        "program", "home.program",
    ),
    OwnRow(
        "Measure a function…", "",
        "Times a function of yours phase by phase (trace, lower, compile, first run, steady run) on each device, and "
        "its NumPy twin if it has one: is it faster, and from how many calls on?",
        "own", "home.own",
    ),
    OwnRow(
        "Open a session…", "",
        "A session of jaxprof, also from another machine; a profile that JAX, TensorBoard or a trainer wrote; or HLO: "
        "text, a proto, the folder of a dump.",
        "open_file", "home.open_file",
    ),
    OwnRow(
        "Take the tour", "",
        "For each screen: the question that it answers, the keys to press, and an example of the answer.",
        TOUR, TOUR,
    ),
    OwnRow(
        "Try an example", "selu",
        "Measures selu, of the catalogue below: NumPy, JAX op by op, and jit, each in fresh processes. It shows the "
        "speed-up, the break-even and the HLO, and writes a file that you can share.",
        "example",
    ),
)  # fmt: skip


def own_programs(entries: Iterable[Entry], folder: Path, *, more: bool = False) -> list[OwnRow]:
    """Return the sessions that are recorded now, the programs of this folder, the other sessions, then the ways to
    measure. `more`: there are older sessions, too. Reads files: for threads only.

    The tour is listed only if there is no program and no session.
    """
    from jaxprof.workloads.scripts import scripts_with_jax

    kept = list(entries)
    first = [_kept(entry) for entry in kept if entry.running]
    others = [_kept(entry) for entry in kept if not entry.running]
    yours = [*first, *_here(scripts_with_jax(folder)[:MOST_HERE]), *others, *([_OLDER] if more else [])]
    return [*yours, *(way for way in WAYS if not yours or way.action != TOUR)]


def _here(paths: Iterable[Path]) -> Iterator[OwnRow]:
    from jaxprof.tui.kit.script_dialog import ScriptForm  # not needed for the first frame

    for path in paths:
        explains = (
            f"{path.name} imports jax. Enter asks for its arguments, Enter again runs it unchanged and says where its "
            "time goes: the slowest lines, what was compiled and why again, copies, memory, and what to change."
        )
        form = ScriptForm(program=path.name, directory=str(path.parent))
        yield OwnRow(path.name, "imports jax", explains, form=form, source=_beginning(path))


_OLDER = OwnRow("Older sessions…", "", "Lists all kept sessions and jobs.", "list_all")


def _kept(entry: Entry) -> OwnRow:
    """Return the row of a session or job: its age, or what is not as it should be."""
    note = ago(entry.modified_seconds)
    if entry.problem:
        note = "unreadable"
    elif entry.running:
        note = "● running"
    elif entry.job is not None and entry.complete and entry.job.missing:
        note = f"{entry.job.missing} missing"
    elif entry.state != "complete" and not entry.live:  # whoever has run it may add to it
        note = entry.state
    return OwnRow(", ".join(entry.workloads) or entry.name, note, entry=entry)


def _beginning(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_SOURCE_SHOWN)
    except OSError:
        return ""


def _title(row: OwnRow) -> Cell:
    return safe(row.title) if row.note else Span(safe(row.title))


class OwnCodeList(TableView[OwnRow], keys="own_code"):
    """One row per program and per way to measure. Below the last row, the cursor goes on to the list below."""

    STAYS_ON_TOP = True

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            (
                TableColumn("", lambda row: mark(True) if row.path in self.marked else row.verb, 4),
                TableColumn("title", _title, 12, weight=1),
                TableColumn("note", lambda row: row.note, 4, most=13, fits=True, right=True, style="$text-muted"),
            ),
            titles=False,
            id=id,
        )  # fmt: skip
        self.marked: list[Path] = []
        """The sessions to compare, in the order in which they were marked."""
        self.show(WAYS)

    def show(self, own_rows: Sequence[OwnRow]) -> None:
        """Show these rows. A cursor on the first row stays there; elsewhere it stays on its row."""
        self.show_rows({row.path or (row.action, row.title, row.form): row for row in own_rows})
        kept = {row.path for row in own_rows}
        self.marked = [path for path in self.marked if path in kept]

    def haystack(self, row: OwnRow) -> str:
        entry = row.entry
        if entry is None:
            return row.title
        hosts = entry.job.hosts if entry.job is not None else [entry.header.host] if entry.header is not None else []
        return " ".join([row.title, entry.name, *hosts, *(plan.spec.device for plan in entry.planned)])

    @property
    def entry(self) -> Entry | None:
        """The kept session or job under the cursor; None if the row is another one."""
        return self.current_row.entry if self.current_row is not None else None

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        """Hide what is about a session unless the cursor is on one."""
        if action == "copy_path" and self.entry is None:
            return HIDDEN
        if action == "mark" and self.entry is None:
            mark, compare = key_of("own_code.mark"), key_of("home.compare")
            words = "marks a session here, of a program too once it has run, or a workload below"
            return Hidden(f"{mark} {words}; {compare} compares two")
        if action == "mark" and self.entry is not None and self.entry.job is not None:
            return Hidden("a job is not compared; jaxprof compare compares the sessions of two processes")
        return super().why_not(action, parameters)

    def action_copy_path(self) -> None:
        if self.entry is not None:
            self.copy(str(self.entry.path))

    def action_move(self, step: int) -> None:
        if step > 0 and self.cursor == self.count - 1:
            self.screen.focus_next()
        else:
            super().action_move(step)


def row_lines(row: OwnRow, open_path: Path | None, width: int) -> list[Content]:
    """Return what the row is; for a session, its summary. `open_path` is the session that is open."""
    if row.entry is not None:
        from jaxprof.tui.home.kept_sessions import session_summary  # not needed for the first frame

        return session_summary(row.entry, open_path, max(24, width))
    lines = Content.styled(safe(row.explains), "$text-muted").wrap(width)
    if row.source:
        from jaxprof.tui.kit.python_source import highlighted  # not needed for the first frame

        lines += [Content(""), *highlighted(row.source).wrap(width)]
    return lines


def plan_text(row: OwnRow, width: int) -> Content:
    """Return what Enter does, in one line."""
    if row.form is not None:
        what, rest = f"profile {row.title}", " · asks for its arguments, then runs it unchanged"
    elif row.entry is not None:
        what, rest = f"open {row.title}", ""
    else:
        what, rest = row.title, f" · also {row.key} on Start" if row.key else ""
    return Content.assemble(
        (" ⏎ ", "bold $footer-key-foreground"), (shorten(safe(what), max(8, width - 4)), "bold"), (rest, "$text-muted")
    ).truncate(max(1, width), ellipsis=True)
