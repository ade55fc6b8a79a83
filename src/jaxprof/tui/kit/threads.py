"""Threads of the app. None can end it: what escapes is shown, its traceback goes to a file, and the app goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from jaxprof.errors import JaxprofError
from jaxprof.tui.kit.guard import defect
from jaxprof.tui.messages import Failed

if TYPE_CHECKING:
    from textual.app import App
    from textual.dom import DOMNode

Work = Callable[[], object]
Fail = Callable[[JaxprofError], object]
Made = TypeVar("Made")


def in_thread(
    node: App[Any] | DOMNode,
    work: Callable[[], Made],
    name: str,
    *,
    then: Callable[[Made], object] | None = None,
    failed: Fail | None = None,
    group: str = "",
    exclusive: bool = True,
) -> None:
    """Runs `work` in a worker of `node`, for which quitting waits. `exclusive`: cancels those of its `group`, which is
    its name by default.

    The node then calls `then` with what `work` returned, or `failed` with what it raised, on the thread that draws;
    without `failed`, the app shows the error.
    """
    app = node.app

    def done() -> None:
        try:
            made = work()
            if then is not None:
                node.call_later(then, made)
        except RuntimeError:  # such as Textual's, where a node asks for its app that has left it
            if node is app or node.is_attached:
                raise

    def tell(error: JaxprofError) -> None:
        if failed is not None:
            node.call_later(failed, error)
        elif app.is_running:
            app.post_message(Failed(error))

    guarded = partial(_guarded, done, name, tell)
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
