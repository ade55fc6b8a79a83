"""HLO: what XLA made of a program. Kernels first, then what is inside them, then the text of every stage.

What is read, parsed and worked out is so in a thread, part by part: the kernels are there first. A line of any stage
knows where it came from, and leads to the lines of the other stages that came from the same place.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.message import Message

from jaxprof.errors import JaxprofError
from jaxprof.results.measured import seconds_per_call
from jaxprof.tui.messages import Failed
from jaxprof.tui.programs.ceilings import device_of
from jaxprof.tui.programs.opened import Opened
from jaxprof.tui.programs.program import Program, programs_in, programs_of
from jaxprof.tui.programs.ranking import rank
from jaxprof.tui.programs.reading import Reading
from jaxprof.tui.programs.shelf import Shelf
from jaxprof.tui.screens.base import SessionScreen
from jaxprof.tui.screens.hlo_export import ask_and_write, exports
from jaxprof.tui.screens.hlo_keys import KEYS
from jaxprof.tui.screens.hlo_questions import ask_device, ask_file, ask_match, ask_program, ask_user
from jaxprof.tui.screens.hlo_sides import Sides
from jaxprof.tui.views import source_of
from jaxprof.tui.widgets.code_view import CodeView
from jaxprof.tui.widgets.kernel_side import KernelSide
from jaxprof.tui.widgets.no_program import NoProgram
from jaxprof.tui.widgets.stage_side import TITLES, Match, StageSide
from jaxprof.tui.widgets.stage_tabs import StageTabs
from jaxprof.tui.widgets.trust_line import TrustLine

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.hlo.analysis import Device


class PartReady(Message, bubble=False):
    """A part of a program was read in a thread."""

    def __init__(self, opened: Opened, part: str) -> None:
        super().__init__()
        self.opened = opened
        self.part = part


class FileRead(Message, bubble=False):
    """The programs of a file were found."""

    def __init__(self, programs: list[Program]) -> None:
        super().__init__()
        self.programs = programs


class MatchesFound(Message, bubble=False):
    """The lines of other stages that came from the cursor's place."""

    def __init__(self, matches: list[Match]) -> None:
        super().__init__()
        self.matches = matches


