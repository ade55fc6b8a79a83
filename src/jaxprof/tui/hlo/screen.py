"""The HLO screen: what XLA made of a program. Kernels first, then what is inside them, then the text of each stage.

A thread reads, parses and analyses the program part by part, the kernels first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Static

from jaxprof.analysis.kernels import modules_of
from jaxprof.analysis.kernels.hlo_program import HloProgram
from jaxprof.analysis.kernels.measured import measure_kernels
from jaxprof.analysis.kernels.ranking import FEW, Ranking, needs_origins, ranking_on, sort_kernels
from jaxprof.base.text import safe
from jaxprof.base.units import scaled
from jaxprof.devices.absent import machine_of
from jaxprof.hlo.kernels.cost.peaks import DEVICES, DevicePeaks
from jaxprof.hlo.kernels.kernels import with_running
from jaxprof.hlo.kernels.notices import Notice, notices
from jaxprof.hlo.paths import modules_at
from jaxprof.hlo.stages import STAGES, ModuleStages
from jaxprof.report import Piece
from jaxprof.tui.hlo.kernel_side import LISTS, KernelSide
from jaxprof.tui.hlo.modules import OpenedModule, first_of, open_in_thread
from jaxprof.tui.hlo.stage_side import TITLES, StageSide
from jaxprof.tui.keys import in_words, key_of
from jaxprof.tui.kit.captures import (
    TrustLine,
    can_capture,
    how_to_capture,
    nothing_was_run,
    program_without_capture,
    source_of,
)
from jaxprof.tui.kit.dialogs import Choose, Option, ReportDialog, report_dialog
from jaxprof.tui.kit.filter import FilterLine
from jaxprof.tui.kit.guard import HIDDEN, in_daemon, in_thread, on
from jaxprof.tui.kit.host import Destination
from jaxprof.tui.kit.picture import Lines
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.screen import ViewsScreen
from jaxprof.tui.kit.screen_bars import StageTabs, Tab
from jaxprof.tui.kit.text_lists import FactTarget

MOST_COMPARED = 2_000
"""Most lines of a comparison, which may have all of two modules."""


def difference_of(first: ModuleStages, second: ModuleStages) -> ReportDialog:
    """Return the dialog with what differs between two modules, as `jaxprof hlo --diff` prints it."""

    def derive() -> Iterator[Piece]:
        from jaxprof.report.comparison import difference_pieces

        modules = [side.module() for side in (first, second)]
        for name, module in zip(names, modules, strict=True):
            yield from (safe(f"{name}: {notice}") for notice in notices(module))
        pieces = difference_pieces(*modules)
        yield from islice(pieces, MOST_COMPARED)
        if next(pieces, None) is not None:
            yield "and more, which `jaxprof hlo A --diff B` prints"

    names = first.title, second.title
    if first.title == second.title:
        names = f"{first.title} ({first.key})", f"{second.title} ({second.key})"
    return report_dialog(" and ".join(names), derive)


class HloScreen(ViewsScreen, keys="hlo"):
    """Lists on the left and texts on the right, or only one of the two on a narrower terminal."""

    MODE = "hlo"
    AUTO_FOCUS = "#kernels"
    VIEWS = LISTS | TITLES

    def __init__(self) -> None:
        super().__init__()
        self._of_session: dict[str, ModuleStages] = {}
        self._of_files: dict[str, ModuleStages] = {}
        """Programs of opened files, the last opened last."""
        self._opened: OpenedModule | None = None
        self._device: DevicePeaks | None = None
        """The device that the user chose; None for the program's own device."""
        self._kernel = ""

    def compose_body(self) -> ComposeResult:
        yield StageTabs(id="hlo-tabs")
        yield TrustLine(id="hlo-trust")
        yield Lines(id="hlo-notices")
        yield Static(id="hlo-empty", markup=False)
        with Horizontal(id="hlo-body"):
            yield KernelSide(id="hlo-lists")
            yield StageSide(id="hlo-texts")

    def on_mount(self) -> None:
        self.share_room()

    # -- which program ----------------------------------------------------------------------------------------

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        """List the programs of the session. The one in view stays, unless it has new stages."""
        before = self._opened.program if self._opened is not None else None
        self._of_session = {program.key: program for program in modules_of(self.profiler.session)}
        if replaced:
            self._device = None
        if replaced or before is None:
            self._choose(first_of(self._of_session, self.profiler.destination.run))
        elif before.key in runs:
            now = self._of_session.get(before.key)
            if now is not None and set(now.stages) != set(before.stages):
                self._choose(now)
        self._show_empty()

    def arrive(self, destination: Destination) -> None:
        """Show a file, or the run in view if it has HLO. A file stays until another screen shows a run."""
        super().arrive(destination)
        program = self._of_session.get(destination.run)
        self._kernel = destination.kernel or self._kernel
        if destination.unread is not None:
            self.open_file(destination.unread)
        elif program is not None and destination.module is None:
            if program.key != self._run:
                self._choose(program)
        elif self._opened is not None and self._run not in self._of_session:
            self._share(self._opened.program)
        self._show_kernel()

    def _show_kernel(self) -> None:
        """Go to the kernel that another screen leads to, once the kernels are known."""
        ranking = self.lists.table.ranking
        if self._kernel and len(ranking) and ranking.is_whole:
            name, self._kernel = self._kernel, ""
            self.to_kernel(name)

    def _choose(self, program: ModuleStages | None) -> None:
        if self._opened is not None:
            self._opened.close()
        session = self.profiler.session if program is not None and program.key in self._of_session else None
        self._opened = OpenedModule(program, session) if program is not None else None
        self._run = program.key if program is not None else ""
        self.query_one(TrustLine).clear()
        self._show_notices(())
        self.lists.show_program(self._opened)
        self.texts.show_program(self._opened)
        self.show_tabs()
        self._show_empty()
        opened = self._opened
        if opened is None:
            return
        self._share(opened.program)
        open_in_thread(opened, partial(self.call_later, self._part_ready), partial(self.call_later, self.tell))

    def _share(self, program: ModuleStages) -> None:
        if program.key in self._of_session:
            self.profiler.select(program.key)
        else:
            self.profiler.select(module=program)

    def _in_session(self, opened: OpenedModule) -> HloProgram:
        return HloProgram(opened.program, self.profiler.session if self.run is not None else None)

    def on_unmount(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def _part_ready(self, opened: OpenedModule, part: str) -> None:
        if opened is not self._opened:  # posted before the user chose another program
            return
        opened.freeze()
        lists, texts, error = self.lists, self.texts, opened.errors.get("hlo")
        if part in (texts.stage, "over"):
            texts.show_stage(texts.stage)
        if part == "first kernels" and opened.kernels is None:
            lists.show_first(opened)
        elif part == "kernels":
            self._show_notices(opened.notices)
            self._rank()
        elif part in ("findings", "barriers"):
            lists.show_findings(opened)
        elif part == "origins" and opened.origins is not None:
            lists.table.take_origins(opened.origins)
        elif part == "hlo" and error is not None:
            lists.table.show_empty(f"{error.what} {error.hint}".strip())
        elif part == "over" and opened.kernels is None and error is None:
            lists.table.show_empty("The optimised HLO of this run was not recorded.")
        self.show_tabs()

    def _show_notices(self, notices: Sequence[Notice]) -> None:
        lines = [
            Content.assemble(
                (f" ! {safe(notice.code.replace('-', ' '))}", "bold $warning"), f": {safe(notice.message)}"
            )
            for notice in sorted(notices, key=lambda notice: not notice.serious)
        ]
        box = self.query_one("#hlo-notices", Lines)
        box.show(lambda width: [line.truncate(max(1, width - 1), ellipsis=True) for line in lines])

    def _rank(self) -> None:
        opened = self._opened
        if opened is None or opened.kernels is None:
            return
        session, run = self.profiler.session, self.run
        captured = measure_kernels(session, run.id) if run is not None else None
        by_name = captured.by_name() if captured is not None else {}
        self.query_one(TrustLine).show_run(source_of(session, run) if run is not None and by_name else None)
        machine = machine_of(self._device) if self._device is not None else self._in_session(opened).machine
        listed = opened.kernels
        if opened.module is not None and by_name:
            listed = with_running(opened.module, by_name)
        sort = self.lists.table.wanted.sort

        def rank() -> Ranking:
            ranking = ranking_on(machine, opened.module, listed, by_name)
            if not needs_origins("", sort):
                sort_kernels(ranking, range(len(ranking)), sort)  # reads the columns that the table needs
            return ranking

        def show(ranking: Ranking) -> None:
            if opened is self._opened:
                if opened.origins is not None:
                    more = [kernel.instruction for kernel in listed[len(opened.kernels or ()) :]]
                    ranking.know_origins(opened.origins.with_more(more))
                self.lists.show_ranking(opened, ranking)
                self.show_tabs()
                self._show_kernel()
                self._follow()

        if len(listed) <= FEW:
            show(rank())
        else:
            in_daemon(lambda: self.call_later(show, rank()), "ranking", partial(self.call_later, self.tell))

    def _show_empty(self) -> None:
        self.show_empty(empty=self._opened is None)
        self.refresh_bindings()
        if self._opened is None:
            why, _, fills = self._why_empty().partition(". ")
            opens = (" opens HLO text, an HLO proto, or a folder of XLA's dumps.", "$text-muted")
            key = (key_of("hlo.open"), "bold $footer-key-foreground")
            words = Content.assemble((f"{why.rstrip('.')}.", "bold"), "\n\n", (f"{fills}\n", "$text-muted"), key, opens)
            self.query_one("#hlo-empty", Static).update(words)

    def _why_empty(self) -> str:
        """Return in two sentences why no module is open, and how to open one."""
        program = program_without_capture(self.profiler.session)
        if program is not None:
            return how_to_capture(self.profiler, program)
        if self.profiler.session_grows:
            return "No run has been compiled yet. Compiled variants (jit) appear here once XLA has compiled them."
        if self.profiler.session.runs:
            return "No compiled program in this session. Only compiled variants (jit) have HLO."
        return nothing_was_run(self.profiler)

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        """Offer a capture while the screen is empty for want of one, and dim the filter while it is empty."""
        if action in ("filter", "compare") and self._opened is None:
            return self._why_empty()
        if action == "compare" and self._opened is not None:
            if "hlo" not in self._opened.program.stages:
                return f"{self._opened.program.title} has no optimised HLO to compare"
            if len(self._compiled) < 2:
                opens = in_words("hlo.open")
                return f"this is the only compiled program here: {opens} opens another one to compare with"
            return None
        if action == "tab" and parameters[0] in TITLES and parameters[0] not in self._stages:
            return f"{TITLES[str(parameters[0])]} was not recorded for this program."
        uncaptured = program_without_capture(self.profiler.session) if self._opened is None else None
        if action == "capture" and not can_capture(self.profiler, uncaptured):
            return HIDDEN
        return super().why_not(action, parameters)

    # -- lists and texts --------------------------------------------------------------------------------------

    @property
    def lists(self) -> KernelSide:
        return self.query_one(KernelSide)

    @property
    def texts(self) -> StageSide:
        return self.query_one(StageSide)

    @property
    def in_text(self) -> bool:
        return self._view in TITLES

    @property
    def _stages(self) -> Mapping[str, object]:
        return self._opened.program.stages if self._opened is not None else {}

    def tabs(self) -> Iterator[Tab]:
        """Yield all tabs. A stage that was not recorded is dimmed; the HLO before the passes is left out."""
        for name, title in LISTS.items():
            rows = getattr(self._opened, name, None)
            if name == "kernels" and rows is not None and self.lists.table.ranking.is_whole:
                rows = self.lists.table.ranking.kernels or rows  # with the loops that a capture names
            yield Tab(name, title, note=str(len(rows)) if rows is not None else "")
        for stage in STAGES:
            there = stage.name in self._stages
            if there or stage.name != "hlo_before":
                yield Tab(stage.name, stage.title, stage.short, enabled=there, stage=True)

    def on_resize(self) -> None:
        self.call_after_refresh(self.show_tabs)  # the classes of the width are set by then

    def show_tabs(self) -> None:
        """Redraw the tabs with what is known by now; on a very wide terminal, lists and text are side by side."""
        shown = (self.lists.tab, self.texts.stage) if self.has_class("-very-wide") else (self._view,)
        self.query_one(StageTabs).show_tabs(self.tabs(), shown)

    def share_room(self) -> None:
        self.set_class(self.in_text, "-text")
        if self.in_text:
            self.texts.show_stage(self._view)
        else:
            self.lists.show_tab(self._view)
        self.show_tabs()

    def focus_view(self) -> None:
        listed = self.query_one("#findings" if self._view == "findings" else "#kernels")
        (self.texts.view if self.in_text else listed).focus()

    # -- from one side to the other -----------------------------------------------------------------------------

    def to_text_of(self, target: FactTarget) -> None:
        if self.texts.go_to_kernel(target.computation, target.name):
            self.action_tab("hlo")
        else:
            self.say(f"{safe(target.name)} has no line of its own in this text.")

    def to_kernel(self, name: str) -> None:
        """Go to a kernel in the list; to the text of an instruction that is none."""
        self.action_tab("kernels")
        module = self._opened.module if self._opened is not None else None
        if self.lists.select("", name):
            return
        computations = module.computations.values() if module is not None else ()
        holder = next((computation.name for computation in computations if computation.get(name) is not None), "")
        self.to_text_of(FactTarget(holder, name))

    @on(RowList.Highlighted, "#kernels")
    def _follow(self) -> None:
        ranked = self.lists.table.ranked
        if self.has_class("-very-wide") and not self.in_text and ranked is not None:
            self.texts.go_to_kernel(*ranked.key)
            self.show_tabs()

    # -- looking for something ------------------------------------------------------------------------------------

    def action_filter(self) -> None:
        if self.in_text:
            self.texts.action_search()
        else:
            self.lists.query_one(FilterLine).open()

    async def action_back(self) -> None:
        line, search = self.lists.query_one(FilterLine), self.texts.query_one(FilterLine)
        if self.in_text and search.display:
            search.clear()
            self.texts.view.focus()
        elif self.in_text:  # back to the lists, to the kernel at the cursor of the text
            if (kernel := self.texts.kernel_at_cursor()) is not None:
                self.lists.select(*kernel)
            self.action_tab(self.lists.tab)
        elif line.value or self.focused is not self.lists.current_list:
            line.clear()
            self.lists.current_list.focus()
        else:
            self.profiler.step_back()

    @on(RowList.Chosen, "#kernels, #findings, #facts")
    def _open(self, message: RowList.Chosen) -> None:
        """Go to a kernel in the table, or to the text of what is no kernel there."""
        target = self.lists.target_of(message.rows)
        if target is None:
            return
        if not target.kernel or not self.lists.select(target.computation, target.name):
            self.to_text_of(target)
        elif self.lists.tab not in ("kernels", "roofline"):
            self.action_tab("kernels")

    # -- keys -------------------------------------------------------------------------------------------------

    @property
    def _programs(self) -> list[ModuleStages]:
        return [*self._of_session.values(), *self._of_files.values()]

    @property
    def _compiled(self) -> list[ModuleStages]:
        return [program for program in self._programs if "hlo" in program.stages]

    def _ask(self, title: str, programs: Sequence[ModuleStages], take: Callable[[ModuleStages], object]) -> None:
        options = [
            Option(program.title, ", ".join(TITLES[name] for name in TITLES if name in program.stages))
            for program in programs
        ]
        current = next((at for at, program in enumerate(programs) if program.key == self._run), 0)
        Choose(title, options, current).ask(self.app, lambda number: take(programs[number]))

    def action_choose_program(self) -> None:
        def take(program: ModuleStages) -> None:
            if program.key != self._run:
                self._choose(program)

        if self._programs:
            self._ask("Which program?", self._programs, take)
        else:
            self.action_open_file()

    def action_compare(self) -> None:
        others = [program for program in self._compiled if program.key != self._run]
        if len(others) == 1:
            self._compare_with(others[0])
        else:
            self._ask("Compare with which program?", others, self._compare_with)

    def _compare_with(self, other: ModuleStages) -> None:
        """Show what differs from another module; the first in the list is the baseline."""
        first, second = (program for program in self._compiled if program.key in (self._run, other.key))
        self.app.push_screen(difference_of(first, second))

    def action_choose_device(self) -> None:
        if self._opened is None:
            return
        own, others = self._in_session(self._opened).device, list(DEVICES.values())
        options = [
            Option("its own", own.title if own is not None else "unknown: no ceilings"),
            *(Option(device.name, f"{device.title}, {scaled(device.bandwidth, 'B/s')}") for device in others),
        ]

        def take(at: int) -> None:
            self._device = others[at - 1] if at else None
            self._rank()

        Choose("Compare the kernels with (an estimate)", options).ask(self.app, take)

    def action_open_file(self) -> None:
        self.profiler.ask_for_file("hlo")

    def open_file(self, path: Path) -> None:
        """Open an HLO file, or a folder that XLA dumped into, in a thread."""

        def show(programs: list[ModuleStages]) -> None:
            for program in programs:  # a file that is opened again replaces its earlier programs
                self._of_files.pop(program.key, None)
                self._of_files[program.key] = program
            self._choose(programs[0])
            self.profiler.select(module=programs[0], file=path)
            self.profiler.show_state()
            for screen in self.profiler.screens_in_view():
                if screen is not self:  # the user has gone on: the message there depends on what is open
                    screen.come_into_view()
            if len(programs) > 1:
                self.action_choose_program()

        in_thread(self, lambda: modules_at(path), "file", then=show)

    def action_profile(self) -> None:
        ranked, run = self.lists.table.ranked, self.run
        if ranked is None:
            return
        if run is not None and run.measured:
            self.profiler.show(Destination("profile", "timeline", run.id, ranked.kernel.name))
        else:
            self.say("No profile of this run was recorded.")
