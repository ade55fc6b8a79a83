"""Threads of the app. None can end it: an exception is shown, its traceback goes to a file, and the app goes on."""

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
    """Run `work` in a worker of `node`; quitting waits for it. `exclusive`: cancel the workers of its `group`, by
    default its name.

    The node then calls `then` with what `work` returned, or `failed` with what it raised, on the drawing thread;
    without `failed`, the app shows the error.
    """
    app = node.app

    def done() -> None:
        try:
            result = work()
            if then is not None:
                node.call_later(then, result)
        except RuntimeError:  # such as Textual's error for a node that has left its app
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
    """Run `work` in a thread that quitting does not wait for; that thread calls `failed` with what `work` raised."""
    threading.Thread(target=_guarded, args=(work, name, failed), name=name, daemon=True).start()


def _guarded(work: Work, name: str, failed: Fail) -> None:
    try:
        work()
    except JaxprofError as error:
        failed(error)
    except Exception as error:  # noqa: BLE001  nothing above this frame would report it
        failed(defect(error, f"the thread {name!r} failed"))
