"""How keys lead to screens: the sections, the modes that show them, and the way back.

`tui/keys.py` has the action of each key: `section('kernels')` for `4`. `Navigator.action_section` decides which mode
shows that section of the session in view, and makes a `Destination` of it; the screen of that mode shows the
destination in its `arrive`. Screens are looked up by name, so this file imports none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from textual.actions import ActionParseResult, SkipAction, parse
from textual.app import App
from textual.screen import Screen
from textual.widgets import Input

from jaxprof.tui.keys import IN_MENU, key_text
from jaxprof.tui.kit.guard import LEAST_COLUMNS, LEAST_ROWS, Guarded
from jaxprof.tui.kit.host import SECTION_OF, Destination
from jaxprof.tui.shell.opened_session import OpenedSession

if TYPE_CHECKING:
    from textual.binding import Binding
    from textual.dom import DOMNode
    from textual.widget import AwaitMount

    from jaxprof.hlo.stages import ModuleStages
    from jaxprof.session import Session


def create(module: str, name: str, *arguments: object) -> Any:
    """Create a screen, or call a function, of a module of the app, which is imported when it is first needed."""
    return getattr(import_module(f"jaxprof.tui.{module}"), name)(*arguments)


WIDTHS: list[tuple[int, str]] | None = [(0, "-tiny"), (LEAST_COLUMNS, "-narrow"), (110, "-wide"), (160, "-very-wide")]
HEIGHTS: list[tuple[int, str]] | None = [(0, "-low"), (LEAST_ROWS, "-short"), (34, "-tall")]
"""Stylesheet classes of a screen by its least width or height; `-tiny` and `-low` show only a note."""


class Navigator(Guarded, App[None]):
    """The app as a set of screens that show one session."""

    MODES: ClassVar[dict[str, Any]] = {
        mode: partial(create, f"{mode}.screen", f"{mode.title()}Screen") for mode in SECTION_OF
    }
    DEFAULT_MODE = "home"
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS

    def __init__(self) -> None:
        super().__init__()
        self.destination = Destination("home")
        """Where the app is, or where the last key leads. Its mode is the current one, except between the two."""
        self.opened = OpenedSession()
        self.job_folder: Path | None = None
        self.session_screens: list[Any] = []
        """Screens of the modes created so far (`SessionScreen`)."""
        self._trail: list[str] = []
        """Modes that Esc leads back through; the most recent is last."""
        self._summary = ""
        """Mode of the summary last shown for the session in view."""
        self._theme_of: WeakKeyDictionary[Screen[Any], str] = WeakKeyDictionary()
        """The theme in which Textual last styled each screen."""

    @property
    def session(self) -> Session:
        """The open session: the one that this app writes, or one that the user opened; else an empty one."""
        return self.opened.session

    # -- where to go ------------------------------------------------------------------------------------------

    def action_section(self, name: str) -> None:
        """Go to a section; the key of the section in view leads to its next mode."""
        modes, here = self._modes_of(name), self.destination.mode
        # In view, or where a key leads that was pressed just before: two presses at once go on by two modes.
        in_view = here != self.current_mode or any(screen.section == name for screen in self.screens_in_view())
        mode = self._summary if name == "summary" and self._summary in modes else modes[0]
        run, view = self.destination.run, ""
        if name == "summary" and here in modes and in_view:
            mode = modes[(modes.index(here) + 1) % len(modes)]
        elif mode == "profile":
            view = "compile" if name == "compiles" else name
            # XLA compiles nothing for NumPy, and no whole program op by op: show another run
            how = self.session.runs[run].plan.how if run in self.session.runs else ""
            if how == "numpy" or (how == "eager" and name != "timeline"):
                run = ""
        elif mode == "program":
            view = "ledger" if name == "compiles" else "summary"
        self.destination = replace(self.destination.at(mode), view=view, run=run, section=name)
        if mode == self.current_mode:
            self.show(self.destination)
        else:
            # Later, because of several keys at once only the last counts: changing the screen costs a new layout, and
            # nothing is drawn until all of them are done.
            self.call_later(self._enter)

    def _modes_of(self, section: str) -> list[str]:
        if section in ("start", "kernels"):
            return ["home" if section == "start" else "hlo"]
        programs = ["program"] if self.session.programs else []
        if section != "summary":
            return programs if section == "compiles" and programs else ["profile"]
        job = ["job"] if self.job_folder is not None else []
        measured = len(self.session.runs) > len(programs) or not programs + job
        return [*programs, *(["results"] if measured else []), *job]

    def lacking(self) -> frozenset[str]:
        """Return the sections that have nothing to show for the session yet; each says which key gets it."""
        runs = self.session.runs.values() if self.opened.run_ids else ()  # an empty session has much to import
        if self.job_folder is not None and self.destination.module is None and not runs:
            return frozenset(("compiles", "kernels", "timeline", "memory"))
        if not runs or self.destination.unread is not None:
            return frozenset()
        texts = {name for run in runs for name in run.texts}
        has_data = {
            "compiles": any(run.is_program or run.compile_passes is not None for run in runs),
            "kernels": "hlo" in texts or any(run.measured for run in runs),
            "timeline": "timeline" in texts or bool(self.session.programs),
            "memory": "hlo" in texts or any(run.buffers is not None or run.memory is not None for run in runs),
        }
        return frozenset(section for section, has in has_data.items() if not has)

    # -- going there ------------------------------------------------------------------------------------------

    def show(self, destination: Destination) -> None:
        """Go to a destination, at once; by default the program in view stays. Esc returns."""
        before = self.destination.at(destination.mode)
        if destination.run or destination.file is not None:
            self.destination = replace(destination, run=destination.run or before.run)
        else:
            self.destination = replace(destination, run=before.run, file=before.file, module=before.module)
        if destination.mode != self.current_mode:
            self._enter()
            return
        for screen in self.screens_in_view():
            screen.come_into_view()

    def _enter(self) -> None:
        """Go to the mode of the destination, unless an earlier call has."""
        if self.destination.mode != self.current_mode:
            self.switch_mode(self.destination.mode)

    def switch_mode(self, mode: str) -> AwaitMount:
        """Go to a mode, and remember where from. Going to a mode on the way back returns to it; a key that was pressed
        before and leads to another mode is dropped."""
        if mode != self.destination.mode:
            self.destination = self.destination.at(mode)
        if SECTION_OF[mode] == "summary":
            self._summary = mode
        if mode in self._trail:
            del self._trail[self._trail.index(mode) :]
        elif mode != self.current_mode:
            self._trail.append(self.current_mode)
        return super().switch_mode(mode)

    def arrive(self) -> Destination:
        """Return the destination, once: at the next visit the screen is as the user left it."""
        destination = self.destination
        self.destination = replace(destination.at(destination.mode), section=destination.section)
        return destination

    def select(self, run: str = "", module: ModuleStages | None = None, file: Path | None = None) -> None:
        """Let all screens show this run, or this module of a `file`, by default of the same one as before."""
        before = self.destination
        file = before.unread if module is None else file or before.file
        self.destination = replace(before, run=run or before.run, module=module, file=file)

    async def action_back(self) -> None:
        if len(self.screen_stack) > 1:
            self.pop_screen()
        else:
            self.step_back()

    def step_back(self) -> None:
        """Go to the previous mode, at the end of the trail to Start."""
        self.switch_mode(self._trail[-1] if self._trail else "home")

    def screens_in_view(self) -> list[Any]:
        """Return the screens of the current mode, including those beneath a dialog."""
        return [screen for screen in self.session_screens if self.current_mode == screen.MODE and screen.is_attached]

    def show_state(self) -> None:
        for screen in self.screens_in_view():
            screen.show_state()

    # -- keys that work everywhere ----------------------------------------------------------------------------

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        if await super().run_action(action, default_namespace, namespaces):
            return True
        node = default_namespace
        if not isinstance(node, Guarded) or not isinstance(action, str):
            return False
        _, name, arguments = parse(action)
        reason = node.why_not(name, arguments)
        if reason:
            self.say(reason)
        return bool(reason)

    def get_key_display(self, binding: Binding) -> str:
        """Return the key as people write it; Textual does not know the letters in the menu."""
        return key_text(binding.key) if binding.key.startswith(IN_MENU) else super().get_key_display(binding)

    def action_press(self, key: str) -> None:
        self.simulate_key(key)

    def action_help(self) -> None:
        if type(self.screen).__name__ != "HelpScreen":
            self.push_screen(create("shell.actions", "HelpScreen", self.screen))

    def action_menu(self) -> None:
        """Open the menu. Its key is an ordinary letter in a text field and in the menu itself."""
        if isinstance(self.focused, Input) or getattr(self.screen, "lettered", False):
            raise SkipAction
        create("shell.actions", "open_menu", self)

    def action_command_palette(self) -> None:
        create("shell.actions", "open_palette", self)

    # -- styles -----------------------------------------------------------------------------------------------

    def refresh_css(self, animate: bool = True) -> None:
        """Parse and apply the stylesheets again if the theme has changed. Textual asks for that two or three times when
        a screen first comes into view, 40 ms each, although each widget was styled when it was made."""
        themes = {self._theme_of.get(screen, self.theme) for screen in self.screen_stack}
        if themes != {self.theme}:
            super().refresh_css(animate)
        self._theme_of.update(dict.fromkeys(self.screen_stack, self.theme))

    def get_screen(self, screen: Any, screen_class: Any = None) -> Any:
        """Return a screen, whose stylesheet is read before its widgets are made: Textual reads it after them, and then
        styles all of them again, and those in view."""
        created = super().get_screen(screen, screen_class)
        unread = [path for path in created.css_path if not self.stylesheet.has_source(str(path))]
        if unread:
            self.stylesheet.read_all(unread)
            self.stylesheet.parse()
        return created
