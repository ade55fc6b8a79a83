"""Write the session in view in a form for others: a page for a browser, Markdown, or a timeline for Perfetto."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.base.errors import StorageError, UsageError, system_words
from jaxprof.base.files import replace_file
from jaxprof.session.files import lasting_name
from jaxprof.tui.kit.dialogs import Choose, FormDialog, FormField, Option, Texts

if TYPE_CHECKING:
    from jaxprof.session import Session
    from jaxprof.tui.shell.profiler import Profiler

Pieces = Callable[["Session", str], Iterable[str]]
"""Makes the text of a file, in pieces, of a session and its name for commands."""


def _page(session: Session, name: str) -> Iterable[str]:
    from jaxprof.report.page.document import to_page

    return [to_page(session, name)]


def _markdown(session: Session, name: str) -> Iterable[str]:
    from jaxprof.report.renderers import markdown
    from jaxprof.report.session_text import to_text

    return [markdown(to_text(session)), "\n"]


def _timeline(session: Session, name: str) -> Iterable[str]:
    from jaxprof.analysis.timeline.model import TEXT_NAME, read_timeline
    from jaxprof.report import perfetto

    run = perfetto.choose_run(session, name, None)
    return perfetto.pieces(read_timeline(session.text(run.id, TEXT_NAME) or ""), run.label)


_FORMS: tuple[tuple[str, str, str, Pieces], ...] = (
    ("Page", "everything on one page, for a browser", ".html", _page),
    ("Markdown", "the report, for an issue or a chat", ".md", _markdown),
    ("Timeline", "for ui.perfetto.dev", ".perfetto.json", _timeline),
)
"""Label, meaning, ending of the file, and what makes its text."""


def ask_to_export(app: Profiler) -> None:
    """Ask for a form and a file, and write it in a thread. An existing file stays as it is."""
    session, path = app.session, app.opened.profile or app.session_path
    name = lasting_name(path) if path is not None else "session"

    def choose(index: int) -> None:
        label, _, ending, pieces = _FORMS[index]
        file = path.name.removesuffix(".jaxprof") if path is not None else "session"

        def write(texts: Texts) -> None:
            out = Path(os.path.expanduser(texts["file"]))
            if out.exists():
                raise StorageError(f"{out} already exists", "Give another name.")
            try:
                with replace_file(out) as whole, whole.open("w", encoding="utf-8") as opened:
                    opened.writelines(pieces(session, name))
            except OSError as error:
                raise StorageError(f"{out} cannot be written: {system_words(error)}", "Name another place.") from error

        def tell(texts: Texts) -> None:
            app.say(str(Path(os.path.expanduser(texts["file"])).absolute()), "Written")

        FormDialog(
            f"Export as {label}",
            {"file": FormField("file", str(app.folder / f"{file}{ending}"), "", _needed, goes_on=True)},
            "Write",
            "writes it",
            confirm=write,
            waiting="Writing…",
        ).ask(app, tell)

    lines = [Option(label, meaning) for label, meaning, _, _ in _FORMS]
    Choose("Export this session", lines).ask(app, choose)


def _needed(text: str) -> None:
    if not text:
        raise UsageError("a file is needed")
