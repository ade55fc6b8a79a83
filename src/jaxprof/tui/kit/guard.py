"""The boundary around all of our code that Textual calls, or a thread: an exception that reaches it is shown, and the
app goes on.

Textual ends the app with whatever a handler raises, and offers no public hook to change that. So every class of ours
that it calls derives from `Guarded`, which wraps the methods that Textual finds by name and the functions that it is
asked to call later, and every handler that it finds by a decorator uses `on` from here. What Textual's own widgets
raise still ends the app; `launch` makes that an orderly end.
"""

from __future__ import annotations

import inspect
import threading
import traceback
from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Any, ClassVar, TypeVar, cast
from weakref import WeakKeyDictionary

import textual
from textual.actions import SkipAction
from textual.app import App
from textual.binding import BindingType
from textual.css.query import NoMatches
from textual.dom import DOMNode
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.timer import Timer
from textual.worker import get_current_worker

from jaxprof.base.errors import JaxprofError, system_words
from jaxprof.base.files import private_folder
from jaxprof.base.text import safe, safe_lines
from jaxprof.session.files import state_folder
from jaxprof.tui import clock
from jaxprof.tui.keys import bindings

Handler = TypeVar("Handler", bound=Callable[..., Any])
Made = TypeVar("Made")
Work = Callable[[], object]
Fail = Callable[[JaxprofError], object]

LARGEST_LOG_BYTES = 1 << 20
"""Most bytes of the log; a longer log is started again."""
QUIET_SECONDS = 12.0
"""Seconds for which a repeated failure is not reported again: a failure at every redraw is shown and logged once in
this time."""
CALLED_BY_PREFIX = ("on_", "action_", "watch_")
CALLED_BY_NAME: dict[str, Callable[[Any], object]] = {
    "compose": lambda node: (),
    "compose_body": lambda node: (),
    "render": lambda node: "",
    "render_line": lambda node: Strip.blank(node.size.width),
    "get_content_height": lambda node: 1,
    "why_not": lambda node: "",
    "get_system_commands": lambda node: (),
}
"""Methods that Textual calls for their return value, and the value to return if they fail."""


class Hidden(str):
    """Why an action whose key is not shown does nothing now."""

    __slots__ = ()


HIDDEN = Hidden()
LEAST_COLUMNS, LEAST_ROWS = 80, 24
"""Smallest terminal in which a screen is shown; a smaller one has a note, and no key acts on what is behind it."""
_WORK_UNSEEN = frozenset({"quit", "interrupt", "suspend_process"})


