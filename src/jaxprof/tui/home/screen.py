"""Home: the devices, the workloads, the recent sessions.

The first frame has only the names of the workloads; threads bring descriptions, devices and sessions.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content

from jaxprof.errors import JaxprofError
from jaxprof.text import safe
from jaxprof.tui.home.device_list import DeviceList
from jaxprof.tui.home.plan_options import HomeOptions, PlanLine
from jaxprof.tui.home.workload_detail import SourcePane, WorkloadDetail, last_medians
from jaxprof.tui.home.workload_list import WorkloadList
from jaxprof.tui.kit.guard import on
from jaxprof.tui.kit.screen import SessionScreen
from jaxprof.tui.kit.session_list import SessionList
from jaxprof.tui.kit.threads import in_thread
from jaxprof.tui.messages import EntriesRead, Failed, WorkloadsLoaded
from jaxprof.workloads import names

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.session.log import Entry
    from jaxprof.tui.kit.filter_line import FilterLine
    from jaxprof.workloads.model import WorkloadInfo


KEYS: list[BindingType] = [
    Binding(
        "slash",
        "filter",
        "Filter",
        key_display="/",
        tooltip="Show only workloads that contain these words",
        id="home.filter",
    ),
    Binding("e", "edit", "Parameters", tooltip="Sizes, sweep, time budget and launches", id="home.edit"),
    Binding("p", "preset", "Preset", tooltip="Switch between quick and published sizes", id="home.preset"),
    Binding("d", "devices", "Devices", tooltip="Choose the devices to run on", id="home.devices"),
    Binding("v", "variants", "Variants", tooltip="Choose variants and see their source", id="home.variants"),
    Binding(
        "plus,o",
        "own",
        "Add function",
        key_display="+",
        tooltip="Add a function of your own to measure: file.py:function",
        id="home.own",
    ),
    Binding(
        "x", "program", "Profile script", tooltip="Run and record a script of your own: train.py", id="home.program"
    ),
    Binding(
        "c",
        "compile_for",
        "Compile for",
        tooltip="Estimate this workload's kernels on a device that is not here; with two marked: Compare",
        id="home.compile_for",
    ),
    Binding(
        "c",
        "compare",
        "Compare",
        tooltip="Measure the two marked workloads in turns, the one marked first as A, and compare them",
        id="home.compare",
    ),
    Binding(
        "H",
        "history",
        "History",
        show=False,
        tooltip="How this workload went over the kept sessions",
        id="home.history",
    ),
    Binding("r", "run", "Run", show=False, tooltip="Run the marked workloads, or this one", id="home.run"),
    Binding("s", "recent", "Recent sessions", show=False, tooltip="Go to the recent sessions", id="home.recent"),
    Binding("escape", "back", "Back", show=False, tooltip="Clear the filter, or go back to the list", id="home.back"),
    Binding("tab", "app.focus_next", "Next pane", show=False, tooltip="Go to the next pane", id="home.next"),
    Binding(
        "shift+tab",
        "app.focus_previous",
        "Previous pane",
        show=False,
        tooltip="Go to the previous pane",
        id="home.last",
    ),
]


RECENT = 12


class HomeScreen(SessionScreen):
    """Devices at the top, workloads on the left, the current workload on the right, the plan of Enter at the bottom."""

    CSS_PATH = None  # the app's stylesheet has its layout, for the first frame
    MODE: ClassVar[str] = "home"
    AUTO_FOCUS = "#workloads"
    BINDINGS: ClassVar[list[BindingType]] = KEYS

    def __init__(self) -> None:
        super().__init__()
        self.choices = HomeOptions()
        self._infos: dict[str, WorkloadInfo] = {}
        self._names = names()
        self._entries: list[Entry] = []
        self._only = ""
        self._device_proposed = False
        """Whether the first accelerator was already chosen for the user."""

    def compose_body(self) -> ComposeResult:
        with Vertical(id="devices-box", classes="box") as box:
            box.border_title = "Devices"
            yield DeviceList(self.profiler.devices, self.choices.devices, id="devices")
        with Horizontal(id="home-body"):
            with Vertical(id="home-left"):
                with Vertical(id="workloads-box", classes="box") as box:
                    box.border_title = "Workloads"
                    yield WorkloadList(self._names, self._infos, self.choices)
                with Vertical(id="recent-box", classes="box") as box:
                    box.border_title = "Recent sessions"
                    yield SessionList(id="recent")
            source = SourcePane()
            with Horizontal(id="detail-box", classes="box"):
                yield WorkloadDetail(self.choices, source)
                yield source
        yield PlanLine(id="plan")

    def on_mount(self) -> None:
        self.query_one(DeviceList).show_devices()
        self.call_after_refresh(self._load)

    def _load(self) -> None:
        in_thread(self, self._read_workloads, "workloads")

    def _read_workloads(self) -> None:
        """Runs in a thread: reads descriptions and sessions, and imports what the first key would wait for."""
        from jaxprof import workloads

        self.post_message(WorkloadsLoaded(workloads.infos()))
        self.profiler.list_sessions(self)
        import_module("jaxprof.runner")  # early, so that the first key does not wait for it

    # -- what threads bring ------------------------------------------------------------------------------------

    def on_workloads_loaded(self, message: WorkloadsLoaded) -> None:
        """Shows new descriptions: the catalogue's, or a user's own."""
        if not self.whole:
            return
        for info in message.infos:
            self._infos[info.name] = info
            if info.name not in self._names:
                self._names.append(info.name)
        self.query_one(WorkloadList).show_names(self._names, self._only)
        self._show_detail()
        self._show_plan()

    def on_entries_read(self, message: EntriesRead) -> None:
        if not self.whole:
            return
        self._entries = message.entries
        self.query_one("#recent", SessionList).show_entries(message.entries[:RECENT])
        self._show_detail()

    def on_devices_changed(self) -> None:
        if not self.whole:
            return
        devices = self.profiler.devices
        if devices.asked and not self._device_proposed:
            self._device_proposed = True
            accelerator = next((device.facts.id for device in devices if device.facts.usable), None)
            if accelerator is not None and self.choices.devices == ["cpu:0"]:
                self.choices.devices[:] = [accelerator]
                self._show_plan()
        self.query_one(DeviceList).show_devices()

    def show_session(self, runs: frozenset[str], *, replaced: bool) -> None:
        """Lists the sessions again when a run has ended."""
        session_runs = self.profiler.session.runs
        if any(run in session_runs and session_runs[run].over for run in runs):
            self._list_sessions()

    def come_into_view(self) -> None:
        super().come_into_view()
        if self._infos:  # not before the first frame
            self._list_sessions()

    def _list_sessions(self) -> None:
        in_thread(self, lambda: self.profiler.list_sessions(self), "entries")

    # -- what is shown -----------------------------------------------------------------------------------------

    @property
    def info(self) -> WorkloadInfo | None:
        """The workload under the cursor; None until its description is there."""
        name = self.query_one(WorkloadList).workload
        return self._infos.get(name) if name is not None else None

    def _show_detail(self) -> None:
        info = self.info
        box = self.query_one("#detail-box")
        box.border_title = Content(safe(info.name) if info is not None else "")
        last = last_medians(info.name, self._entries) if info is not None else {}
        self.query_one(WorkloadDetail).show_info(info, last, self.choices.estimate(info) if info is not None else None)

    def _chosen(self) -> list[WorkloadInfo]:
        """The marked workloads, or the one under the cursor."""
        marked = [self._infos[name] for name in self._names if name in self.choices.marked and name in self._infos]
        return marked or ([self.info] if self.info is not None else [])

    def _show_plan(self) -> None:
        """Shows in one line what Enter will do."""
        self.query_one(PlanLine).show(self._chosen(), self.choices)

    def _show_marks(self) -> None:
        listed = self.query_one(WorkloadList)
        box = self.query_one("#workloads-box")
        marked = len(self.choices.marked)
        notes = [f"{marked} marked"] if marked else []
        notes += [f"{listed.hidden} hidden"] if listed.hidden else []
        notes += ["c compares"] if marked == 2 else []
        box.border_subtitle = " · ".join(notes)
        self.refresh_bindings()
        self._show_plan()

    # -- messages of the lists ---------------------------------------------------------------------------------

    @on(WorkloadList.Highlighted, "#workloads")
    def _workload_in_view(self) -> None:
        self.once_settled(self._show_workload)

    def _show_workload(self) -> None:
        self._show_detail()
        if not self.choices.marked:
            self._show_plan()

    @on(WorkloadList.Marked)
    def _marked(self) -> None:
        self._show_marks()

    @on(WorkloadList.Run)
    def action_run(self) -> None:
        """Starts the chosen runs."""
        try:
            planned = self.choices.plan(self._chosen())
        except JaxprofError as error:
            self.profiler.tell(error)
            return
        if planned:
            self.profiler.start_runs(planned)

    @on(DeviceList.Toggled)
    def _device_toggled(self, message: DeviceList.Toggled) -> None:
        device = self.profiler.devices.get(message.device)
        if device is not None and device.facts.usable is False:
            self.profiler.tell(
                JaxprofError(device.facts.reason, device.facts.hint), f"JAX does not use {message.device}"
            )
            return
        self.choices.toggle_device(message.device)
        self.query_one(DeviceList).refresh()
        self._show_plan()

    @on(WorkloadDetail.Toggled)
    def _variant_toggled(self, message: WorkloadDetail.Toggled) -> None:
        info = self.info
        if info is None:
            return
        if message.variant == info.baseline:
            self.notify("The others are compared with it.", title="The baseline always runs", markup=False)
        self.choices.toggle_variant(info, message.variant)
        self.query_one(WorkloadDetail).refresh()
        self._refresh_row()

    @on(SessionList.Opened)
    def _session_opened(self) -> None:
        entry = self.query_one("#recent", SessionList).entry
        if entry is not None:
            self.profiler.open_session(entry.path)

    def _refresh_row(self) -> None:
        listed = self.query_one(WorkloadList)
        listed.refresh_row(listed.cursor)
        self._show_plan()

    # -- keys --------------------------------------------------------------------------------------------------

    async def action_filter(self) -> None:
        """Opens the filter line, which is made at first use so that the first frame does not wait for it."""
        from jaxprof.tui.kit.filter_line import FilterLine

        if not self.query(FilterLine):
            await self.query_one("#workloads-box").mount(FilterLine(), before="#workloads")
        self.query_one(FilterLine).open(self._only)

    def on_filter_line_edited(self, message: FilterLine.Edited) -> None:
        self._only = message.text
        self.query_one(WorkloadList).show_names(self._names, self._only)
        self._show_marks()

    def on_filter_line_left(self) -> None:
        self.query_one(WorkloadList).focus()

    def action_back(self) -> None:
        """Clears the filter, and goes back to the list of workloads."""
        if self._only:
            from jaxprof.tui.kit.filter_line import FilterLine

            self.query_one(FilterLine).clear()
        self.query_one(WorkloadList).focus()

    def action_preset(self) -> None:
        """Switches to the next preset, for all workloads."""
        self.choices.next_preset()
        self._show_detail()
        self._show_plan()

    def action_devices(self) -> None:
        """Goes to the devices."""
        self.query_one(DeviceList).focus()

    def action_variants(self) -> None:
        """Goes to the variants of the current workload."""
        self.settle()
        self.query_one(WorkloadDetail).focus()

    def action_recent(self) -> None:
        """Goes to the recent sessions."""
        self.query_one("#recent", SessionList).focus()

    def action_edit(self) -> None:
        """Asks for the parameters of the current workload."""
        if self.info is not None:
            from jaxprof.tui.home.workload_dialogs import ask_parameters

            ask_parameters(self.profiler, self.info, self.choices, self._info_changed)

    def _info_changed(self) -> None:
        self._show_detail()
        self._refresh_row()

    def action_compile_for(self) -> None:
        """Asks for devices that are not here, and compiles the current workload for them."""
        if self.info is not None:
            from jaxprof.tui.home.workload_dialogs import ask_devices

            ask_devices(self.profiler, self.info, self.choices)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """`c` compares two marked workloads; with any other number of marks it compiles the one under the cursor."""
        if action in ("compare", "compile_for"):
            return (len(self.choices.marked) == 2) == (action == "compare")
        return super().check_action(action, parameters)

    def action_compare(self) -> None:
        """Measures the two marked workloads in turns."""
        infos = [self._infos[name] for name in self.choices.marked if name in self._infos]
        if len(infos) != 2:  # not described yet
            return
        try:
            plan = self.choices.comparison(infos)
        except JaxprofError as error:
            self.profiler.tell(error)
            return
        self.profiler.start_comparison(plan)

    def action_history(self) -> None:
        """Shows how the current workload went over the kept sessions."""
        if self.info is not None:
            self.profiler.show_history(self.info.target or self.info.name)

    def action_program(self) -> None:
        """Asks for a user's program, and runs it."""
        from jaxprof.tui.kit.script_dialog import ask_for_program

        ask_for_program(self.profiler)

    def action_own(self) -> None:
        """Asks for a user's own workload."""
        from jaxprof.tui.home.workload_dialogs import ask_own

        ask_own(self.profiler, self.choices, self._take_own)

    def _take_own(self, infos: list[WorkloadInfo]) -> None:
        self.on_workloads_loaded(WorkloadsLoaded(infos))
        if infos:
            self.query_one(WorkloadList).move_to_key(infos[0].name)

    def on_failed(self, message: Failed) -> None:
        self.profiler.tell(message.error)
        message.stop()
