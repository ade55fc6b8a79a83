"""What can be done here, made of the bindings that work now: the menu, with a letter for each action; help, with a tour
of the questions that the screens answer and all keys; and the command palette, which also finds what sessions hold.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.containers import Vertical, VerticalScroll
from textual.content import Content

from jaxprof.text import safe, shorten
from jaxprof.tui.keys import ACTIONS, IN_MENU, in_words, key_of, letter_of
from jaxprof.tui.kit.dialogs import Dialog, Option, Options, TextDialog
from jaxprof.tui.kit.drawing import hang
from jaxprof.tui.kit.guard import Guarded, on
from jaxprof.tui.kit.row_list import RowList
from jaxprof.units import seconds

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import ActiveBinding
    from textual.dom import DOMNode
    from textual.events import Key
    from textual.screen import Screen

    from jaxprof.tui.profiler import Profiler


@dataclass(frozen=True, slots=True)
class Action:
    """One action of a screen or of the widget with the focus."""

    keys: str
    """Its keys as people write them."""
    letter: str
    """Its letter in the menu; empty if it is not there."""
    label: str
    does: str
    name: str
    """Textual's name of the action, with its arguments."""
    node: DOMNode
    """The widget, screen or app that has it."""
    enabled: bool
    in_bar: bool

    @property
    def note(self) -> str:
        """What the action does, or why it does nothing now."""
        if self.enabled:
            return self.does
        why = self.node.why_not(self.name) if isinstance(self.node, Guarded) else ""
        return f"not now: {why or 'there is nothing here for it'}"


def actions(screen: Screen[Any]) -> list[Action]:
    """Return the actions of a screen, those of the widget with the focus first."""
    found: dict[tuple[str, DOMNode], list[ActiveBinding]] = {}
    for active in screen.active_bindings.values():
        if active.binding.id in ACTIONS:
            found.setdefault((active.binding.action, active.node), []).append(active)
    return [_action(screen, same) for same in found.values()]


def _action(screen: Screen[Any], same: list[ActiveBinding]) -> Action:
    """Return an action with all its keys."""
    binding = same[0].binding
    keys = " ".join(dict.fromkeys(screen.app.get_key_display(active.binding) for active in same))
    letter = letter_of(ACTIONS[binding.id or ""])
    does, in_bar = binding.tooltip, binding.show and not binding.key.startswith(IN_MENU)
    return Action(keys, letter, binding.description, does, binding.action, same[0].node, same[0].enabled, in_bar)


# -- the menu -------------------------------------------------------------------------------------------------

MOST_ROWS = 17
"""Most rows for which a terminal of 24 lines has room, with the frame."""


class Menu(Dialog[Action], keys="menu"):
    """Returns the chosen action, or None. A letter chooses its line."""

    def __init__(self, below: Screen[Any]) -> None:
        super().__init__()
        self._entries = [action for action in actions(below) if action.letter]

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog wide-dialog menu") as box:
            box.border_title = "What can be done here"
            box.border_subtitle = Content(f"a letter or Enter does it, {key_of('dialog.leave')} closes")
            rows = Options([Option(entry.label, entry.note, entry.letter, entry.enabled) for entry in self._entries])
            rows.styles.height = max(1, min(len(self._entries), MOST_ROWS))
            yield rows

    def on_mount(self) -> None:
        self.query_one(Options).focus()

    def on_key(self, event: Key) -> None:
        """Run the action of a letter; the menu is the only place that has as many letters as it has lines."""
        letter = event.character or ""
        for entry in self._entries:
            if entry.letter == letter:
                event.stop()
                self.dismiss(entry)
                return
        if letter and letter in "mq":
            event.stop()
            self.dismiss(None)

    @on(RowList.Chosen)
    def action_choose(self) -> None:
        if self._entries:
            self.dismiss(self._entries[self.query_one(Options).cursor])


def open_menu(app: Any) -> None:
    """Open the menu of the screen in view, and run the action chosen there."""
    Menu(app.screen).ask(app, lambda entry: app.call_next(partial(app.run_action, entry.name, entry.node)))


# -- help -----------------------------------------------------------------------------------------------------

_ACTION = re.compile(r"\{([\w.]+)\}")
_INDENT = 13
"""Columns of the names of the screens."""


