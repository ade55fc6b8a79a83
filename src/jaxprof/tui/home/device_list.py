"""The devices with their live readings, one line each; runs go to the marked ones.

The readings are one cell: they differ from device to device, and each line shows those that its device has.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from textual.content import Content
from textual.widget import Widget

from jaxprof.base import units
from jaxprof.base.text import safe
from jaxprof.tui import clock
from jaxprof.tui.kit.drawing import bar, cell, mark, spark, whole_parts
from jaxprof.tui.kit.picture import show_titles
from jaxprof.tui.kit.row_list import Heading, RowList
from jaxprof.tui.kit.table_columns import Drawing, TableColumn
from jaxprof.tui.shell.device_monitor import DeviceMonitor, DeviceRow

if TYPE_CHECKING:
    from jaxprof.facts.devices import Severity

SPARK_WIDTH, BAR_WIDTH = 6, 6
FULL = 0.95
"""Share of the memory in use from which the bar is an alarm."""
HOT_CELSIUS = 85
WIDE = 98
"""Width from which the readings have room for what matters less."""
_STYLES = {"error": "bold $error", "warning": "$warning", "note": "$quiet"}


class DeviceList(RowList[DeviceRow], keys="devices"):
    """One row per device, then why JAX does not use some, each reason once."""

    EMPTY = "Looking for devices…"

    def __init__(self, devices: DeviceMonitor, chosen: list[str]) -> None:
        super().__init__(
            (
                TableColumn("", lambda row: (row.device.machine_index, "$quiet"), 0, fits=True, most=4, right=True),
                TableColumn("", lambda row: " " if _unused(row) else mark(row.device.id in self._chosen), 1),
                TableColumn("device", lambda row: (row.device.id, "$quiet" if _unused(row) else "bold"), 8),
                TableColumn("readings", lambda row: self._readings_of(row), 8, weight=1),
            ),
            titles=False,
            id="devices",
        )
        self._devices = devices
        self._chosen = chosen
        self._title = ""
        """What the GPUs are, if they are alike; their rows do not name them then."""

    def show_devices(self) -> None:
        if self._devices.asked:
            self.show_empty("The devices cannot be read.")
        if not self._devices.rows:
            return
        from jaxprof.facts.devices import title_of, unused_groups  # not needed for the first frame

        devices = [row.device for row in self._devices]
        self._title = title_of(devices, self._devices.driver)
        rows: dict[Hashable, DeviceRow | Heading] = {row.device.id: row for row in self._devices}
        for (reason, hint), unused in unused_groups(devices).items():
            names = ", ".join(device.id for device in unused) if len(unused) <= 3 else f"{len(unused)} of these"
            rows[reason, hint, "reason"] = Heading(f" {names}: not used by JAX: {reason}", "$warning")
            if hint:
                rows[reason, hint] = Heading(f"   {hint}", "$accent")
        self.show_rows(rows)
        self.on_resize()

    def on_resize(self) -> None:
        if isinstance(self.parent, Widget):
            more = self.count - self.size.height if self.size.height else 0
            late = " · NVIDIA's driver has not answered yet" if self._devices.late else ""
            below = Content(units.counted(more, "more line")) if more > 0 else Content("")
            show_titles(self.parent, Content(safe(self._title or "Devices") + late), below)

    def _readings_of(self, row: DeviceRow) -> Drawing:
        """Return the readings, the name first unless the title has it, then its state and its processes. The readings
        that matter least give way to what is wrong with it, and the clock also to who uses it."""
        from jaxprof.facts.devices import process_words, short_kind, state_words  # not needed for the first frame

        def draw(width: int) -> Content:
            device = row.device
            words = state_words(device, row.reading, clock.monotonic())
            wrong, notes = ([pair for pair in words if (pair[1] == "note") is note] for note in (False, True))
            if device.fault:
                return _state(wrong, width)
            titled = self._title and device.platform in ("cuda", "cpu")
            name = cell(short_kind(device.kind or device.platform.upper()), 26 if width >= WIDE else 14, "$text-muted")
            line, least = Content("") if titled else name + Content(" "), _state(wrong, width)
            powered = any(each.device.platform != "cpu" for each in self._devices)
            figures, lesser = _readings(row, powered=powered)
            for part in figures:
                if line.cell_length + part.cell_length + bool(least) + least.cell_length <= width:
                    line = line + part
            least = _state([*wrong, *notes], width - line.cell_length - 1)
            for part in lesser:
                if line.cell_length + part.cell_length + least.cell_length <= width:
                    line = line + part
            gap = "" if line.plain.endswith("  ") else " "
            if width >= WIDE and row.reading is not None:
                notes += process_words(row.reading)
            return line + gap + _state([*wrong, *notes], width - line.cell_length - len(gap))

        return draw


def _state(words: Iterable[tuple[str, Severity]], width: int) -> Content:
    return whole_parts((Content.styled(safe(word), _STYLES[severity]) for word, severity in words), width)


def _unused(row: DeviceRow) -> bool:
    return row.device.used_by_jax is False


def _readings(row: DeviceRow, *, powered: bool) -> tuple[list[Content], list[Content]]:
    """Return the readings as pieces of one line, the most important first, each of a width that does not change; then
    those that matter less than who uses the device. `powered`: the list has a device that may report power and
    temperature, so that each line has their columns."""
    reading = row.reading
    if reading is None:
        return [Content.styled("reading…", "$quiet")], []
    utilisation, used, limit = reading.utilisation, reading.memory_used_bytes, reading.memory_limit_bytes
    share = used / limit if used is not None and limit else None
    whole = None if utilisation is None else round(utilisation, 2)  # noise in the decimals does not redraw the line
    full = "$error" if share is not None and share >= FULL else "$bar"
    pieces = [
        spark(row.history, SPARK_WIDTH) + cell(units.percent(whole) if whole is not None else "", 6, right=True),
        Content("  ") + bar(share, BAR_WIDTH, full) + _figure(used, 2**30, ".1f", "GiB", 9),
    ]
    degrees = reading.temperature_celsius
    if powered:  # in columns below each other, also where one of them is not reported
        warm = "$warning" if degrees is not None and degrees >= HOT_CELSIUS else ""
        pieces += [_figure(reading.power_watts, 1, ".0f", "W", 6), _figure(degrees, 1, ".0f", "°C", 6, warm)]
    lesser = [_figure(reading.clock_hertz, 1e9, ".2f", "GHz", 9) + Content("  ")]
    if reading.load_average is not None:
        lesser.append(cell(f"load {reading.load_average:.1f}", 10))
    return pieces, lesser


def _figure(value: float | None, of: float, digits: str, unit: str, width: int, style: str = "") -> Content:
    """Return a reading in one unit for all devices, so that they can be compared: `76.6GiB`; blank if unknown."""
    return cell("" if value is None else f"{value / of:{digits}}{unit}", width, style, right=True)
