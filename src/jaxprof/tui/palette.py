"""The entries of the command palette: every action with its key, and what the session in view, the saved sessions and
the settings hold. Choosing an entry goes there.

What takes long (the list of sessions, the findings from HLO) is read in a thread while the palette is open; that thread
reads the session only after its writer has finished.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from jaxprof.text import safe, shorten
from jaxprof.tui.keys import ACTIONS
from jaxprof.units import seconds

if TYPE_CHECKING:
    from jaxprof.session import Session
    from jaxprof.tui.profiler import Profiler

MOST_OF_A_KIND = 2000
"""Most kernels, lines or functions that are searched, the most expensive first."""
MOST_SHOWN = 12
"""Most hits of one kind."""
PLACEHOLDER = "Search actions, kernels, lines, functions, sessions, findings, settings"
MOST_HLO_BYTES = 4 << 20
"""Most bytes of HLO that are read for the names of its kernels; more would take longer than a search should."""
_KIND_WIDTH = 10
_NAME_WIDTH = 80


def open_palette(app: Profiler) -> None:
    """Show the palette, unless it is already open."""
    if not isinstance(app.screen, CommandPalette):
        app.push_screen(CommandPalette(providers=(ActionProvider, SearchProvider), placeholder=PLACEHOLDER))


def match(query: str, text: str) -> float:
    """Return how well a text matches a query, in 0..1: 0 unless it has all the words; best if it starts with them."""
    folded, words = text.casefold(), query.casefold().split()
    if not words or not all(word in folded for word in words):
        return 0.0
    if folded.startswith(query.casefold().strip()):
        return 1.0
    begins = sum(folded.startswith(word) or any(f"{mark}{word}" in folded for mark in " _./:-(") for word in words)
    return 0.5 + 0.4 * begins / len(words) - min(len(text), 200) / 2000


def marked(query: str, text: str) -> Content:
    """Return the text with the words of the query underlined."""
    content, folded = Content(text), text.casefold()
    for word in query.casefold().split():
        at = folded.find(word)
        if at >= 0 and len(folded) == len(text):
            content = content.stylize("underline", at, at + len(word))
    return content


class ActionProvider(Provider):
    """The actions that work now, each with its key."""

    def _actions(self) -> Iterator[tuple[str, str, str, Callable[[], Any]]]:
        """Yield key, label, description and callback of each action; those of the key bar come first."""
        seen: set[str] = set()
        for active in sorted(self.screen.active_bindings.values(), key=lambda active: not active.binding.show):
            binding = active.binding
            if binding.id in ACTIONS and active.enabled and binding.action not in seen:
                seen.add(binding.action)
                doing = partial(self.app.run_action, binding.action, active.node)
                yield self.app.get_key_display(binding), binding.description, binding.tooltip, doing

    async def discover(self) -> Hits:
        for key, label, does, doing in self._actions():
            yield DiscoveryHit(_line(key, Content(label)), doing, label, does)

    async def search(self, query: str) -> Hits:
        for key, label, does, doing in self._actions():
            score = max(match(query, label), 0.8 * match(query, does), float(query == key))
            if score:
                yield Hit(score, _line(key, marked(query, label)), doing, label, does)


@dataclass(frozen=True, slots=True)
class Found:
    """An entry that can be searched."""

    kind: str
    name: str
    note: str
    go: Callable[[], object]


class SearchProvider(Provider):
    """Finds what the session in view, the saved sessions and the settings hold."""

    async def startup(self) -> None:
        app = cast("Profiler", self.app)
        self._found = [*settings(app), *of_session(app)]
        self._found += await asyncio.to_thread(_read, app, not app.session_grows)

    async def search(self, query: str) -> Hits:
        shown: dict[str, int] = {}
        scored = [
            (max(match(query, entry.name), 0.9 * match(query, f"{entry.name} {entry.note}")), entry)
            for entry in self._found
        ]
        for score, entry in sorted(scored, key=lambda pair: -pair[0]):
            if score and shown.get(entry.kind, 0) < MOST_SHOWN:
                shown[entry.kind] = shown.get(entry.kind, 0) + 1
                name = shorten(safe(entry.name), _NAME_WIDTH)
                line = _line(entry.kind, marked(query, name))
                yield Hit(0.95 * score, line, entry.go, f"{entry.kind} {name}", safe(entry.note))


def _line(head: str, content: Content) -> Content:
    return Content.assemble((f"{head:<{_KIND_WIDTH}}", "$text-accent"), content)


def settings(app: Profiler) -> Iterator[Found]:
    """Yield the settings, each with the screen where it is chosen."""
    yield Found("setting", "Theme", f"colours: {app.theme}", app.action_change_theme)
    for title, note, action in (
        ("Preset", "quick or published sizes", "preset"),
        ("Devices", "where to run", "devices"),
        ("Budget, launches, parameters", "of the workload under the cursor", "edit"),
    ):
        yield Found("setting", title, note, partial(_on_home, app, action))


def _on_home(app: Profiler, action: str) -> None:
    app.action_go("home")
    app.call_after_refresh(app.run_action, f"screen.{action}")


def of_session(app: Profiler) -> Iterator[Found]:
    """Yield kernels, functions, lines and findings of the session in view, as far as they are known without reading
    HLO."""
    from jaxprof.analysis.measured import seconds_per_call
    from jaxprof.analysis.programs.derive import program_result

    session = app.session
    for run in session.runs.values():
        slowest = sorted(seconds_per_call(run).items(), key=lambda pair: -pair[1])
        for name, duration in slowest[:MOST_OF_A_KIND]:
            yield Found("kernel", name, f"{seconds(duration)} a call, {run.label}", partial(app.show_hlo, run.id, name))
    for program in session.programs:
        result = program_result(session, program.id)
        for function in result.functions[:MOST_OF_A_KIND]:
            note = f"compiled {function.count}× in {seconds(function.seconds)}"
            yield Found("function", function.function, note, _to(app, program.id, "ledger", function.function))
        for line in _hottest(result.lines):
            where = f"{line.place.file}:{line.place.line}"
            yield Found("line", where, f"{seconds(line.seconds)} {line.call}", _to(app, program.id, "lines", where))


def _hottest(lines: Iterable[Any]) -> list[Any]:
    best: dict[Any, Any] = {}
    for line in sorted(lines, key=lambda line: -line.seconds):
        best.setdefault(line.place, line)
    return list(best.values())[:MOST_OF_A_KIND]


def _to(app: Profiler, run: str, view: str, words: str) -> Callable[[], None]:
    return partial(app.show_program, run, view, words)


def _read(app: Profiler, at_rest: bool) -> list[Found]:
    """Return the saved sessions, and the findings of a session that nobody writes. Runs in a thread."""
    entries = []
    for entry in app.library().listed(None):
        kind = "session" if entry.job is None else "job"
        entries.append(Found(kind, entry.name, str(entry.path.parent), partial(app.open_session, entry.path)))
    if at_rest and app.session.runs:
        entries += [*findings(app, app.session), *kernels_not_measured(app, app.session)]
    return entries


def kernels_not_measured(app: Profiler, session: Session) -> Iterator[Found]:
    """Yield the kernels of runs that no capture has measured, from their HLO."""
    from jaxprof.analysis.measured import kernels_of, seconds_per_call

    for run in session.runs.values():
        text = run.texts.get("hlo")
        if text is None or text.bytes > MOST_HLO_BYTES or seconds_per_call(run):
            continue
        for kernel in (kernels_of(session, run.id) or ())[:MOST_OF_A_KIND]:
            yield Found("kernel", kernel.name, f"not measured, {run.label}", partial(app.show_hlo, run.id, kernel.name))


def findings(app: Profiler, session: Session) -> Iterator[Found]:
    """Yield the findings of the session, with their costs."""
    from jaxprof.analysis.explain.derive import explanation
    from jaxprof.report.explain import cost_text, place_text

    for finding in explanation(session, "last").findings:
        note = "  ".join(filter(None, (finding.message, place_text(finding), cost_text(finding.cost))))
        yield Found("finding", finding.code, note, partial(_explain, app, session))


def _explain(app: Profiler, session: Session) -> None:
    from jaxprof.tui.kit.explanation import ExplanationDialog

    path = app.session_path
    app.push_screen(ExplanationDialog(session, app.library().name_of(path) if path is not None else "last"))
