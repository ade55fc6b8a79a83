"""Write the session in view in a form for others: a page for a browser, Markdown, or a timeline for Perfetto."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from textual.worker import get_current_worker

from jaxprof.base.errors import StorageError, UsageError
from jaxprof.base.files import with_home, write_pieces
from jaxprof.session import Session
from jaxprof.session.files import lasting_name
from jaxprof.tui.keys import in_words
from jaxprof.tui.kit.dialogs import Choose, FormDialog, FormField, Option, Texts
from jaxprof.tui.shell.profiler import Profiler

Pieces = Callable[["Session", str, str], Iterable[str]]
"""Makes the text of a file, in pieces, of a session, its name for commands, and the id of the run in view."""


def _page(session: Session, name: str, run: str) -> Iterable[str]:
    from jaxprof.report.page.document import to_page

    return [to_page(session, name)]


def _markdown(session: Session, name: str, run: str) -> Iterable[str]:
    from jaxprof.report import markdown
    from jaxprof.report.session_text import to_text

    return [markdown(to_text(session)), "\n"]


def _timeline(session: Session, name: str, run: str) -> Iterable[str]:
    from jaxprof.analysis.timeline import TEXT_NAME
    from jaxprof.report import perfetto

    has_one = run in session.runs and TEXT_NAME in session.runs[run].texts
    return perfetto.export(session, name, run if has_one else None)[0]


_FORMS: tuple[tuple[str, str, str, Pieces], ...] = (
    ("Page", "everything on one page, for a browser", ".html", _page),
    ("Markdown", "the report, for an issue or a chat", ".md", _markdown),
    ("Timeline", "for ui.perfetto.dev", ".perfetto.json", _timeline),
)
"""Label, meaning, ending of the file, and what makes its text."""


def ask_to_export(app: Profiler) -> None:
    """Ask for a form and a file, and write it in a thread. An existing file stays as it is, and none is left of a
    dialog that was left. Raises UsageError for a session that still grows: the thread would read what is being
    changed."""
    if app.session_grows:
        raise UsageError("the session is still being written", f"Press {in_words('app.export')} once it has ended.")
    session, path, run = app.session, app.opened.profile or app.session_path, app.destination.run
    name = lasting_name(path) if path is not None else "session"

    def choose(index: int) -> None:
        label, _, ending, pieces = _FORMS[index]
        file = path.name.removesuffix(".jaxprof") if path is not None else "session"

        def write(texts: Texts) -> None:
            if not texts["file"]:
                raise UsageError("a file is needed")
            out = with_home(texts["file"])
            if out.exists():
                raise StorageError(f"{out} already exists", "Give another name.")
            write_pieces(out, _until_left(pieces(session, name, run)))

        def show_path(texts: Texts) -> None:
            app.say(str(with_home(texts["file"]).absolute()), "Written")

        FormDialog(
            f"Export as {label}",
            {"file": FormField("file", str(app.folder / f"{file}{ending}"), "", goes_on=True)},
            "Write",
            "writes it",
            confirm=write,
            waiting="Writing…",
        ).ask(app, show_path)

    lines = [Option(label, meaning) for label, meaning, _, _ in _FORMS]
    Choose("Export this session", lines).ask(app, choose)


def _until_left(pieces: Iterable[str]) -> Iterator[str]:
    """Yield the pieces; raise UsageError once the dialog was left, before the file has its name."""
    yield from pieces
    if get_current_worker().is_cancelled:
        raise UsageError("the dialog was left")
