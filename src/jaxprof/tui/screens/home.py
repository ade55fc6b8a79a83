"""Home: what is there, what can be run, what was run.

The first frame has the names of the workloads and nothing else; descriptions, devices and sessions come from threads.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content

from jaxprof.errors import JaxprofError
from jaxprof.safe_text import safe
from jaxprof.tui.choices import Choices
from jaxprof.tui.last_medians import last_medians
from jaxprof.tui.messages import CardsLoaded, EntriesRead, Failed
from jaxprof.tui.screens.base import SessionScreen
from jaxprof.tui.screens.home_keys import KEYS
from jaxprof.tui.screens.home_questions import ask_own, ask_parameters
from jaxprof.tui.widgets.device_list import DeviceList
from jaxprof.tui.widgets.plan_line import PlanLine
from jaxprof.tui.widgets.session_list import SessionList
from jaxprof.tui.widgets.workload_detail import SourcePane, WorkloadDetail
from jaxprof.tui.widgets.workload_list import WorkloadList
from jaxprof.workloads import names

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from jaxprof.store import Entry
    from jaxprof.tui.widgets.filter_line import FilterLine
    from jaxprof.workloads.model import WorkloadCard

RECENT = 12


class HomeScreen(SessionScreen):
    """Devices above, workloads on the left, the workload in view on the right, what Enter will do at the bottom."""

    CSS_PATH = None  # its layout is in the app's own, for the first frame
    MODE: ClassVar[str] = "home"
    AUTO_FOCUS = "#workloads"
    BINDINGS: ClassVar[list[BindingType]] = KEYS

    def __init__(self) -> None:
        super().__init__()
        self.choices = Choices()
        self._cards: dict[str, WorkloadCard] = {}
        self._names = names()
        self._entries: list[Entry] = []
        self._only = ""
        self._device_proposed = False
        """Whether the first device of JAX's own order was chosen already, in the user's stead."""

    def compose_body(self) -> ComposeResult:
        with Vertical(id="devices-box", classes="box") as box:
            box.border_title = "Devices"
            yield DeviceList(self.profiler.devices, self.choices.devices, id="devices")
        with Horizontal(id="home-body"):
            with Vertical(id="home-left"):
                with Vertical(id="workloads-box", classes="box") as box:
                    box.border_title = "Workloads"
                    yield WorkloadList(self._names, self._cards, self.choices)
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
        self.run_worker(self._read_cards, name="cards", group="cards", thread=True)

    def _read_cards(self) -> None:
        """In a thread: what Home shows beside the names, and the imports that the first key would wait for."""
        from jaxprof import workloads

        self.post_message(CardsLoaded(workloads.cards()))
        self.profiler.list_sessions(self)
        import_module("jaxprof.worker")  # now, so that the first key does not wait for it

    # -- what threads bring ------------------------------------------------------------------------------------

    def on_cards_loaded(self, message: CardsLoaded) -> None:
        """Descriptions came: the catalogue's, or the user's own."""
        if not self.whole:
            return
        for card in message.cards:
            self._cards[card.name] = card
            if card.name not in self._names:
                self._names.append(card.name)
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
        """A run that is over has changed what was run last."""
        known = self.profiler.session.runs
        if any(run in known and known[run].over for run in runs):
            self._list_sessions()

    def come_into_view(self) -> None:
        super().come_into_view()
        if self._cards:  # not before the first frame
            self._list_sessions()

    def _list_sessions(self) -> None:
        self.run_worker(
            lambda: self.profiler.list_sessions(self), name="entries", group="entries", exclusive=True, thread=True
        )

    # -- what is shown -----------------------------------------------------------------------------------------

    @property
    def card(self) -> WorkloadCard | None:
        """The workload under the cursor, once its description is there."""
        name = self.query_one(WorkloadList).workload
        return self._cards.get(name) if name is not None else None

    def _show_detail(self) -> None:
        card = self.card
        box = self.query_one("#detail-box")
        box.border_title = Content(safe(card.name) if card is not None else "")
        last = last_medians(card.name, self._entries) if card is not None else {}
        self.query_one(WorkloadDetail).show_card(card, last, self.choices.estimate(card) if card is not None else None)

    def _chosen(self) -> list[WorkloadCard]:
        """The marked workloads, or the one under the cursor."""
        marked = [self._cards[name] for name in self._names if name in self.choices.marked and name in self._cards]
        return marked or ([self.card] if self.card is not None else [])

    def _show_plan(self) -> None:
        """What Enter will do, in one line."""
        self.query_one(PlanLine).show(self._chosen(), self.choices)

    def _show_marks(self) -> None:
        listed = self.query_one(WorkloadList)
        box = self.query_one("#workloads-box")
        marked = len(self.choices.marked)
        notes = [f"{marked} marked"] if marked else []
        notes += [f"{listed.hidden} hidden"] if listed.hidden else []
        box.border_subtitle = " · ".join(notes)
        self._show_plan()

    # -- what the lists say ------------------------------------------------------------------------------------

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
        """Starts what is chosen."""
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
                JaxprofError(device.facts.reason, device.facts.mend), f"JAX does not use {message.device}"
            )
            return
        self.choices.toggle_device(message.device)
        self.query_one(DeviceList).refresh()
        self._show_plan()

    @on(WorkloadDetail.Toggled)
    def _variant_toggled(self, message: WorkloadDetail.Toggled) -> None:
        card = self.card
        if card is None:
            return
        if message.variant == card.baseline:
            self.notify("The others are compared with it.", title="The baseline always runs", markup=False)
        self.choices.toggle_variant(card, message.variant)
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
        """Opens the line for the filter; it is made at its first use, because the first frame need not wait for it."""
        from jaxprof.tui.widgets.filter_line import FilterLine

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
        """Clears the filter; else back to the list of workloads."""
        if self._only:
            from jaxprof.tui.widgets.filter_line import FilterLine

            self.query_one(FilterLine).clear()
        self.query_one(WorkloadList).focus()

    def action_preset(self) -> None:
        """The other preset, for all workloads."""
        self.choices.next_preset()
        self._show_detail()
        self._show_plan()

    def action_devices(self) -> None:
        """To the devices."""
        self.query_one(DeviceList).focus()

    def action_variants(self) -> None:
        """To the variants of the workload in view."""
        self.settle()
        self.query_one(WorkloadDetail).focus()

    def action_recent(self) -> None:
        """To the recent sessions."""
        self.query_one("#recent", SessionList).focus()

    def action_edit(self) -> None:
        """Asks for the parameters of the workload in view."""
        if self.card is not None:
            ask_parameters(self.profiler, self.card, self.choices, self._card_changed)

    def _card_changed(self) -> None:
        self._show_detail()
        self._refresh_row()

    def action_compile_for(self) -> None:
        """Asks for a device that is not here, and compiles the workload in view for it."""
        if self.card is not None:
            from jaxprof.tui.compile_for import ask

            ask(self.profiler, self.card, self.choices)

    def action_program(self) -> None:
        """Asks for a program of the user's, and runs it."""
        from jaxprof.tui.program_again import ask_for_program

        ask_for_program(self.profiler)

    def action_own(self) -> None:
        """Asks for a workload of the user's."""
        ask_own(self.profiler, self.choices, self._take_own)

    def _take_own(self, cards: list[WorkloadCard]) -> None:
        self.on_cards_loaded(CardsLoaded(cards))
        if cards:
            self.query_one(WorkloadList).move_to_key(cards[0].name)

    def on_failed(self, message: Failed) -> None:
        self.profiler.tell(message.error)
        message.stop()
