"""The Profile screen: when things ran, for how long, and in how much memory. It shows the captures of a run (which are
not timings): timeline, compilation and memory; and of a recorded program its time: summed, by line, and under loops.

Each view is a tab. A program of an opened profile has its own kernels and shares the timeline of the profile; an opened
profile also has an overview, which is its first view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from typing import Any, cast

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content

from jaxprof.analysis.kernels.memory import memory_of_dump, memory_of_run
from jaxprof.analysis.programs.result import ProgramResult
from jaxprof.analysis.timeline import TEXT_NAME
from jaxprof.analysis.timeline.profile import ProfileOverview, ProfileProgram, overview, with_hlo
from jaxprof.base.text import columns, safe, shorten
from jaxprof.base.units import UNKNOWN, bytes_, counted, integer, percent, percent_or_less, seconds
from jaxprof.facts import Facts, column
from jaxprof.facts.captures import DEVICE_STEPS
from jaxprof.findings.program_result import program_result
from jaxprof.report import Table, text_lines
from jaxprof.report.memory import fit_words
from jaxprof.report.session_text import kernel_table
from jaxprof.session import Run
from jaxprof.session.run import IMPORTED
from jaxprof.tui.kit.captures import (
    OF_A_SIDE,
    TrustLine,
    can_capture,
    first_with_capture,
    how_to_capture,
    nothing_was_run,
    program_without_capture,
    source_of,
    views_of,
    whole_of,
    why_no_capture,
)
from jaxprof.tui.kit.dialogs import Choose, Option
from jaxprof.tui.kit.filter import FilterLine
from jaxprof.tui.kit.guard import HIDDEN, in_thread, on
from jaxprof.tui.kit.host import Destination
from jaxprof.tui.kit.picture import show_titles
from jaxprof.tui.kit.python_source import SourceLines
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.screen import ViewsScreen
from jaxprof.tui.kit.screen_bars import StageTabs, Tab
from jaxprof.tui.kit.table_columns import table_lines
from jaxprof.tui.kit.text_lists import FactLine, FactList, FactTarget, Leads, heading
from jaxprof.tui.profile.memory import BufferList, MemoryView
from jaxprof.tui.profile.timeline.pane import TimelinePane
from jaxprof.tui.profile.times import TimeNode, TimePane, TimeTree, by_line, nested, passes

KERNELS, PROGRAMS, DEVICES = 16, 8, 16


class OverviewList(FactList, keys="overview"):
    EMPTY = "Reading the profile…"


def overview_facts(profile: ProfileOverview, width: int) -> Sequence[FactLine]:
    """Return what a profile holds: its devices, the kernels that took longest, and its programs, each in a table."""
    devices, kernels = profile.devices, [kernel for _, kernel in profile.kernels]
    facts = [counted(len(devices), "device") if devices else "no device"]
    capture = profile.run.captures.get(IMPORTED)
    if capture is not None:
        facts.insert(0, capture.platform)
        facts += [seconds(capture.wall_seconds)] if capture.wall_seconds is not None else []
        facts += [counted(capture.events, "event")] if capture.events is not None else []
        facts += [bytes_(capture.bytes)] if capture.bytes is not None else []
    lines: list[FactLine] = [heading(profile.run.label, " · ".join(filter(None, facts)))]
    span = next((device.span_seconds for device in devices if device.span_seconds is not None), None)
    note = f"idle and busy are of the whole {seconds(span)}" if span is not None else ""
    shown = [fact for fact in DEVICE_STEPS if width >= 100 or fact.key != "quartiles_seconds"]
    of_devices: Table[Any] = Table(shown, devices, most=DEVICES, rest="and {} more devices")
    lines += _table_lines("Devices", note, of_devices, (), width)
    with_hlo = {program.run.id for program in profile.programs if program.has_hlo}
    if kernels:
        targets = (
            FactTarget("", kernel.name, kernel=True, run=run) if run in with_hlo else None
            for run, kernel in profile.kernels[:KERNELS]
        )
        for rates, spread in ((True, True), (False, True), (False, False)):  # as many as leave room for the names
            table = kernel_table(kernels, programs=True, rates=rates, spread=spread)
            table = replace(table, most=KERNELS, rest="and {} more kernels")
            if max(map(columns, text_lines(table))) <= width:
                break
        lines += _table_lines("Kernels", "self time", table, targets, width)
        for device, took in profile.unattributed_seconds.items():
            if took > 0:
                words = f"{seconds(took)} on {device} belong to no HLO op, copies included"
                lines.append(Content.styled(safe(words), "$text-muted"))
    else:
        lines += (Content(""), heading("Kernels", "none were recorded"))
    programs = (
        FactTarget("", "", run=program.run.id) if program.has_hlo else None for program in profile.programs[:PROGRAMS]
    )
    of_programs = Table(_PROGRAM, profile.programs, most=PROGRAMS, rest="and {} more programs")
    lines += _table_lines("Programs", "", of_programs, programs, width)
    return lines


def _table_lines(
    title: str, note: str, table: Table[Any], targets: Iterable[FactTarget | None], width: int
) -> Iterator[FactLine]:
    """Yield a table of a report below a blank line and its title, each row with its target; nothing without rows."""
    lines = list(table_lines(table, width))
    if lines:
        yield from (Content(""), heading(title, note), lines[0])
        yield from (Leads(line, target) for line, target in zip(lines[1:], chain(targets, repeat(None)), strict=False))


def _peak(program: ProfileProgram) -> str:
    memory = program.memory
    peak = memory.peak_bytes if memory is not None else None
    return bytes_(peak) + (" est." if memory is not None and memory.is_estimate and peak is not None else "")


_PROGRAM: Facts[ProfileProgram] = (
    column("share", "share", percent_or_less, right=True),
    column("self", "seconds", seconds, right=True),
    column("calls", lambda program: getattr(program.run.measured.get(IMPORTED), "calls", None), integer),
    column("peak memory", _peak, right=True),
    column("program", lambda program: program.run.plan.workload + "  no HLO in the profile" * (not program.has_hlo),
           gives_way=True),
)  # fmt: skip


def allocator_line(run: Run) -> Content:
    memory = run.memory
    if memory is None or memory.allocator_peak_bytes is None:
        why = "a CPU's allocator keeps no count" if run.plan.device.startswith("cpu") else "the device reports none"
        if run.plan.how == IMPORTED:
            why = "a profile has none"
        return Content.styled(f"allocator peak, measured: {UNKNOWN} ({why})", "$text-muted")
    limit = memory.allocator_limit_bytes
    share = memory.allocator_peak_bytes / limit if limit else None
    of = f" of {bytes_(limit)}, {percent(share)}" if limit else ""
    return Content.assemble("allocator peak, measured: ", (bytes_(memory.allocator_peak_bytes), "bold"), of)


def arrays_of(program: ProgramResult) -> list[tuple[float, int]]:
    """Return the bytes of live arrays by second. Repeated counts are not recorded, so one holds until the next."""
    counts = program.arrays.counts if program.arrays is not None else ()
    points = [(second, size) for second, _, size in counts]
    return [*points, (program.wall_seconds, points[-1][1])] if points else []


_NO_MEMORY = {
    "numpy": "NumPy's memory is unknown: XLA compiles no program for it.",
    "eager": "An op-by-op run has no single program whose memory could be shown.",
    "imported": "This profile has no HLO of the program, from which its memory could be derived.",
}
_NO_SCHEDULE = "This module has no schedule, so the lifetimes of its buffers are unknown."
_NO_PASSES = {
    "numpy": "NumPy compiles nothing.",
    "eager": "An op-by-op run compiles each op by itself: the details of the run list the time of each.",
    "imported": "This profile has no compilation with phases. One that starts before the first call of a function "
    "has them; times of kernels are better read from one that is started after it.",
}
"""Why a run has none, by how it was run."""


def why_no_passes(run: Run) -> str:
    if run.plan.how in _NO_PASSES:
        return _NO_PASSES[run.plan.how]
    if not run.over:
        return "The compile is captured after the timing, which has not finished yet."
    untaken = [row.message for row in run.trust["compile"].rows] if "compile" in run.trust else []
    if untaken and "compile" not in run.captures:
        return f"The compile was not captured: {untaken[0]}."
    if run.plan.side:
        return OF_A_SIDE
    return "The compile was not captured (--no-capture)."


VIEWS = {
    "overview": "Overview", "timeline": "Timeline", "time": "Time", "flame": "Flame", "lines": "Lines",
    "compile": "Compile", "memory": "Memory",
}  # fmt: skip
OF_PROGRAM = ("time", "flame", "lines")


class ProfileScreen(ViewsScreen, keys="profile"):
    MODE = "profile"
    AUTO_FOCUS = "#timeline"
    VIEWS = VIEWS
    _overview_of: Run | None = None
    """The run of the whole profile whose overview is shown."""

    def __init__(self) -> None:
        super().__init__()
        self._view = "timeline"
        self._trees: dict[str, object] = {}
        """What the trees were made of, by view."""

    @property
    def section(self) -> str:
        return {"compile": "compiles", "memory": "memory"}.get(self._view, "timeline")

    def compose_body(self) -> ComposeResult:
        yield StageTabs(id="profile-tabs")
        yield TrustLine(id="trust")
        yield FilterLine("flame", "lines")
        with Vertical(id="profile-body"):
            with Vertical(id="overview-pane"):
                yield OverviewList(id="overview")
            yield TimelinePane(id="timeline-pane")
            lines = (TimeTree("line", "location", id="flame"), TimeTree("line", "main cost", id="lines"))
            for widget in (TimePane(id="time"), *lines, TimeTree("phase or pass", "stage", id="compile")):
                with Vertical(id=f"{widget.id}-pane", classes="box") as box:
                    box.border_title = VIEWS[widget.id or ""]
                    yield widget
            yield MemoryView(id="memory-pane")

    # -- which run --------------------------------------------------------------------------------------------

    @property
    def _program(self) -> Run | None:
        """The recorded program whose time is shown: the run in view, or the one that the session is of."""
        run, programs = self.run, self.profiler.session.programs
        return run if run is not None and run.is_program else next(reversed(programs), None)

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        session, program = self.profiler.session, self._program
        if replaced or self._run not in session.runs:
            self._trees.clear()
            for tree in self.query(TimeTree):
                tree.show({})
            self._choose(first_with_capture(session, self.profiler.destination.run))
        elif self._run in runs or (program is not None and program.id in runs):
            self._choose(self._run)

    def arrive(self, destination: Destination) -> None:
        """Show the run in view; for a program without a timeline, where its time went."""
        session, view = self.profiler.session, destination.view
        run = session.runs.get(destination.run)
        if run is not None and run.id != self._run and (views_of(session, run) or (view and not run.is_program)):
            self._choose(run.id)
        elif not session.runs:  # the message depends on what else is open
            self._choose("")
        if view == "timeline" and self._program is not None and view not in self._has():
            view = "time"
        super().arrive(replace(destination, view=view))
        if destination.kernel:
            self.query_one(TimelinePane).want_kernel(destination.kernel)

    def _choose(self, run_id: str) -> None:
        self._run = run_id
        session, run = self.profiler.session, self.run
        source = source_of(session, run) if run is not None else None
        words = self._words(run)
        if not self.check_action("tab", (self._view,)):
            self.action_tab("timeline")
        self.share_room()
        self.refresh_bindings()
        if run is not None:
            words = words or f"No timeline. {why_no_capture(run)}"
            whole = whole_of(session, run)
            if whole is not None and whole is not self._overview_of:
                self._overview_of = whole
                self.query_one(OverviewList).show(None, lambda width: ())

                def show(contents: ProfileOverview) -> None:
                    self.query_one(OverviewList).show(whole, partial(overview_facts, contents))

                # in a thread, because that reads the HLO of its programs
                in_thread(self, lambda: overview(session, whole), "overview", then=show)
        recorded = source is not None and TEXT_NAME in source.texts
        self.query_one(TimelinePane).show(session, source if recorded else None, words)

    @on(TimeTree.Sorted)
    def share_room(self) -> None:
        """Display the view, and show what is derived for this view alone."""
        super().share_room()
        run, program = self.run, self._program
        captured = not self._words(run) and self._view not in OF_PROGRAM  # else the views say it
        source = source_of(self.profiler.session, run) if run is not None and captured else None
        self.query_one(TrustLine).show_run(source)
        if self._view == "memory":
            session, words, view = self.profiler.session, self._words(run), self.query_one(MemoryView)
            if (module := self.profiler.destination.module) is not None:
                view.read(module, lambda: memory_of_dump(module), _NO_SCHEDULE)
            elif run is None or words:
                recorded = program_result(session, run.id) if run is not None and run.is_program else None
                known = (fit_words(session, recorded), arrays_of(recorded)) if recorded is not None else ()
                view.show_words(words, *known)
            else:
                compiled = with_hlo(session, run)
                why = "No memory was recorded." if compiled.over else "The program is not compiled yet."
                why, key = _NO_MEMORY.get(compiled.plan.how, why), (id(session), compiled.id)
                view.read(key, lambda: memory_of_run(session, compiled.id), why, allocator_line(compiled))
        elif self._view == "compile":
            found = run.compile_passes.tree if run is not None and run.compile_passes is not None else None
            words = self._words(run) or (why_no_passes(run) if run is not None else "")
            self._show_tree(found, lambda: passes(found) if found is not None else {}, words)
        elif self._view in OF_PROGRAM and program is not None:
            result = program_result(self.profiler.session, program.id)
            if self._view == "time":
                self.query_one(TimePane).show(result, self._words(run))
                return
            make = partial(nested if self._view == "flame" else by_line, result)
            grows = not result.ended and self.profiler.session_grows
            empty = "No lines sampled yet." if grows else "No line was sampled."
            self._show_tree(result, make, empty, counted(result.samples, "sample"))

    def _show_tree(self, of: object, make: Callable[[], Mapping[str, TimeNode]], empty: str, note: str = "") -> None:
        """Show the trees of `of` in the open view, unless they are there; the words `empty` if there are none."""
        tree, before = self.query_one(f"#{self._view}", TimeTree), self._trees.get(self._view)
        tree.show_empty(empty)
        if before is not of:
            self._trees[self._view] = of
            tree.show(make(), same=before is not None and self._view in OF_PROGRAM)
        words = (tree.order_in_words, note) if tree.count else ()
        show_titles(self.query_one(f"#{self._view}-pane"), subtitle=Content(" · ".join(filter(None, words))))

    def _words(self, run: Run | None) -> str:
        """Return why there is nothing to show: nothing was run, or the program was not captured; empty otherwise."""
        if run is None:
            return nothing_was_run(self.profiler)
        program = program_without_capture(self.profiler.session)
        return how_to_capture(self.profiler, program) if program is run else ""

    # -- tabs -------------------------------------------------------------------------------------------------

    def _has(self) -> frozenset[str]:
        run = self.run
        has = views_of(self.profiler.session, run) if run is not None else frozenset()
        return has.union(OF_PROGRAM) if self._program is not None else has

    def tabs(self) -> Iterator[Tab]:
        has, program = self._has(), self._program
        usual = {"timeline", "memory"} if program is not None else {"timeline", "compile", "memory"}
        for name, title in VIEWS.items():
            if name in has | usual | {self._view}:
                yield Tab(name, title, enabled=name in has or name == self._view)
        module = self.profiler.destination.module if self._view == "memory" else None
        run = program if self._view in OF_PROGRAM else self.run
        label = run.label if run is not None else ""
        label = module.title if module is not None else label
        yield Tab("", shorten(label, 60), shorten(label, 24), enabled=False)

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        """Hide the capture unless one is missing, absent views, and the filter where there is no list of lines."""
        session, run = self.profiler.session, self.run
        if action == "capture" and not can_capture(self.profiler, program_without_capture(session)):
            return HIDDEN
        if action == "tab" and parameters == ("overview",) and (run is None or whole_of(session, run) is None):
            return HIDDEN
        if action == "tab" and parameters[0] in OF_PROGRAM and self._program is None:
            return HIDDEN
        if action == "filter" and self._view not in ("flame", "lines"):
            return HIDDEN
        return super().why_not(action, parameters)

    # -- keys -------------------------------------------------------------------------------------------------

    def action_choose_run(self) -> None:
        session = self.profiler.session
        runs = list(session.runs.values())
        if not runs:
            return
        options = [Option(run.label, ", ".join(sorted(views_of(session, run))) or "no capture") for run in runs]
        current = next((n for n, run in enumerate(runs) if run.id == self._run), 0)

        def take(number: int) -> None:
            self.profiler.select(runs[number].id)
            self._choose(runs[number].id)

        Choose("Which run?", options, current).ask(self.app, take)

    @on(RowList.Chosen, "#overview")
    def _to_hlo_of(self) -> None:
        target = self.query_one(OverviewList).target
        if target is not None:
            self.profiler.show(Destination("hlo", run=target.run, kernel=target.name))

    @on(RowList.Chosen, "#flame, #lines")
    def _show_source(self, message: RowList.Chosen) -> None:
        row = cast("TimeTree", message.rows).current_row
        if row is not None and row.where is not None:
            self.app.push_screen(SourceLines(row.where, self.profiler.session.sources))

    @on(RowList.Chosen, "#memory")
    def _to_instruction(self) -> None:
        session, buffer = self.profiler.session, self.query_one(BufferList).current_row
        if buffer is not None and buffer.instruction:
            of_file = self.profiler.destination.module is not None
            run = "" if of_file else with_hlo(session, session.runs[self._run]).id
            self.profiler.show(Destination("hlo", run=run, kernel=buffer.instruction))

    async def action_back(self) -> None:
        if self._view == "memory" and self.query_one(MemoryView).to_peak():
            return
        if self._view in ("flame", "lines") and self.query_one(FilterLine).value:
            self.action_unfilter()
        elif self._view != "timeline" or not self.query_one(TimelinePane).step_back():
            self.profiler.step_back()