@dataclass(frozen=True, slots=True)
class Stop:
    """One stop of the tour: a question, and how to get to its answer."""

    place: str
    """Name of the screen that answers the question."""
    question: str
    way: str
    """Keys to press, from the start unless it says otherwise; ids of actions in braces."""
    seen: str
    """Example of what the screen then shows."""

    def lines(self, width: int, *, here: bool) -> list[Content]:
        """Return two lines: the question, then the keys and what they show; `here`: this is the screen in view."""
        mode = f"app.mode.{self.place}"
        mark = "▸" if here else " "
        name = f"{mark}{key_of(mode)} {ACTIONS[mode].label}".ljust(_INDENT)
        head = Content.assemble((name, "bold $primary" if here else "$text-muted"), (self.question, "bold"))
        way = _ACTION.sub(lambda action: key_of(action[1]), self.way)
        room = width - _INDENT - len(way) - 3
        line = Content.assemble(" " * _INDENT, (way, "$footer-key-foreground"), " → ", shorten(self.seen, max(8, room)))
        return [head, line.stylize_before("$text-muted")]


STOPS = (
    Stop("start", "How do I see my own code? And an old session?",
         "{home.program} train.py Enter, or {home.own} step.py:f", "it runs unchanged"),
    Stop("summary", "What costs most, and what do I do about it?",
         "{app.mode.summary}; Enter on a run: all of it", "train.py:90  62 %; 6.9×"),
    Stop("compiles", "Why was it compiled again?",
         "{app.mode.compiles}, then Enter on a function", "shape of batch varies"),
    Stop("kernels", "What did XLA compile it to? Which kernel is slow?",
         "{app.mode.kernels}, or {results.hlo} on a result", "gemm_fusion.5  1.92 ms"),
    Stop("timeline", "When is the device idle?",
         "{app.mode.timeline}, then {timeline.longest_idle}", "idle 3.1 ms a step"),
    Stop("memory", "Does it fit?",
         "{app.mode.memory}, then Enter on a buffer", "peak 1.28 GiB"),
)  # fmt: skip


def tour(width: int, place: str) -> list[Content]:
    """Return all stops; those of the screen in view are marked."""
    stops = [line for stop in STOPS for line in stop.lines(width, here=stop.place == place)]
    advice, search = in_words("program.explain"), key_of("app.palette")
    last = f"Example figures. {advice}: what to change. {search}: search everything."
    return [*stops, Content(""), Content.styled(last, "$text-muted")]


class HelpScreen(TextDialog, keys="help"):
    """The tour, and all keys of the screen below, in groups."""

    CLASSES = "dialog help"

    def __init__(self, below: Screen[Any]) -> None:
        super().__init__("Help", f"{key_of('help.turn')} the other page · {key_of('help.close')} closes")
        self._below = below
        self._on_tour = True
        """Whether the tour is in view, not the keys."""

    def action_turn(self) -> None:
        self._on_tour = not self._on_tour
        self.show(self._on_tour)
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def lines(self, width: int) -> list[Content]:
        return tour(width, getattr(self._below, "place", "")) if self._on_tour else self._key_lines(width)

    def _key_lines(self, width: int) -> list[Content]:
        lines: list[Content] = []
        for place, listed in self._groups().items():
            lines += [Content("")] if lines else []
            lines.append(Content.styled(place, "bold $primary"))
            for action in listed:
                head = (f"  {action.keys:<12} ", "bold $footer-key-foreground")
                lines += hang(Content.assemble(head, f"{action.label:<16} "), action.does, width, "$text-muted")
        return lines

    def _groups(self) -> dict[str, list[Action]]:
        """Return the actions by place: focused pane, screen, app."""
        groups: dict[str, list[Action]] = {"In this pane": [], "On this screen": [], "Everywhere": []}
        for action in actions(self._below):
            everywhere, screen = action.node is self.app, action.node is self._below
            groups["Everywhere" if everywhere else "On this screen" if screen else "In this pane"].append(action)
        return {place: listed for place, listed in groups.items() if listed}


# -- the palette ----------------------------------------------------------------------------------------------

