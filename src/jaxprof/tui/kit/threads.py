"""Threads of the app. None can end it: what escapes is shown, its traceback goes to a file, and the app goes on."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from jaxprof.errors import JaxprofError, system_words
from jaxprof.tui.messages import Failed

if TYPE_CHECKING:
    from pathlib import Path

    from textual.app import App
    from textual.dom import DOMNode

Work = Callable[[], object]
Fail = Callable[[JaxprofError], object]
LARGEST_LOG_BYTES: Final = 1 << 20
"""A longer log begins again."""


def in_thread(
    node: App[Any] | DOMNode,
    work: Work,
    name: str,
    *,
    group: str = "",
    exclusive: bool = True,
    failed: Fail | None = None,
) -> None:
    """Runs `work` in a worker of `node`, for which quitting waits. `exclusive`: cancels those of its `group`, which is
    its name by default.

    `failed` is called in the thread with what `work` raised; without it, the app shows the error.
    """
    app = node.app

    def tell(error: JaxprofError) -> None:
        if app.is_running:
            app.post_message(Failed(error))

    guarded = partial(_guarded, work, name, failed or tell)
    node.run_worker(guarded, name=name, group=group or name, exclusive=exclusive, thread=True)


def in_daemon(work: Work, name: str, failed: Fail) -> None:
    """Runs `work` in a thread for which quitting does not wait; `failed` is called in it with what `work` raised."""
    threading.Thread(target=_guarded, args=(work, name, failed), name=name, daemon=True).start()


def _guarded(work: Work, name: str, failed: Fail) -> None:
    try:
        work()
    except JaxprofError as error:
        failed(error)
    except Exception as error:  # noqa: BLE001  nothing above this frame would report it
        failed(defect(error, f"the thread {name!r} failed"))


def defect(error: Exception, what: str) -> JaxprofError:
    """The error to show for one that nobody expected, whose traceback is written to `errors.log`."""
    from jaxprof.session.log.state import state_folder

    path = state_folder() / "errors.log"
    try:
        _append(path, "".join(traceback.format_exception(error)))
    except OSError as problem:
        where = f"The traceback could not be written to {path}: {system_words(problem)}."
    else:
        where = f"The traceback is in {path}."
    return JaxprofError(
        f"{what}: {type(error).__name__}: {error}", f"This is a defect of jaxprof: please report it. {where}"
    )


def _append(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    too_long = path.exists() and path.stat().st_size > LARGEST_LOG_BYTES
    with path.open("w" if too_long else "a", encoding="utf-8", errors="backslashreplace") as file:
        path.chmod(0o600)
        file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')}\n{text}\n")
