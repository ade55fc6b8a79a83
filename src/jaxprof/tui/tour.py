"""The first page of help: what each screen answers, with the keys to it and what is seen then.

The figures are examples, and say so. The keys come from the key table, so a user's own keys stand here, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from textual.content import Content

from jaxprof.text import shorten
from jaxprof.tui.keys import key_of
from jaxprof.tui.profiler import JOB, PLACES

_ACTION = re.compile(r"\{([\w.]+)\}")
_INDENT = 13
"""Columns of the names of the screens."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A question, and the way to its answer."""

    mode: str
    """The screen that answers it."""
    question: str
    way: str
    """What to press, from the start or where it says so; ids of actions in braces."""
    seen: str
    """What is seen then, for example."""

    def text(self, width: int, *, here: bool) -> Content:
        """Two lines: the question, the way and what is seen; `here`: this is the screen in view."""
        place = next(place for place in (*PLACES, JOB) if place.name == self.mode)
        mark = "▸" if here else " "
        name = f"{mark}{place.key} {place.title}".ljust(_INDENT)
        head = Content.assemble((name, "bold $primary" if here else "$text-muted"), (self.question, "bold"))
        way = _ACTION.sub(lambda action: key_of(action[1]), self.way)
        room = width - _INDENT - len(way) - 3
        line = Content.assemble(" " * _INDENT, (way, "$footer-key-foreground"), " → ", shorten(self.seen, max(8, room)))
        return Content("\n").join([head, line.stylize_before("$text-muted")])


STOPS = (
    Stop("home", "How do I see my own code?",
         "{home.program} train.py Enter, or {home.own} step.py:f", "it runs unchanged"),
    Stop("run", "What runs now, and how long will it take?",
         "{app.mode.run}, then {run.log} for its output", "compile 12.1 s, 2 runs to go"),
    Stop("results", "Is jit faster, and from how many calls on?",
         "Enter on a workload, then {app.mode.results}", "6.9× (6.8-7.0), 12 calls"),
    Stop("hlo", "What did XLA make of it? Which kernel is slow?",
         "{results.hlo} on a result", "gemm_fusion.5  1.92 ms  71 % of peak"),
    Stop("sessions", "How do I send it, and how was it last week?",
         "{app.mode.sessions}, then {sessions.save_as}; or {sessions.history}", "one file that opens anywhere"),
    Stop("profile", "When is the device idle? Does it fit?",
         "{results.timeline}, or {results.memory}, on a result", "idle 3.1 ms a step; peak 1.28 GiB"),
    Stop("program", "Which line is slow? Why was it compiled again?",
         "{program.lines}; or {program.ledger}", "train.py:90  62 %; shape of batch varies"),
)  # fmt: skip
OF_JOBS = Stop("job", "Which of many processes is slow, and why?",
               "jaxprof open train.jaxprof.d", "process 1: 41 % input")  # fmt: skip
"""On the page where a job is in view: the page is full."""


def tour(width: int, mode: str) -> Content:
    """All stops; that of the screen in view is marked."""
    shown = (*STOPS[1:], OF_JOBS) if mode == OF_JOBS.mode else STOPS
    stops = [stop.text(width, here=stop.mode == mode) for stop in shown]
    advice, search = key_of("program.explain"), key_of("app.palette")
    last = f"Figures are examples. {advice}: what to change. {search}: search everything."
    return Content("\n").join([*stops, Content(""), Content.styled(last, "$text-muted")])
