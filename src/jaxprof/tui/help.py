"""Help: a tour of the questions that the screens answer, then the keys of the screen below, made from its bindings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content

from jaxprof.text import shorten
from jaxprof.tui.keys import in_words, key_of
from jaxprof.tui.kit.dialogs import TextDialog
from jaxprof.tui.kit.drawing import hang
from jaxprof.tui.profiler import PLACES, ModeScreen

if TYPE_CHECKING:
    from textual.screen import Screen


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
        place = next(place for place in PLACES if place.name == self.place)
        mark = "▸" if here else " "
        name = f"{mark}{place.key} {place.title}".ljust(_INDENT)
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
        place = self._below.place if isinstance(self._below, ModeScreen) else ""
        return tour(width, place) if self._on_tour else self._key_lines(width)

    def _key_lines(self, width: int) -> list[Content]:
        lines: list[Content] = []
        for place, actions in self._groups().items():
            lines += [Content("")] if lines else []
            lines.append(Content.styled(place, "bold $primary"))
            for same in actions.values():
                shown = " ".join(dict.fromkeys(self.app.get_key_display(binding) for binding in same))
                head = Content.assemble(
                    (f"  {shown:<12} ", "bold $footer-key-foreground"), f"{same[0].description:<16} "
                )
                lines += hang(head, same[0].tooltip, width, "$text-muted")
        return lines

    def _groups(self) -> dict[str, dict[str, list[Binding]]]:
        """Return bindings by place (focused pane, screen, app) and action."""
        groups: dict[str, dict[str, list[Binding]]] = {"In this pane": {}, "On this screen": {}, "Everywhere": {}}
        for active in self._below.active_bindings.values():
            binding = active.binding
            if not binding.description or not binding.id:
                continue
            everywhere, screen = active.node is self.app, active.node is self._below
            place = "Everywhere" if everywhere else "On this screen" if screen else "In this pane"
            groups[place].setdefault(binding.action, []).append(binding)
        return {place: actions for place, actions in groups.items() if actions}