MOST_OF_A_KIND = 200
"""Most kernels, lines or functions that are searched, the most expensive first."""
MOST_HLO_BYTES = 4 << 20
"""Most bytes of HLO that are read for the names of its kernels; more would take longer than a search should."""
PLACEHOLDER = "Search actions, kernels, lines, functions, sessions"


@dataclass(frozen=True, slots=True)
class Found:
    """An entry that can be searched."""

    kind: str
    """What it is; of an action, its key."""
    name: str
    note: str
    go: Callable[[], Any]

    @property
    def line(self) -> str:
        """The line of the entry in the palette."""
        return f"{self.kind:<10}{safe(self.name)}"


def open_palette(app: Profiler) -> None:
    """Show the palette, unless it is already open."""
    if not isinstance(app.screen, CommandPalette):
        app.push_screen(CommandPalette(providers=(ActionProvider, SearchProvider), placeholder=PLACEHOLDER))


class FoundProvider(Provider):
    """Base of both providers: the entries that a query matches, as Textual ranks them."""

    found: Sequence[Found] = ()

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for entry in self.found:
            if (score := matcher.match(entry.line)) > 0:
                yield Hit(score, matcher.highlight(entry.line), entry.go, help=safe(entry.note))


class ActionProvider(FoundProvider):
    """Finds the actions that work now; those of the key bar come first."""

    async def startup(self) -> None:
        listed = sorted(actions(self.screen), key=lambda action: not action.in_bar)
        run = self.app.run_action
        self.found = [
            *(
                Found(each.keys, each.label, each.does, partial(run, each.name, each.node))
                for each in listed
                if each.enabled
            ),
            Found("setting", "Theme", f"colours: {self.app.theme}", self.app.action_change_theme),
        ]

    async def discover(self) -> Hits:
        for entry in self.found:
            yield DiscoveryHit(entry.line, entry.go, help=entry.note)


class SearchProvider(FoundProvider):
    """Finds what the session in view and the saved sessions hold."""

    async def startup(self) -> None:
        app = cast("Profiler", self.app)
        self.found = [*of_session(app), *await asyncio.to_thread(lambda: [*from_files(app)])]


def of_session(app: Profiler) -> Iterator[Found]:
    """Yield kernels, functions and lines of the session in view, as far as they are known without reading HLO."""
    from jaxprof.analysis.measured import seconds_per_call
    from jaxprof.analysis.programs.derive import program_result

    session = app.session
    for run in session.runs.values():
        slowest = sorted(seconds_per_call(run).items(), key=lambda pair: -pair[1])
        for name, duration in slowest[:MOST_OF_A_KIND]:
            yield Found("kernel", name, f"{seconds(duration)} a call, {run.label}", partial(app.show_hlo, run.id, name))
    for program in session.programs:
        result = program_result(session, program.id)
        to = app.show_program
        for function in result.functions[:MOST_OF_A_KIND]:
            note = f"compiled {function.count}× in {seconds(function.seconds)}"
            yield Found("function", function.function, note, partial(to, program.id, "ledger", function.function))
        hottest = sorted(result.lines, key=lambda line: -line.seconds)
        for where in list(dict.fromkeys(f"{line.place.file}:{line.place.line}" for line in hottest))[:MOST_OF_A_KIND]:
            yield Found("line", where, "", partial(to, program.id, "lines", where))


def from_files(app: Profiler) -> Iterator[Found]:
    """Yield the saved sessions and jobs, and kernels that no capture has measured, from the HLO of a session that
    nobody writes. For threads: reads files."""
    from jaxprof.analysis.measured import kernels_of, seconds_per_call

    for entry in app.library().listed(None):
        kind = "session" if entry.job is None else "job"
        yield Found(kind, entry.name, str(entry.path.parent), partial(app.open_session, entry.path))
    for run in app.session.runs.values() if not app.session_grows else ():
        text = run.texts.get("hlo")
        if text is not None and text.bytes <= MOST_HLO_BYTES and not seconds_per_call(run):
            for kernel in (kernels_of(app.session, run.id) or ())[:MOST_OF_A_KIND]:
                yield Found(
                    "kernel", kernel.name, f"not measured, {run.label}", partial(app.show_hlo, run.id, kernel.name)
                )
