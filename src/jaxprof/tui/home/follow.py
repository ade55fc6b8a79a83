"""Which running program to follow: one that is recorded here now, or a session that another process or host writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.files import with_home
from jaxprof.tui.kit.dialogs import AskText, Choose, Option

if TYPE_CHECKING:
    from jaxprof.session.log import Entry
    from jaxprof.tui.profiler import Profiler

HOW = (
    "No session in your folder is being written now. A program records itself (with jaxprof.record('x.jaxprof'): ...), "
    "or runs here (x on Home). The path of a session that is written elsewhere, also by another host:"
)


def ask_what_to_follow(app: Profiler, live: Sequence[Entry]) -> None:
    """Follows the session of `live`, or asks: which of several, or the path of one."""

    def follow(path: Path) -> None:
        app.open_session(path, follow=True)

    if len(live) == 1:
        follow(live[0].path)
    elif live:
        options = [Option(", ".join(entry.workloads) or entry.name, str(entry.path)) for entry in live]
        Choose("Follow", options).ask(app, lambda number: follow(live[number].path))
    else:
        asked = AskText("Follow a running program", HOW, "", "Enter follows")
        asked.ask(app, lambda text: follow((Path.cwd() / with_home(text)).resolve()))
