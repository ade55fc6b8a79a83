"""The Start screen: one list of what runs, the user's programs, the sessions, and examples; a preview of the row beside
it; and the devices.

The first frame has the ways to measure something and the names of the workloads. Threads add programs, descriptions,
devices and sessions. The row under the cursor decides what the preview shows, what Enter does, and which keys there
are.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from jaxprof import workloads
from jaxprof.base.errors import JaxprofError
from jaxprof.base.text import safe
from jaxprof.devices import default_device
from jaxprof.tui.home.device_list import DeviceList
from jaxprof.tui.home.plan_options import HomeOptions, plan_line
from jaxprof.tui.home.start_list import MOST_HERE, StartList, StartRow, explanation_lines, own_rows
from jaxprof.tui.keys import key_of
from jaxprof.tui.kit.filter import FilterLine
from jaxprof.tui.kit.guard import HIDDEN, Hidden, in_thread, on
from jaxprof.tui.kit.host import Destination, LiveChanged
from jaxprof.tui.kit.picture import Lines, ScrollPane, show_titles
from jaxprof.tui.kit.row_list import RowList
from jaxprof.tui.kit.screen import SessionScreen
from jaxprof.workloads import names

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from textual.app import ComposeResult
    from textual.timer import Timer

    from jaxprof.runner.program import ProgramCommand
    from jaxprof.session import Entry
    from jaxprof.tui.shell.profiler import Profiler
    from jaxprof.workloads.model import WorkloadInfo


LISTED = 40
"""Number of kept sessions that are listed, until the user asks for all."""
SETTLE_SECONDS = 0.06
"""Seconds that the cursor rests before its row is previewed: longer than the repeat of a held key."""
_OF_A_WORKLOAD = frozenset({"edit", "preset", "compile_for", "run"})
"""Actions on the workload under the cursor, or on the marked ones."""


class HomeScreen(SessionScreen, keys="home"):
    """Devices at the top, the list on the left, the preview of its row on the right, the plan of its runs below."""

    CSS_PATH = None  # the app's stylesheet has its layout, so that the first frame has it
    MODE = "home"
    AUTO_FOCUS = "#start"

    def __init__(self) -> None:
        super().__init__()
        self.choices = HomeOptions()
        self._infos: dict[str, WorkloadInfo | None] = dict.fromkeys(names())
        """The workloads by name; None until its description has been read."""
        self._entries: list[Entry] = []
        self._most: int | None = LISTED
        self._wanted: Path | None = None
        """The session to which the cursor goes once it is listed."""
        self._settling: Timer | None = None
        """Runs while the cursor rests."""
        self._devices_proposed = False
        """Whether the devices that are there have been chosen for the user already."""
        self._previewed: Hashable = None
        self._costs: dict[tuple[Path, float], str] = {}
        """What costs most in a recorded program, by session and time of its last change; empty if it cannot be read."""
        self._costing = False

    @property
    def profiler(self) -> Profiler:
        """The app; this screen also needs its devices, its library, and the user's settings."""
        return cast("Profiler", self.app)

    def compose_body(self) -> ComposeResult:
        user = self.profiler.user.config
        self.choices = HomeOptions(
            preset=user.get("preset", str) or self.choices.preset,
            budget_seconds=user.get("budget", float) or self.choices.budget_seconds,
            devices=list(user.get("devices", tuple) or self.choices.devices),
        )
        with Vertical(id="devices-box", classes="box") as box:
            box.border_title = "Devices"
            yield DeviceList(self.profiler.devices, self.choices.devices)
        with Horizontal(id="home-body"):
            with Vertical(id="home-left"), Vertical(id="start-box", classes="box") as box:
                box.border_title = "Your code, sessions, examples"
                yield StartList(self._infos, self.choices)
            with Vertical(id="detail-box", classes="box"), ScrollPane(id="detail"):
                yield Lines()
        yield Static(id="plan", markup=False)

    def on_mount(self) -> None:
        self.query_one(DeviceList).show_devices()
        self.profiler.devices.changed = self._show_devices
        self.call_after_refresh(lambda: in_thread(self, self._read_workloads, "workloads"))

    def _read_workloads(self) -> None:
        """Read descriptions and sessions, and import what the first key would wait for. Runs in a thread."""
        self.call_later(self.take_workloads, workloads.infos())
        self.call_later(self._take_sessions, self._read_sessions())
        for name in ("facts.devices", "runner.planning", "session.fold", "tui.home.preview", "tui.kit.dialogs"):
            import_module(f"jaxprof.{name}")  # so that the first key does not wait for the import

    def _read_sessions(self) -> tuple[list[Entry], list[StartRow]]:
        """Read the kept sessions, and look for the user's programs. Runs in a thread."""
        most = self._most
        entries = list(self.profiler.library().entries(None if most is None else most + 1))
        more = most is not None and len(entries) > most
        entries = entries[:most]
        return entries, own_rows(entries, self.profiler.folder, more=more, most=None if most is None else MOST_HERE)

    # -- results of threads ------------------------------------------------------------------------------------

    def take_workloads(self, infos: list[WorkloadInfo]) -> None:
        if self.whole:
            self._infos |= {info.name: info for info in infos}
            self._rows.show()
            self._show_row()

    def _take_sessions(self, read: tuple[list[Entry], list[StartRow]]) -> None:
        if not self.whole:
            return
        self._entries, rows = read
        self._rows.show(rows)
        if self._wanted is not None:
            self._rows.move_to_key(self._wanted)
            self._wanted = None
        self._show_row()
        self._show_marks()

    def _show_devices(self) -> None:
        if not self.whole or self.profiler.current_mode != self.MODE:
            return
        devices = self.profiler.devices
        if devices.asked and not self._devices_proposed:
            self._devices_proposed = True
            if "devices" in self.profiler.user.config.values:
                self.choices.take_usable(row.device.id for row in devices if row.device.used_by_jax is not False)
            elif self.choices.devices == ["cpu:0"]:
                self.choices.devices[:] = [default_device(row.device for row in devices)]
            self._show_plan()
        self.query_one(DeviceList).show_devices()

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        known = runs & self.profiler.opened.run_ids
        if any(self.profiler.session.runs[run].over for run in known):
            self.list_sessions()

    def on_live_changed(self, message: LiveChanged) -> None:
        super().on_live_changed(message)
        self.list_sessions()

    def arrive(self, destination: Destination) -> None:
        if self._previewed is not None:  # not before the first frame
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
    def _rows(self) -> StartList:
        return self.query_one(StartList)

    @property
    def info(self) -> WorkloadInfo | None:
        """The workload under the cursor; None for another row, and until its description has been read."""
        row = self._rows.current_row
        return self._infos.get(row.workload) if row is not None else None

    def _show_row(self) -> None:
        row = self._rows.current_row
        title = row.title if row is not None else ""
        show_titles(self.query_one("#detail-box"), Content(safe(title)))
        pane = self.query_one("#detail", ScrollPane)
        pane.query_one(Lines).show(lambda width: self._preview(row, max(24, width)))
        if row is not None and self._previewed != row.key:
            self._previewed = row.key
            pane.scroll_home(animate=False)
        self._rows.redraw()  # the options of a workload may differ
        self._show_plan()
        if row is not None and row.entry is not None:
            from jaxprof.tui.home.preview import cost_of, has_cost

            entry = row.entry
            version = entry.path, entry.modified_seconds
            if self._costing or version in self._costs or not has_cost(entry):
                return  # one session at a time, however many rows the cursor passes
            self._costing = True

            def take(cost: str) -> None:
                self._costs[version], self._costing = cost, False
                if self.whole:
                    self._show_row()

            # Other lines of the preview name what cannot be read.
            in_thread(self, lambda: cost_of(entry), "cost", then=take, failed=lambda error: take(""))

    def _preview(self, row: StartRow | None, width: int) -> list[Content]:
        if row is None or not (row.entry or row.workload):
            return explanation_lines(row, width) if row is not None else []
        from jaxprof.tui.home.preview import description, session_summary  # not needed for the first frame

        if row.entry is not None:
            cost = self._costs.get((row.entry.path, row.entry.modified_seconds), "")
            return session_summary(row.entry, self.profiler.session_path, width, cost)
        info = self._infos[row.workload]
        return list(description(info, self.choices, self._entries, width)) if info is not None else []

    def _workloads_to_run(self) -> list[WorkloadInfo]:
        return self._infos_of(self._rows.marked) or ([self.info] if self.info is not None else [])

    def _infos_of(self, keys: Iterable[Hashable]) -> list[WorkloadInfo]:
        described = (self._infos.get(str(key)) for key in keys)
        return [info for info in described if info is not None]

    def _show_plan(self) -> None:
        """Show in one line what Enter will run; of other rows, the preview says what it does."""
        chosen = self._workloads_to_run() if self.info is not None else []
        line = plan_line(chosen, self.choices, self.app.size.width) if chosen else Content("")
        self.query_one("#plan", Static).update(line, layout=False)

    @on(StartList.Marked)
    def _show_marks(self) -> None:
        rows = self._rows
        notes = [f"{len(rows.marked)} marked"] if rows.marked else []
        notes += [f"{rows.hidden} hidden"] if rows.hidden else []
        notes += [f"{key_of('home.compare')} compares"] if len(rows.marked) == len(self._to_compare) == 2 else []
        show_titles(self.query_one("#start-box"), subtitle=Content(" · ".join(notes)))
        self.refresh_bindings()
        self._show_plan()

    # -- what the user does ------------------------------------------------------------------------------------

    @on(RowList.Highlighted, "#start")
    def _follow_cursor(self) -> None:
        """Show another row once the cursor has rested: that needs a new layout, which must not delay a held key."""
        self.refresh_bindings()
        if self._settling is not None:
            self._settling.stop()
        self._settling = self.set_timer(SETTLE_SECONDS, lambda: self.whole and self.call_later(self._show_row))

    @on(RowList.Chosen, "#start")
    async def _choose(self) -> None:
        row = self._rows.current_row
        if row is None:
            return
        if row.workload:
            self.action_run()
        elif row.program is not None:
            self.action_program(row.program)
        elif row.asks:
            self.action_own(row.asks)
        elif row.entry is not None:
            self.profiler.open_session(row.entry.path)
        else:
            await self.run_action(row.action)

    def action_kept(self, what: str) -> None:
        from jaxprof.tui.home import dialogs

        if (entry := self._rows.entry) is not None:
            getattr(dialogs, what)(self.profiler, entry, self.list_sessions)

    def action_open_file(self) -> None:
        self.profiler.ask_for_file()

    def action_run(self) -> None:
        if planned := self.choices.plan(self._workloads_to_run()):
            self.profiler.start_runs(planned)

    @on(RowList.Chosen, "#devices")
    def _show_device(self, message: RowList.Highlighted) -> None:
        from jaxprof.tui.home.dialogs import show_device

        show_device(self.app, self.profiler.devices.rows[str(message.rows.row_key(message.index))])

    def action_toggle_device(self) -> None:
        name = str(self.query_one(DeviceList).current)
        if (row := self.profiler.devices.rows.get(name)) is None:
            return
        device = row.device
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
            await self.query_one("#home-left").mount(FilterLine("start", chooses=True), before="#start-box")
        self.query_one(FilterLine).open()

    def on_filter_line_edited(self) -> None:
        self._show_marks()
        self._show_row()

    def action_back(self) -> None:
        if filtering := next((line for line in self.query(FilterLine) if line.value), None):
            filtering.action_clear_filter()
        else:
            self._rows.focus()

    def action_preset(self) -> None:
        self.choices.preset = "published" if self.choices.preset == "quick" else "quick"
        self.profiler.user.keep("preset", self.choices.preset)
        self._show_row()

    def action_devices(self) -> None:
        self.query_one(DeviceList).focus()

    def action_edit(self) -> None:
        if self.info is not None:
            from jaxprof.tui.home.dialogs import ask_parameters

            ask_parameters(self.app, self.info, self.choices, self._show_row)

    def action_compile_for(self) -> None:
        if self.info is not None:
            from jaxprof.tui.home.dialogs import ask_devices

            ask_devices(self.profiler, self.info, self.choices)

    def why_not(self, action: str, parameters: tuple[object, ...]) -> str | None:
        if not self.whole:
            return super().why_not(action, parameters)
        if action in _OF_A_WORKLOAD and self.info is None:
            return HIDDEN
        if self._rows.entry is None and action == "kept":
            return HIDDEN
        if action == "compare" and not self._to_compare:
            marked = ", ".join(each.stem if isinstance(each, Path) else str(each) for each in self._rows.marked)
            words = f"{key_of('home.compare')} compares two workloads, or two sessions"
            how = f"mark one with {key_of('start.mark')} and go to the other"
            return Hidden(f"{words}: {how}; marked now: {marked or 'none'}")
        return super().why_not(action, parameters)

    @property
    def _to_compare(self) -> list[Hashable]:
        """The two marked rows, or the marked one and the one under the cursor; empty unless both are of one kind."""
        rows = self._rows
        both = list(rows.marked)
        if len(both) == 1 and rows.current not in both and rows.why_not("mark", ()) is None:
            both.append(rows.current)
        return both if len(both) == 2 and len(set(map(type, both))) == 1 else []

    def action_compare(self) -> None:
        both = self._to_compare
        sessions = [entry.path for entry in reversed(self._entries) if entry.path in both]
        if len(sessions) == 2:
            self.profiler.compare_sessions(*sessions)
        elif len(infos := self._infos_of(both)) == 2:
            self.profiler.start_comparison(self.choices.comparison(infos))

    def action_program(self, program: ProgramCommand | None = None) -> None:
        from jaxprof.tui.kit.dialogs import ask_for_program

        ask_for_program(self.profiler, program)

    def action_own(self, asks: str = "") -> None:
        from jaxprof.tui.home.dialogs import ask_function

        ask_function(self.profiler, self.choices, self._take_own, asks)

    def _take_own(self, infos: list[WorkloadInfo]) -> None:
        self.take_workloads(infos)
        if infos:
            self._rows.move_to_key(infos[0].name)
            self._rows.focus()