class HloScreen(SessionScreen):
    """Lists on the left, texts on the right; where there is no room for both, one of them."""

    MODE: ClassVar[str] = "hlo"
    AUTO_FOCUS = "#kernels"
    BINDINGS: ClassVar[list[BindingType]] = KEYS

    def __init__(self) -> None:
        super().__init__()
        self._shelf = Shelf()
        self._opened: Opened | None = None
        self._sides = Sides(self)
        self._device: Device | None = None
        """Chosen by hand; None for the program's own."""
        self._run_seen = ""
        self._reading = Reading(
            lambda opened, part: self.post_message(PartReady(opened, part)),
            lambda error: self.post_message(Failed(error)),
        )

    def compose_body(self) -> ComposeResult:
        yield StageTabs(id="hlo-tabs")
        yield TrustLine(id="hlo-trust")
        yield NoProgram(id="hlo-empty")
        with Horizontal(id="hlo-body"):
            yield KernelSide(id="hlo-lists")
            yield StageSide(id="hlo-texts")

    def on_mount(self) -> None:
        self._trust.display = False
        self._sides.lists.show_tab("kernels")
        self._sides.show_tab("kernels", focus=False)

    @property
    def _trust(self) -> TrustLine:
        """Whether what was measured can be believed; there only beside figures that were."""
        return self.query_one(TrustLine)

    # -- which program ----------------------------------------------------------------------------------------

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        """Lists the programs of the session; the one in view stays, unless its texts changed."""
        before = self._opened.program if self._opened is not None else None
        self._shelf.of_session = programs_of(self.profiler.session)
        if replaced:
            self._device = None
            self._choose(self._shelf.first(self.profiler.run_in_view))
        elif before is None:
            self._choose(self._shelf.first(self.profiler.run_in_view))
        elif before.key in runs:
            now = self._shelf.of_run(before.key)
            if now is not None and set(now.stages) != set(before.stages):
                self._choose(now)
        self._show_empty()

    def come_into_view(self) -> None:
        super().come_into_view()
        wanted = self.profiler.run_in_view
        if wanted and wanted != self._run_seen:
            self._run_seen = wanted
            program = self._shelf.of_run(wanted)
            if program is not None and (self._opened is None or self._opened.program.key != wanted):
                self._choose(program)
        path, self.profiler.hlo_wanted = self.profiler.hlo_wanted, None
        if path is not None:
            self.open_file(path)
        self._take_kernel()

    def _take_kernel(self) -> None:
        """To the kernel that another screen asked for, as soon as the kernels are known."""
        name = self.profiler.kernel_wanted
        if name and self._sides.lists.listed:
            self.profiler.kernel_wanted = ""
            self._sides.to_kernel(name)

    def _choose(self, program: Program | None) -> None:
        """Opens a program: what was known of the one before is forgotten, and its reading is stopped."""
        self._reading.stop()
        self._opened = Opened(program) if program is not None else None
        self._trust.display = False
        self._sides.show_program(self._opened)
        self._show_empty()
        opened = self._opened
        if opened is None:
            return
        if opened.program in self._shelf.of_session:
            self.profiler.run_in_view = self._run_seen = opened.program.key
        self._reading.begin(opened)

    def on_unmount(self) -> None:
        self._reading.stop()

    def on_part_ready(self, message: PartReady) -> None:
        opened = message.opened
        if opened is not self._opened:
            return
        lists, texts = self._sides.lists, self._sides.texts
        if message.part in TITLES:
            texts.stage_ready(message.part)
            error = opened.errors.get(message.part)
            if message.part == "hlo" and error is not None:
                lists.fail(f"{error.what} {error.mend}".strip())
        elif message.part == "kernels":
            self._rank()
        elif message.part in ("findings", "barriers"):
            lists.show_remarks()
        elif message.part == "over":
            if opened.kernels is None and "hlo" not in opened.errors:
                lists.fail("The optimised HLO of this run was not recorded.")
            texts.stage_ready(texts.stage)
        self._sides.show_tabs()

    def _rank(self) -> None:
        opened = self._opened
        if opened is None or opened.kernels is None:
            return
        session = self.profiler.session
        device = self._device or device_of(session, opened.program)
        run = session.runs.get(opened.program.key)
        measured = seconds_per_call(run)
        self._trust.display = bool(measured)
        self._trust.show(source_of(session, run) if run is not None and measured else None)
        self._sides.lists.show_ranking(rank(opened.kernels, device, measured))
        self._take_kernel()
        self._follow()

    def _show_empty(self) -> None:
        nothing = self._opened is None
        self.set_class(nothing, "-empty")
        if nothing:
            self.query_one(NoProgram).show(growing=self.profiler.session_grows)

    # -- lists and texts --------------------------------------------------------------------------------------------

    def action_tab(self, name: str) -> None:
        """To a tab."""
        self._sides.go_to_tab(name)

    def action_next_tab(self, step: int) -> None:
        """To the next tab, or the one before."""
        self._sides.step(step)

    def action_other_side(self) -> None:
        """From the lists to the text of the kernel under the cursor, and back."""
        self._sides.swap()

    def action_filter(self) -> None:
        """Opens the line for the filter; in a text, for the search."""
        self._sides.open_filter()

    async def action_back(self) -> None:
        """Clears what hides or marks something; from the text to the lists; then back to where HLO was opened."""
        if not self._sides.step_back():
            self.profiler.leave_hlo()

    @on(StageSide.StageWanted)
    def _stage_wanted(self, message: StageSide.StageWanted) -> None:
        self._sides.stage_came(message.stage)

    @on(KernelSide.Wanted)
    def _text_wanted(self, message: KernelSide.Wanted) -> None:
        self._sides.to_text_of(message.target)

    @on(KernelSide.Looked)
    def _follow(self) -> None:
        self._sides.follow()

    @on(CodeView.ManyUsers)
    def _choose_user(self, message: CodeView.ManyUsers) -> None:
        ask_user(self.profiler, message)

    # -- keys -------------------------------------------------------------------------------------------------

    def action_match(self) -> None:
        """To a line of another stage that came from the same place; asks which, if there are several."""
        if not self._sides.bring_text_along():
            return
        texts = self._sides.texts
        if texts.small:
            self.on_matches_found(MatchesFound(texts.matches()))
            return

        def find() -> None:
            self.post_message(MatchesFound(texts.matches()))

        self.run_worker(find, name="matches", group="matches", exclusive=True, thread=True)

    def on_matches_found(self, message: MatchesFound) -> None:
        matches, opened = message.matches, self._opened
        if not matches or opened is None:
            self.notify(
                "Other stages do not say which of their lines came from here.",
                title="No match",
                markup=False,
                timeout=3,
            )
            return
        if len(matches) == 1:
            self._sides.to_line(matches[0])
        else:
            ask_match(self.profiler, opened, matches, self._sides.to_line)

    def action_choose_program(self) -> None:
        """Asks for the run, or the module of a file."""
        if self._shelf.all:
            ask_program(self.profiler, self._shelf.all, self._opened, self._choose)
        else:
            self.action_open_file()

    def action_choose_device(self) -> None:
        """Asks for the device whose ceilings the kernels are held against."""
        if self._opened is not None:
            ask_device(self.profiler, self._opened.program, self._hold_against)

    def _hold_against(self, device: Device | None) -> None:
        self._device = device
        self._rank()

    def action_open_file(self) -> None:
        """Asks for a path, and opens what is there."""
        ask_file(self.profiler, self.open_file)

    def open_file(self, path: Path) -> None:
        """Opens an HLO file, or a folder that XLA dumped into, in a thread."""

        def read() -> None:
            try:
                self.post_message(FileRead(programs_in(path)))
            except JaxprofError as error:
                self.post_message(Failed(error))

        self.run_worker(read, name="file", group="file", exclusive=True, thread=True)

    def on_file_read(self, message: FileRead) -> None:
        self._shelf.add_files(message.programs)
        self._choose(message.programs[0])
        if len(message.programs) > 1:
            self.action_choose_program()

    def on_failed(self, message: Failed) -> None:
        message.stop()
        self.profiler.tell(message.error)

    def action_profile(self) -> None:
        """To this kernel in what was recorded of the run."""
        ranked, opened = self._sides.lists.ranked, self._opened
        if opened is None or ranked is None:
            return
        run = self.profiler.session.runs.get(opened.program.key)
        if run is None or not run.measured:
            self.notify("No profile of this run was recorded.", markup=False)
            return
        self.profiler.show_profile(run.id, kernel=ranked.kernel.name)

    def action_trust(self) -> None:
        """Lists all that was looked at in the capture of the run."""
        from jaxprof.tui.dialogs.trust import ask_about

        run = self.profiler.session.runs.get(self._opened.program.key) if self._opened is not None else None
        if run is not None and run.measured:
            ask_about(self.profiler, run)

    def action_export(self) -> None:
        """Asks what to write, and where."""
        opened, ranked = self._opened, self._sides.lists.ranked
        if opened is not None and opened.module is not None and opened.kernels is not None:
            kernel = ranked.kernel if ranked is not None else None
            ask_and_write(self.profiler, exports(opened.module, kernel, self._sides.lists.table.rows))
