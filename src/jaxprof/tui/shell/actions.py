"""What can be done here, made of the bindings that work now: the menu, with a letter for each action; help, with what
each screen answers and all keys; and the command palette, which also finds what sessions hold.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

from textual.actions import parse
from textual.command import CommandListItem, CommandPalette, Hits, Provider, SimpleCommand, SimpleProvider
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import Screen

from jaxprof.base.grouping import grouped
from jaxprof.base.text import safe
from jaxprof.base.units import seconds
from jaxprof.base.values import frozen
from jaxprof.tui.keys import ACTIONS, IN_MENU, letter_of
from jaxprof.tui.kit.dialogs import Choose, Option, TextDialog
from jaxprof.tui.kit.drawing import hang
from jaxprof.tui.kit.guard import Guarded
from jaxprof.tui.kit.host import Destination
from jaxprof.tui.shell.profiler import Profiler


@frozen
class Action:
    keys: str
    letter: str
    label: str
    does: str
    name: str
    node: DOMNode
    """The widget, screen or app that has it."""
    enabled: bool
    in_bar: bool

    @property
    def note(self) -> str:
        if self.enabled:
            return self.does
        _, name, arguments = parse(self.name)
        why = self.node.why_not(name, arguments) if isinstance(self.node, Guarded) else ""
        return f"not now: {why or 'there is nothing here for it'}"


def actions(screen: Screen[Any]) -> list[Action]:
    offered = (active for active in screen.active_bindings.values() if active.binding.id in ACTIONS)
    found = grouped(((active.binding.action, active.node), active) for active in offered)
    listed = []
    for (name, node), same in found.items():
        binding, enabled = same[0].binding, same[0].enabled
        keys = " ".join(dict.fromkeys(screen.app.get_key_display(active.binding) for active in same))
        letter, in_bar = letter_of(ACTIONS[binding.id or ""]), binding.show and not binding.key.startswith(IN_MENU)
        listed.append(Action(keys, letter, binding.description, binding.tooltip, name, node, enabled, in_bar))
    return listed


# -- the menu -------------------------------------------------------------------------------------------------


def open_menu(app: Any) -> None:
    entries = [action for action in actions(app.screen) if action.letter]
    options = [Option(entry.label, entry.note, entry.letter, entry.enabled) for entry in entries]

    def run(at: int) -> None:
        app.call_next(partial(app.run_action, entries[at].name, entries[at].node))

    Choose("What can be done here", options).ask(app, run)


# -- help -----------------------------------------------------------------------------------------------------


class HelpScreen(TextDialog):
    """What each of the six screens answers, and all keys of the screen below."""

    CLASSES = "dialog help"

    def __init__(self, below: Screen[Any]) -> None:
        super().__init__("Help")
        self._below = below

    def lines(self, width: int) -> list[Content]:
        answers, pane, screen, app = "What each screen answers", "In this pane", "On this screen", "Everywhere"
        groups: dict[str, list[Content]] = {answers: [], pane: [], screen: [], app: []}
        here = f"section({getattr(self._below, 'section', '')!r})"
        for action in actions(self._below):
            group = {self.app: app, self._below: screen}.get(action.node, pane)
            group = answers if action.name.startswith("section(") else group
            wide, label = (1, 10) if group is answers else (12, 16)
            mark = "▸" if action.name == here else " "
            head = (f"{mark} {action.keys:<{wide}} ", "bold $footer-key-foreground")
            whole = Content.assemble(head, f"{action.label:<{label}} ")
            groups[group] += hang(whole, action.does, width, "$text-muted")
        listed = [(Content.styled(group, "bold $primary"), lines) for group, lines in groups.items() if lines]
        return [line for title, lines in listed for line in (Content(""), title, *lines)][1:]


# -- the palette ----------------------------------------------------------------------------------------------

MOST_OF_A_KIND = 200
"""Most kernels, lines or functions that are searched, the most expensive first."""
PLACEHOLDER = "Search actions, kernels, lines, functions, sessions"


def _search_result(kind: str, name: str, note: str, go: Callable[[], Any]) -> SimpleCommand:
    return SimpleCommand(f"{kind:<10}{safe(name)}", go, safe(note))


def open_palette(app: Profiler) -> None:
    """Show the palette: the actions that work now, and what the session in view and the saved sessions hold."""
    if isinstance(app.screen, CommandPalette):
        return
    listed = sorted(actions(app.screen), key=lambda action: not action.in_bar)
    works: list[CommandListItem] = [
        _search_result(each.keys, each.label, each.does, partial(app.run_action, each.name, each.node))
        for each in listed
        if each.enabled
    ]
    works.append(_search_result("setting", "Theme", f"colours: {app.theme}", app.action_change_theme))
    providers = (SimpleProvider(app.screen, works), SearchProvider)
    app.push_screen(CommandPalette(providers=providers, placeholder=PLACEHOLDER))  # type: ignore[arg-type]


class SearchProvider(Provider):
    """Finds what the session in view and the saved sessions hold."""

    async def startup(self) -> None:
        app = cast("Profiler", self.app)
        found: list[CommandListItem] = [*of_session(app)]
        for entry in await asyncio.to_thread(lambda: [*app.library().entries()]):
            kind, go = "session" if entry.job is None else "job", partial(app.open_session, entry.path)
            found.append(_search_result(kind, entry.name, str(entry.path.parent), go))
        self._found = SimpleProvider(self.screen, found)(self.screen, self.match_style)

    async def search(self, query: str) -> Hits:
        async for hit in self._found.search(query):
            yield hit


def of_session(app: Profiler) -> Iterator[SimpleCommand]:
    """Yield kernels, functions and lines of the session in view, as far as they are known without reading HLO."""
    from jaxprof.analysis.kernels.measured import seconds_per_call
    from jaxprof.findings.program_result import program_result

    session = app.session
    for run in session.runs.values():
        slowest = sorted(seconds_per_call(run).items(), key=lambda pair: -pair[1])
        for name, duration in slowest[:MOST_OF_A_KIND]:
            note = f"{seconds(duration)} a call, {run.label}"
            yield _search_result("kernel", name, note, partial(app.show, Destination("hlo", run=run.id, kernel=name)))
    for program in session.programs:
        result = program_result(session, program.id)
        for function in result.functions[:MOST_OF_A_KIND]:
            note = f"compiled {function.count}× in {seconds(function.seconds)}"
            to = partial(app.show, Destination("program", "ledger", program.id, text=function.function))
            yield _search_result("function", function.function, note, to)
        hottest = sorted(result.lines, key=lambda line: -line.seconds)
        for where in list(dict.fromkeys(line.location.text for line in hottest))[:MOST_OF_A_KIND]:
            yield _search_result(
                "line", where, "", partial(app.show, Destination("profile", "lines", program.id, text=where))
            )