class Guarded(MessagePump):
    """A widget, screen or app of ours. First base class of each, before Textual's."""

    BINDINGS: ClassVar[list[BindingType]] = []

    def __init_subclass__(cls, keys: str = "", **options: Any) -> None:
        """`keys`: the group of the key table that holds the keys of this class."""
        if keys:
            cls.BINDINGS = bindings(keys)
        super().__init_subclass__(**options)
        for name, method in list(vars(cls).items()):
            if inspect.isfunction(method) and (name in CALLED_BY_NAME or name.startswith(CALLED_BY_PREFIX)):
                setattr(cls, name, guard_method(method))

    def call_next(self, callback: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        super().call_next(_call, self, callback, *args, **kwargs)

    def call_later(self, callback: Callable[..., Any], *args: Any, **kwargs: Any) -> bool:
        return super().call_later(_call, self, callback, *args, **kwargs)

    def call_after_refresh(self, callback: Callable[..., Any], *args: Any, **kwargs: Any) -> bool:
        return super().call_after_refresh(_call, self, callback, *args, **kwargs)

    def set_interval(self, interval: float, callback: Callable[..., Any] | None = None, **options: Any) -> Timer:
        return super().set_interval(interval, callback and partial(_call, self, callback), **options)

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        """Return why an action does nothing now, in words that are empty if that is obvious; None if it works. Its key
        is dimmed, or left out if the words are `Hidden`."""
        return None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        columns, rows = self.app.size
        small = columns < LEAST_COLUMNS or rows < LEAST_ROWS
        if small and action not in _WORK_UNSEEN and not isinstance(self.app.screen, ModalScreen):
            return False
        reason = self.why_not(action, parameters)
        if reason is None:
            return True
        return False if isinstance(reason, Hidden) else None

    def say(self, words: str, title: str = "", **options: Any) -> None:
        self.app.notify("\n".join(safe_lines(words)), title=safe(title), markup=False, **options)

    def tell(self, error: JaxprofError, title: str = "") -> None:
        """Show an error: what failed, and its hint. Any thread may call it."""
        self.say(str(error), title, severity="error", timeout=12)

    def copy(self, text: str, words: str = "") -> None:
        """Copy to the terminal's clipboard, and show what was copied: `words`, or the text itself."""
        self.app.copy_to_clipboard(text)
        self.say(words or text, "Copied")


def on(message: type[Message], selector: str | None = None) -> Callable[[Handler], Handler]:
    """Return Textual's `on` for a handler whose exceptions do not escape. A message with `IN_VIEW` comes from a key,
    and is dropped once an earlier key has led away from the screen: both may have been pressed before."""
    register = textual.on(message, selector)
    in_view = getattr(message, "IN_VIEW", False)
    return lambda method: register(guard_method(_in_view(method) if in_view else method))


def _in_view(method: Handler) -> Handler:
    @wraps(method)
    async def handle(self: DOMNode, *args: Any) -> None:
        if self.screen is self.app.screen:
            answer = method(self, *args)
            if inspect.isawaitable(answer):
                await answer

    return handle  # type: ignore[return-value]


def guard_method(method: Handler) -> Handler:
    """Wrap a method of a node: an exception is shown, and the method then returns the value from `CALLED_BY_NAME`."""
    name = getattr(method, "__name__", "")
    where, otherwise = f".{name}", CALLED_BY_NAME.get(name, lambda node: None)

    if inspect.isgeneratorfunction(method):

        @wraps(method)
        def iterate(self: MessagePump, *args: Any, **kwargs: Any) -> Iterator[Any]:
            with _Boundary(self, where):
                yield from method(self, *args, **kwargs)

        return iterate  # type: ignore[return-value]

    if inspect.iscoroutinefunction(method):

        @wraps(method)
        async def await_method(self: MessagePump, *args: Any, **kwargs: Any) -> Any:
            with _Boundary(self, where):
                return await method(self, *args, **kwargs)
            return otherwise(self)

        return await_method  # type: ignore[return-value]

    @wraps(method)
    def call(self: MessagePump, *args: Any, **kwargs: Any) -> Any:
        with _Boundary(self, where):
            return method(self, *args, **kwargs)
        return otherwise(self)

    return call  # type: ignore[return-value]


class _Boundary:
    """Shows what escapes from `where`, and lets the node go on; SkipAction leaves the key to the next node. Entered for
    each call of each method, which a context manager made of a generator would slow down."""

    __slots__ = ("_node", "_where")

    def __init__(self, node: MessagePump, where: str) -> None:
        self._node, self._where = node, where

    def __enter__(self) -> None:
        """Nothing is to be done."""

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if not isinstance(error, Exception) or isinstance(error, SkipAction):
            return False
        report(self._node, error, f"{type(self._node).__name__}{self._where}")
        return True


async def _call(node: MessagePump, callback: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with _Boundary(node, f": {getattr(callback, '__qualname__', 'a callback')}"):
        answer = callback(*args, **kwargs)
        return await answer if inspect.isawaitable(answer) else answer


_reported: WeakKeyDictionary[App[Any], dict[str, float]] = WeakKeyDictionary()
"""When each failure was last reported (monotonic clock), by app and by the method that it escaped from."""


def report(node: MessagePump, error: Exception, where: str) -> None:
    """Show what escaped from `where`, on the drawing thread; a defect also goes to the log. An app that ends removes
    its widgets one by one, and still handles the messages of each: a handler that no longer finds another widget is
    then not a defect."""
    app, now = node.app, clock.monotonic()
    if isinstance(error, NoMatches) and not (app.is_running and node.is_attached):
        return
    reported = _reported.setdefault(app, {})
    if ".action_" not in where and now - reported.get(where, float("-inf")) < QUIET_SECONDS:
        return  # an action is what the user asked for just now
    reported[where] = now
    shown = error if isinstance(error, JaxprofError) else defect(error, f"{where} failed")
    if app.is_running:
        cast("Guarded", app).tell(shown)


def defect(error: Exception, what: str) -> JaxprofError:
    hint = log_defect("".join(traceback.format_exception(error)))
    return JaxprofError(f"{what}: {type(error).__name__}: {error}", hint)


def log_defect(text: str) -> str:
    """Write a traceback to `errors.log`; return what to do about it, and where the log is."""
    path = state_folder() / "errors.log"
    try:
        private_folder(path.parent)
        too_long = path.exists() and path.stat().st_size > LARGEST_LOG_BYTES
        with path.open("w" if too_long else "a", encoding="utf-8", errors="backslashreplace") as file:
            path.chmod(0o600)
            file.write(f"{clock.strftime('%Y-%m-%dT%H:%M:%S%z')}\n{text}\n")
    except OSError as problem:
        where = f"The traceback could not be written to {path}: {system_words(problem)}."
    else:
        where = f"The traceback is in {path}."
    return f"This is a defect of jaxprof: please report it. {where}"


# -- threads --------------------------------------------------------------------------------------------------


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
    default its name; results of cancelled workers are dropped. The node then calls `then` with what `work` returned, or
    `failed` with what it raised, on the drawing thread; without `failed`, the app shows the error."""
    app = node.app

    def done() -> None:
        try:
            result = work()
            if then is not None and not get_current_worker().is_cancelled:
                node.call_later(then, result)
        except RuntimeError:  # such as Textual's error for a node that has left its app
            if node is app or node.is_attached:
                raise

    def tell(error: JaxprofError) -> None:
        if get_current_worker().is_cancelled:
            return
        if failed is not None:
            node.call_later(failed, error)
        elif app.is_running:
            cast("Guarded", app).tell(error)

    work_and_tell = partial(_run_and_tell, done, name, tell)
    node.run_worker(work_and_tell, name=name, group=group or name, exclusive=exclusive, thread=True)


def in_daemon(work: Work, name: str, failed: Fail) -> None:
    """Run `work` in a thread that quitting does not wait for; that thread calls `failed` with what `work` raised."""
    threading.Thread(target=_run_and_tell, args=(work, name, failed), name=name, daemon=True).start()


def _run_and_tell(work: Work, name: str, failed: Fail) -> None:
    try:
        work()
    except JaxprofError as error:
        failed(error)
    except Exception as error:  # noqa: BLE001  nothing above this frame would report it
        failed(defect(error, f"the thread {name!r} failed"))
