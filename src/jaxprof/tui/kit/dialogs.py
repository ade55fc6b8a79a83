"""Modal dialogs: a text to read, one of several lines, or a form, the smallest of which is a question. Each returns one
value, or None after Escape.

The form that starts a user's program parses its command line as the user types; an error stands beneath it, and the
program does not start until it is corrected.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual import events
from textual.await_complete import AwaitComplete
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Label, Static

from jaxprof.base.errors import JaxprofError
from jaxprof.base.text import safe, safe_lines
from jaxprof.base.values import frozen
from jaxprof.runner.program import RECORDED_AGAIN, ProgramCommand, read_command, working_directory
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.drawing import hang
from jaxprof.tui.kit.guard import Guarded, in_thread, on
from jaxprof.tui.kit.picture import Lines
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.table_columns import TableColumn, report_contents
from jaxprof.tui.theme import STYLES

if TYPE_CHECKING:
    from textual.app import App, ComposeResult

    from jaxprof.findings import Explanation
    from jaxprof.report import Piece
    from jaxprof.session import Run, Session
    from jaxprof.tui.kit.host import Host

Answer = TypeVar("Answer")
_NO_BREAKPOINTS: list[tuple[int, str]] | None = []
"""No style of a dialog depends on the size: it has none of the classes that Textual would style it anew for."""


class Dialog(Guarded, ModalScreen[Answer], keys="dialog"):
    """Base class of every dialog. Its stylesheet is read when the first dialog opens."""

    CSS_PATH = STYLES
    HORIZONTAL_BREAKPOINTS = VERTICAL_BREAKPOINTS = _NO_BREAKPOINTS

    def ask(self, app: App[Any] | Host, take: Callable[[Answer], object]) -> None:
        def take_answer(answer: Answer | None) -> None:
            if answer is not None:
                take(answer)

        app.push_screen(self, take_answer)

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        event.refresh_styles = False  # each widget was styled when it was made

    def dismiss(self, result: Answer | None = None) -> AwaitComplete:
        """Close the dialog; a second key that was on its way closes nothing: Textual would pop the screen below."""
        return super().dismiss(result) if self.is_active else AwaitComplete()

    def action_leave(self) -> None:
        self.dismiss(None)


class TextDialog(Dialog[None], keys="reader"):
    """A scrolling text over the screen that asks nothing."""

    CLASSES: ClassVar[str] = "dialog wide-dialog"

    def __init__(self, title: str, draw: Callable[[int], list[Content]] | None = None, keys: str = "") -> None:
        """`draw`: the text in a width, unless a subclass has `lines`; `keys`: for the frame."""
        super().__init__()
        self._title, self._draw, self._keys = title, draw, keys

    def compose(self) -> ComposeResult:
        ways = (self._keys or f"{key_of('reader.copy')} copies", f"{key_of('reader.close')} closes")
        with VerticalScroll(classes=self.CLASSES) as box:
            box.border_title, box.border_subtitle = Content(safe(self._title)), ", ".join(ways)
            yield Lines()

    def on_mount(self) -> None:
        self.query_one(Lines).show(self.lines)
        self.query_one(VerticalScroll).focus()

    def lines(self, width: int) -> list[Content]:
        return self._draw(width) if self._draw is not None else []

    def action_copy(self) -> None:
        self.copy("\n".join(line.plain.rstrip() for line in self.lines(_COPIED_WIDTH)), self._title)


_COPIED_WIDTH = 200


Draw = Callable[[int], list[Content]]


class ReportDialog(TextDialog):
    """A text for which a thread reads files."""

    CLASSES = "dialog report"

    def __init__(self, title: str, read: Callable[[], Draw], waiting: str, keys: str = "") -> None:
        """`read` makes the text, in a thread; `waiting` is shown until then."""
        super().__init__(title, partial(plain_lines, waiting), keys)
        self._read = read

    def on_mount(self) -> None:
        def show_error(error: JaxprofError) -> None:
            self._take(partial(plain_lines, str(error), style="$error"))

        in_thread(self, self._read, "report", then=self._take, failed=show_error)

    def _take(self, draw: Draw) -> None:
        self._draw = draw
        self.query_one(Lines).show(self.lines)


def report_dialog(
    title: str, derive: Callable[[], Iterable[Piece | Callable[[int], Iterable[Content]]]]
) -> ReportDialog:
    """Return the dialog with a report and its pictures, which `derive` makes, in a thread."""

    def read() -> Draw:
        pieces = list(derive())
        return lambda width: [
            line for piece in pieces for line in (piece(width) if callable(piece) else report_contents([piece], width))
        ]

    return ReportDialog(title, read, "Comparing…")


READING = "Analysing the session…"


class ExplanationDialog(ReportDialog, keys="explanation"):
    """All conclusions about a session: its largest costs, its findings, and what is unknown."""

    CLASSES = "dialog help"
    _explanation: Explanation | None = None

    def __init__(self, session: Session, name: str) -> None:
        keys = f"{key_of('explanation.copy')} copies the command"
        super().__init__("What to do", partial(self._explain, session, name), READING, keys)

    def _explain(self, session: Session, name: str) -> Draw:
        from jaxprof.findings.derive import explanation
        from jaxprof.report.explain import explanation_lines

        found = self._explanation = explanation(session, name)
        lines = partial(explanation_lines, found)
        return lambda width: [Content.styled(line, _line_style(line)) for line in lines(width=max(40, width))]

    def action_copy(self) -> None:
        if (explanation := self._explanation) is not None:
            verifying = [finding.verify for finding in explanation.findings]
            commands = [*verifying, *(abstention.command for abstention in explanation.abstentions)]
            if command := next(filter(None, commands), ""):
                self.copy(command)


def _line_style(line: str) -> str:
    """Return the style of a line of the report by its first letters: a finding, a fix, something unknown, the rest."""
    if line[:1].isdigit() and line[1:3] == ". ":
        return "bold $warning"
    if line.startswith(("? ", "verify")):
        return "$text-muted"
    return "$better" if line.lstrip().startswith("→") else ""


def plain_lines(text: str, width: int, style: str = "") -> list[Content]:
    return [drawn for line in safe_lines(text) for drawn in hang(Content(""), line, width, style)]


MOST_ROWS = 17
"""Most rows of a choice for which a terminal of 24 lines has room, with the frame."""
FILTER_FROM = 8
"""Least number of lines for which there is a filter."""


@frozen
class Option:
    label: str
    note: str = ""
    letter: str = ""
    """Letter that chooses it; empty if there is none."""
    enabled: bool = True


def _style(option: Option, usual: str) -> str:
    return usual if option.enabled else "$text-disabled"


class Options(RowList[Option]):
    FILTERED = "No line matches."

    def __init__(self, options: Sequence[Option]) -> None:
        letter = TableColumn[Option](
            "letter", lambda option: (option.letter, _style(option, "bold $primary")), 1, gap=2
        )
        super().__init__(
            (
                *([letter] if any(option.letter for option in options) else ()),
                TableColumn("label", lambda option: (option.label, _style(option, "bold")), 12, fits=True, gap=2),
                TableColumn("note", lambda option: (option.note, _style(option, "$text-muted")), 1, weight=1),
            ),
            titles=False,
        )
        self._options = options

    def on_mount(self) -> None:
        self.show_rows(dict(enumerate(self._options)))


class Choose(Dialog[int], keys="choose"):
    """Asks for one of several lines. Returns the index of the chosen line.

    Typing narrows a long list; where lines have letters, a letter chooses its line. The menu is the only place that has
    as many letters as it has lines.
    """

    def __init__(self, title: str, options: Sequence[Option], current: int = 0) -> None:
        super().__init__()
        self._title, self._options, self._current = title, options, current
        self.lettered = any(option.letter for option in options)

    def compose(self) -> ComposeResult:
        filtered = not self.lettered and len(self._options) >= FILTER_FROM
        start = "a letter does it" if self.lettered else "type to filter" if filtered else ""
        keys = f"↑ ↓ move, Enter chooses, {key_of('dialog.leave')} cancels"
        with Vertical(classes="dialog wide-dialog") as box:
            box.border_title, box.border_subtitle = Content(safe(self._title)), ", ".join(filter(None, (start, keys)))
            if filtered:
                yield Input(placeholder="filter", compact=True)
            options = Options(self._options)
            options.styles.height = max(1, min(len(self._options), MOST_ROWS - filtered))
            yield options

    def on_mount(self) -> None:
        options = self.query_one(Options)
        options.move_to(self._current)
        if not self.query(Input):
            options.focus()

    def on_key(self, event: events.Key) -> None:
        letter = event.character or ""
        listed = [option.letter for option in self._options]
        if self.lettered and letter and letter in [*listed, *_CLOSE_MENU]:
            event.stop()
            self.dismiss(listed.index(letter) if letter in listed else None)

    @on(Input.Changed)
    def _narrow(self, event: Input.Changed) -> None:
        event.stop()
        self.query_one(Options).set_filter(event.value)

    def action_move(self, step: int) -> None:
        self.query_one(Options).action_move(step)

    @on(RowList.Chosen)
    def action_choose(self) -> None:
        number = self.query_one(Options).current
        if isinstance(number, int):
            self.dismiss(number)

    def on_click(self, event: events.Click) -> None:
        if event.widget is self:
            self.dismiss(None)


_CLOSE_MENU = "mq"
"""Letters that close the menu, unless a line has them."""


Texts = Mapping[str, str]


@frozen
class FormField:
    label: str
    value: str
    hint: str
    """Text beneath the field while it is valid, unless `read` returns another."""
    read: Callable[[str], object] = len
    """Parses the text of the field. Raises JaxprofError for an invalid one."""
    example: str = ""
    goes_on: bool = False
    """Whether typing goes on after the value; else it replaces the value."""


class FormDialog(Dialog[Texts], keys="form"):
    """Asks for several fields, with a hint beneath each, which are parsed as the user types: an error shows once the
    user has finished, and goes as soon as the text is right. Returns their texts, which are all valid."""

    def __init__(
        self,
        title: str,
        fields: Mapping[str, FormField],
        take: str,
        enter: str,
        *,
        question: str = "",
        usual: Texts | None = None,
        confirm: Callable[[Texts], object] | None = None,
        waiting: str = "",
    ) -> None:
        """`take`: the label of the button that accepts, as `enter` says what the key does; `usual`: the texts of a
        button that resets the form; `confirm`: called once in a thread with valid texts, before the dialog closes,
        while it shows `waiting` and can only be left: it stays open if that raises JaxprofError."""
        super().__init__()
        self._confirm, self._waiting = confirm, waiting
        self._title, self._fields, self._question, self._usual = title, fields, question, usual
        self._take_label, self._enter = take, enter

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="dialog wide-dialog", can_focus=False) as box:
            box.border_title = Content(safe(self._title))
            box.border_subtitle = f"↑ ↓ next field, Enter {self._enter}, {key_of('dialog.leave')} cancels"
            if self._question:
                yield Static("\n".join(safe_lines(self._question)), markup=False, classes="dialog-text")
            for name, field in self._fields.items():
                with Horizontal(classes="field"):
                    yield Label(safe(field.label), markup=False, classes="field-name")
                    example = f"such as {field.example}" if field.example else ""  # alone it looks like a value
                    yield Input(
                        field.value, id=name, placeholder=example, compact=True, select_on_focus=not field.goes_on
                    )
                yield Static(safe(field.hint), id=f"{name}-hint", markup=False, classes="field-hint")
            with Horizontal(classes="dialog-buttons"):
                if self._usual is not None:
                    yield Button("Reset", id="other", compact=True)
                yield Button("Cancel", id="leave", compact=True)
                yield Button(self._take_label, id="take", variant="primary", compact=True)

    @property
    def texts(self) -> dict[str, str]:
        return {str(field.id): field.value.strip() for field in self.query(Input)}

    # -- keys and mouse ---------------------------------------------------------------------------------------

    def on_input_changed(self, event: Input.Changed) -> None:
        self._check(str(event.input.id), typing=True)

    def on_input_submitted(self) -> None:
        self._take()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        if event.button.id == "take":
            self._take()
        elif event.button.id == "leave":
            self.dismiss(None)
        else:
            for name, text in (self._usual or {}).items():
                self.query_one(f"#{name}", Input).value = text
            self.query(Input).first().focus()

    def _take(self) -> None:
        """Return the texts if every field is valid; otherwise focus the first invalid one."""
        if self.query_one("#take").disabled:  # a second Enter was on its way
            return
        for name in self._fields:
            if not self._check(name):
                self.query_one(f"#{name}").focus()
                return
        texts, confirm = self.texts, self._confirm
        if confirm is None:
            self.dismiss(texts)
            return
        last = list(self._fields)[-1]

        def close(confirmed: object) -> None:
            self.dismiss(texts)

        def refuse(error: JaxprofError) -> None:
            self._disable(False)
            self.query_one(f"#{last}").focus()
            self._show_hint(last, _words(error), wrong=True)

        self._disable(True)
        self._show_hint(last, self._waiting)
        in_thread(self, lambda: confirm(texts), "confirm", then=close, failed=refuse)

    def _disable(self, disabled: bool) -> None:
        for widget in self.query("Input, #other, #take"):
            widget.disabled = disabled

    def _check(self, name: str, *, typing: bool = False) -> bool:
        """Return whether a field is valid, and show what is wrong; while the user is `typing`, nothing new."""
        field = self._fields[name]
        try:
            answer = field.read(self.texts[name])
        except JaxprofError as error:
            if not typing or self.query_one(f"#{name}-hint").has_class("wrong"):
                self._show_hint(name, _words(error), wrong=True)
            return False
        self._show_hint(name, answer if isinstance(answer, str) and answer else field.hint)
        return True

    def _show_hint(self, name: str, text: str, *, wrong: bool = False) -> None:
        hint = self.query_one(f"#{name}-hint", Static)
        hint.set_class(wrong, "wrong")
        hint.update(safe(text))


def _words(error: JaxprofError) -> str:
    return f"{error.what}. {error.hint}" if error.hint else error.what


class Confirm(FormDialog, keys="confirm"):
    """Asks a yes-or-no question, as a form without fields. No has the focus, so that a stray key destroys nothing."""

    def __init__(self, title: str, question: str, yes: str) -> None:
        keys = f"presses a button, {key_of('confirm.no')} means no"
        super().__init__(title, {}, f"{key_of('confirm.yes')}  {yes}", keys, question=question)

    def action_answer(self, yes: bool) -> None:
        self.dismiss({} if yes else None)


def ask_text(
    app: App[Any] | Host,
    title: str,
    field: FormField,
    take: Callable[[str], object],
    enter: str,
    *,
    question: str = "",
    find: Callable[[str], object] | None = None,
) -> None:
    """Ask for one line of text, which `take` gets unless it is empty. `find` is called with it before, in a thread: if
    that raises JaxprofError, the dialog stays, with the text."""

    def confirm(texts: Texts) -> None:
        if find is not None and texts["text"]:
            find(texts["text"])

    dialog = FormDialog(title, {"text": field}, "OK", enter, question=question, confirm=confirm if find else None)
    dialog.ask(app, lambda texts: texts["text"] and take(texts["text"]))


def script_dialog(program: ProgramCommand | None = None, question: str = "") -> FormDialog:
    given = program or ProgramCommand(path="")
    field = FormField(
        "command", shlex.join(given.argv) if given.path else "",
        "a file or -m package.module, and arguments as in a shell",
        lambda text: [read_command(text, given.directory)], "train.py --epochs 1", goes_on=True,
    )  # fmt: skip
    options = [
        f"{name.replace('_', ' ')} {value}" for name in RECORDED_AGAIN if (value := getattr(given.options, name))
    ]
    directory = f"It runs in {working_directory(given.directory)}." if given.directory else ""
    words = (question, directory, f"It is recorded with {', '.join(options)}." if options else "")
    return FormDialog("Profile a script", {"command": field}, "Run", "runs it", question=" ".join(filter(None, words)))


def ask_for_program(app: Host, program: ProgramCommand | None = None, question: str = "") -> None:
    given = program or ProgramCommand(path="")

    def start(texts: Texts) -> None:
        app.start_program(replace(read_command(texts["command"], given.directory), options=given.options))

    script_dialog(program, question).ask(app, start)


RERUN_CAPTURE_STEPS = 5
"""Steps of the capture window that a rerun proposes."""


def rerun_program(app: Host, run: Run, *, capture: bool = False) -> None:
    """Start the program of `run` again; `capture`: with a capture window, if the program had none. A program that this
    app itself started runs at once. One that a session file names, or that gets a capture, is shown first: a file from
    elsewhere must not make anybody run code unseen. Raises UsageError for one that was fetched."""
    live = app.live
    ours = live.program is not None and live.session is not None and live.session.runs.get(run.id) is run
    if ours and not capture and live.program is not None:
        app.start_program(live.program)
        return
    from jaxprof.runner.rerun import other_host, refuse_fetched

    started = run.program.started if run.program is not None else None
    if app.session_path is not None and not ours:
        refuse_fetched(app.session_path, started.directory if started is not None else "")
    program = ProgramCommand(path="")
    if started is not None:
        program = ProgramCommand.of(started.argv, started.directory, started.options)
    question = f"This comes from the session file{other_host(app.session)}. Check it before you run it."
    if ours or started is None:
        question = "The program runs again, with a capture." if capture else ""
    if capture and not program.options.wants_window:
        program = replace(program, options=replace(program.options, capture_steps=RERUN_CAPTURE_STEPS))
    ask_for_program(app, program, question)
