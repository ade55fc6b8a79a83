"""The Start screen: what can be run, with your own code and its sessions first, then the catalogue; and the devices.

The first frame has the ways to measure something and the names of the workloads. Threads add programs, descriptions,
devices and sessions. The list with the focus decides what the pane beside it shows, what Enter does, and which keys
there are.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from textual import events
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from jaxprof.devices import default_device
from jaxprof.errors import JaxprofError
from jaxprof.text import safe
from jaxprof.tui.home.device_list import DeviceList
from jaxprof.tui.home.own_code import OwnCodeList, OwnRow, own_programs, plan_text, row_lines
from jaxprof.tui.home.plan_options import HomeOptions, plan_line
from jaxprof.tui.home.workloads import WorkloadList, description, last_medians
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.filter import FilterLine
from jaxprof.tui.kit.guard import HIDDEN, Hidden, in_thread, on
from jaxprof.tui.kit.picture import Lines, ScrollPane
from jaxprof.tui.kit.row_list import RowList, toggle
from jaxprof.tui.kit.screen import SessionScreen
from jaxprof.tui.live import LiveChanged
from jaxprof.workloads import names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from textual.app import ComposeResult
    from textual.timer import Timer

    from jaxprof.session.log import Entry
    from jaxprof.tui.kit.script_dialog import ScriptForm
    from jaxprof.workloads.model import WorkloadInfo


LISTED = 40
"""Number of kept sessions that are listed, until the user asks for all."""
SETTLE_SECONDS = 0.06
"""Seconds that the cursor rests before the details of its row are shown: longer than the repeat of a held key."""
EXAMPLE = "selu"
_OF_A_WORKLOAD = frozenset({"edit", "preset", "compile_for", "run"})
"""Actions on the workload under the cursor, or on the marked ones."""


class HomeScreen(SessionScreen, keys="home"):
    """Devices at the top, your code and the workloads on the left, the row of either on the right, the plan of Enter at
    the bottom."""

    CSS_PATH = None  # the app's stylesheet has its layout, so that the first frame has it
    MODE = "home"
    AUTO_FOCUS = "#own-code"

    def __init__(self) -> None:
        super().__init__()
        self.choices = HomeOptions()
        self._infos: dict[str, WorkloadInfo] = {}
        self._names = names()
        self._entries: list[Entry] = []
        """The kept sessions and jobs, the newest first."""
        self._most: int | None = LISTED
        """Most kept sessions to list; None for all."""
        self._wanted: Path | None = None
        """The session to which the cursor goes once it is listed."""
        self._settling: Timer | None = None
        """Runs while the cursor rests."""
        self._device_proposed = False
        """Whether JAX's default has been chosen for the user already."""
        self._own_in_view = True
        """Whether the pane beside the lists, Enter and the keys belong to your code, not to the workloads."""
        self._in_detail = True, ""
        """Whether the pane beside the lists describes your code, and the title of what it describes."""

    def compose_body(self) -> ComposeResult:
        user = self.profiler.user.config
        self.choices = HomeOptions(
            preset=user.get("preset", str) or self.choices.preset,
            budget_seconds=user.get("budget", float) or self.choices.budget_seconds,
            devices=list(user.get("devices", tuple) or self.choices.devices),
        )
        self._device_proposed = "devices" in user.values
        with Vertical(id="devices-box", classes="box") as box:
            box.border_title = "Devices"
            yield DeviceList(self.profiler.devices, self.choices.devices, id="devices")
        with Horizontal(id="home-body"):
            with Vertical(id="home-left"):
                with Vertical(id="own-box", classes="box") as box:
                    box.border_title = "Your code and sessions"
                    yield OwnCodeList(id="own-code")
                with Vertical(id="workloads-box", classes="box") as box:
                    box.border_title = "Workloads"
                    yield WorkloadList(self._names, self._infos, self.choices)
            with Vertical(id="detail-box", classes="box"), ScrollPane(id="detail"):
                yield Lines()
        yield Static(id="plan", markup=False)

    def on_mount(self) -> None:
        self.query_one(DeviceList).show_devices()
        self.profiler.devices.changed = self._show_devices
        self.call_after_refresh(lambda: in_thread(self, self._read_workloads, "workloads"))

    def _read_workloads(self) -> None:
        """Read descriptions and sessions, and import what the first key would wait for. Runs in a thread."""
        from jaxprof import workloads

        self.call_later(self.take_workloads, workloads.infos())
        self.call_later(self._take_sessions, self._read_sessions())
        for name in ("jaxprof.runner.expected_time", "jaxprof.session.fold", "jaxprof.tui.kit.dialogs"):
            import_module(name)  # so that the first key does not wait for the import

    def _read_sessions(self) -> tuple[list[Entry], list[OwnRow]]:
        """Read the kept sessions, and look for the user's programs. Runs in a thread."""
        most = self._most
        entries = list(self.profiler.library().listed(None if most is None else most + 1))
        more = most is not None and len(entries) > most
        entries = entries[:most]
        return entries, own_programs(entries, self.profiler.folder, more=more)

    # -- results of threads ------------------------------------------------------------------------------------

    def take_workloads(self, infos: list[WorkloadInfo]) -> None:
        """Show new descriptions: the catalogue's, or a user's own."""
        if not self.whole:
            return
        for info in infos:
            self._infos[info.name] = info
            if info.name not in self._names:
                self._names.append(info.name)
        self.query_one(WorkloadList).show_rows({name: name for name in self._names})
        self._show_row()

    def _take_sessions(self, read: tuple[list[Entry], list[OwnRow]]) -> None:
        if not self.whole:
            return
        self._entries, own_rows = read
        listed = self.query_one(OwnCodeList)
        listed.show(own_rows)
        if self._wanted is not None:
            listed.move_to_key(self._wanted)
            self._wanted = None
        self._show_row()
        self._show_marks()

    def _show_devices(self) -> None:
        """Show the devices and their readings, and propose JAX's default once JAX has said which it is."""
        if not self.whole or self.profiler.current_mode != self.MODE:
            return
        devices = self.profiler.devices
        if devices.asked and not self._device_proposed:
            self._device_proposed = True
            if self.choices.devices == ["cpu:0"]:
                self.choices.devices[:] = [default_device(row.device for row in devices)]
                self._show_plan()
        self.query_one(DeviceList).show_devices()

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        """List the sessions again when a run has ended."""
        known = runs & self.profiler.opened.run_ids
        if any(self.profiler.session.runs[run].over for run in known):
            self.list_sessions()

    def on_live_changed(self, message: LiveChanged) -> None:
        super().on_live_changed(message)
        self.list_sessions()

    def come_into_view(self) -> None:
        super().come_into_view()
        if self._infos:  # not before the first frame
            self.list_sessions()

    def list_sessions(self, wanted: Path | None = None) -> None:
        """List the sessions and programs again, in a thread; then the cursor goes to the `wanted` session."""
        self._wanted = wanted or self._wanted
        in_thread(self, self._read_sessions, "entries", then=self._take_sessions)

    def action_list_all(self) -> None:
        self._most = None
        self.list_sessions()

    # -- what is shown -----------------------------------------------------------------------------------------

    @property
    def info(self) -> WorkloadInfo | None:
        """The workload under the cursor; None until its description has been read."""
        name = self.query_one(WorkloadList).workload
        return self._infos.get(name) if name is not None else None

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """Let the list that gets the focus decide what is shown; the devices change nothing."""
        own = isinstance(event.widget, OwnCodeList)
        if self.whole and own != self._own_in_view and isinstance(event.widget, OwnCodeList | WorkloadList):
            self._own_in_view = own
            self._show_row()
            self._show_marks()

    def _show_row(self) -> None:
        """Show the row under the cursor of the list in view, from its first line on if it is another one, and what
        Enter does with it."""
        row, info = self.query_one(OwnCodeList).current_row, self.info
        title = ""
        draw: Callable[[int], Iterable[Content]] | None = None
        if self._own_in_view and row is not None:
            title, draw = row.title, partial(row_lines, row, self.profiler.session_path)
        elif not self._own_in_view and info is not None:
            last = last_medians(info.name, self.choices.parameters(info), self._entries)
            title, draw = info.name, partial(description, info, self.choices, last)
        self.query_one("#detail-box").border_title = Content(safe(title))
        pane = self.query_one("#detail", ScrollPane)
        pane.query_one(Lines).show(object(), lambda width: list(draw(max(24, width))) if draw else ())
        if self._in_detail != (self._own_in_view, title):
            self._in_detail = self._own_in_view, title
            pane.scroll_home(animate=False)
        self.query_one(WorkloadList).redraw()  # its options may differ
        self._show_plan()

    def _chosen(self) -> list[WorkloadInfo]:
        """Return the marked workloads, or the one under the cursor."""
        marked = [self._infos[name] for name in self._names if name in self.choices.marked and name in self._infos]
        return marked or ([self.info] if self.info is not None else [])

    def _show_plan(self) -> None:
        """Show in one line what Enter will do."""
        row = self.query_one(OwnCodeList).current_row if self._own_in_view else None
        width, chosen = self.app.size.width, self._chosen()
        if row is not None:
            self.query_one("#plan", Static).update(plan_text(row, width), layout=False)
        elif chosen:
            line = plan_line(chosen, self.choices, width)
            self.query_one("#plan", Static).update(line, layout=False)

    def _show_marks(self) -> None:
        """Show on the frame of each list how many of its rows are marked and hidden, and on the one with the cursor
        whether they can be compared."""
        own, workloads = self.query_one(OwnCodeList), self.query_one(WorkloadList)
        for name, listed, marked in (("own", own, own.marked), ("workloads", workloads, self.choices.marked)):
            notes = [f"{len(marked)} marked"] if marked else []
            notes += [f"{listed.hidden} hidden"] if listed.hidden else []
            notes += [f"{key_of('home.compare')} compares"] if marked is self._to_compare and len(marked) == 2 else []
            self.query_one(f"#{name}-box").border_subtitle = " · ".join(notes)
        self.refresh_bindings()
        self._show_plan()

    # -- your code ---------------------------------------------------------------------------------------------

    @on(RowList.Highlighted, "#own-code, #workloads")
    def _highlighted(self) -> None:
        """Show another row once the cursor has rested: that needs a new layout, which must not delay a held key."""
        self.refresh_bindings()
        if self._settling is not None:
            self._settling.stop()
        self._settling = self.set_timer(SETTLE_SECONDS, lambda: self.whole and self.call_later(self._show_row))

    @property
    def entry(self) -> Entry | None:
        """The kept session or job under the cursor; None if the row is another one."""
        return self.query_one(OwnCodeList).entry if self._own_in_view else None

    @on(RowList.Chosen, "#own-code")
    async def _own_opened(self) -> None:
        row = self.query_one(OwnCodeList).current_row
        if row is None:
            return
        if row.form is not None:
            self.action_program(row.form)
        elif row.entry is not None:
            self.profiler.open_session(row.entry.path)
        else:
            await self.run_action(row.action)

    def action_kept(self, what: str) -> None:
        """Rename, copy or delete the session under the cursor."""
        from jaxprof.tui.home import kept_sessions

        if self.entry is not None:
            getattr(kept_sessions, what)(self.profiler, self.entry, self.list_sessions)

    def action_example(self) -> None:
        """Run the example of the catalogue, as soon as that is read."""
        from jaxprof import workloads

        def start(infos: list[WorkloadInfo]) -> None:
            self._start([info for info in infos if info.name == EXAMPLE])

        in_thread(self, workloads.infos, "example", then=start)

    def action_open_file(self) -> None:
        self.profiler.ask_for_file()

    # -- messages of the lists ---------------------------------------------------------------------------------

    @on(RowList.Marked, "#own-code")
    def _session_marked(self, message: RowList.Marked) -> None:
        listed = self.query_one(OwnCodeList)
        toggle(listed.marked, message.rows.key_at(message.index))
        listed.redraw()
        self._show_marks()

    @on(RowList.Marked, "#workloads")
    def _workload_marked(self, message: RowList.Marked) -> None:
        toggle(self.choices.marked, message.rows.key_at(message.index))
        message.rows.refresh_row(message.index)
        self._show_marks()

    @on(RowList.Chosen, "#workloads")
    def action_run(self) -> None:
        self._start(self._chosen())

    def _start(self, chosen: list[WorkloadInfo]) -> None:
        if planned := self.choices.plan(chosen):
            self.profiler.start_runs(planned)

    @on(RowList.Marked, "#devices")
    @on(RowList.Chosen, "#devices")
    def _device_toggled(self, message: RowList.Highlighted) -> None:
        name = str(message.rows.key_at(message.index))
        device = self.profiler.devices.rows[name].device
        if device.used_by_jax is False:
            self.profiler.tell(JaxprofError(device.reason, device.hint), f"JAX does not use {name}")
            return
        self.choices.toggle_device(name)
        self.query_one(DeviceList).refresh()
        self._show_plan()

    # -- keys --------------------------------------------------------------------------------------------------

    async def action_filter(self) -> None:
        # Not before: the first screen is composed when none is on the stack yet, and there a Textual `Input` asks for
        # the current one, which on Python 3.12 and later ends the app with an error.
        if not self.query(FilterLine):
            await self.query_one("#home-left").mount(FilterLine("own-code", "workloads"), before="#own-box")
        self.query_one(FilterLine).open()

    def on_filter_line_edited(self) -> None:
        self._show_marks()
        self._show_row()

    def on_filter_line_left(self) -> None:
        """Go to the workloads that are left, else to what is left of your own."""
        workloads = self.query_one(WorkloadList)
        (workloads if workloads.count else self.query_one(OwnCodeList)).focus()

    def action_back(self) -> None:
        if filtering := next((line for line in self.query(FilterLine) if line.value), None):
            filtering.action_clear_filter()
        elif self._own_in_view or self.focused is self.query_one(WorkloadList):
            self.query_one(OwnCodeList).focus()
        else:
            self.query_one(WorkloadList).focus()

    def action_preset(self) -> None:
        self.choices.preset = "published" if self.choices.preset == "quick" else "quick"
        self.profiler.user.keep("preset", self.choices.preset)
        self._show_row()

    def action_devices(self) -> None:
        self.query_one(DeviceList).focus()

    def action_edit(self) -> None:
        if self.info is not None:
            from jaxprof.tui.home.workload_dialogs import ask_parameters

            ask_parameters(self.app, self.info, self.choices, self._show_row)

    def action_compile_for(self) -> None:
        if self.info is not None:
            from jaxprof.tui.home.workload_dialogs import ask_devices

            ask_devices(self.profiler, self.info, self.choices)

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        """Hide what is about a workload unless the cursor is on one, and Compare unless two are marked."""
        if not self.whole:
            return super().why_not(action, parameters)
        if action in _OF_A_WORKLOAD and self._own_in_view:
            return HIDDEN
        if self.entry is None and (action == "kept" or (action == "history" and self._own_in_view)):
            return HIDDEN
        if action == "compare" and len(self._to_compare) != 2:
            marked = ", ".join(each.stem if isinstance(each, Path) else each for each in self._to_compare) or "none"
            words = f"{key_of('home.compare')} compares two workloads, or two sessions, marked by"
            return Hidden(f"{words} {key_of('workloads.mark')}; marked now: {marked}")
        return super().why_not(action, parameters)

    @property
    def _to_compare(self) -> list[str] | list[Path]:
        """What is marked in the list that the cursor is in: sessions, or workloads."""
        return self.query_one(OwnCodeList).marked if self._own_in_view else self.choices.marked

    def action_compare(self) -> None:
        if self._own_in_view:
            self.profiler.compare_sessions(*self.query_one(OwnCodeList).marked)
            return
        infos = [self._infos[name] for name in self.choices.marked if name in self._infos]
        if len(infos) == 2:  # both are described
            self.profiler.start_comparison(self.choices.comparison(infos))

    def action_history(self) -> None:
        if self.entry is not None:
            workloads = self.entry.workloads
            self.profiler.show_history(workloads[0] if len(workloads) == 1 else "")
        elif self.info is not None:
            self.profiler.show_history(self.info.target or self.info.name)

    def action_program(self, form: ScriptForm | None = None) -> None:
        from jaxprof.tui.kit.script_dialog import ask_for_program

        ask_for_program(self.profiler, form)

    def action_own(self) -> None:
        from jaxprof.tui.home.workload_dialogs import ask_own

        ask_own(self.profiler, self.choices, self._take_own)

    def _take_own(self, infos: list[WorkloadInfo]) -> None:
        self.take_workloads(infos)
        if infos:
            self.query_one(WorkloadList).move_to_key(infos[0].name)
            self.query_one(WorkloadList).focus()
