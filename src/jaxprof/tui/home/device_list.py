"""The devices with their live readings, one line each; runs go to the marked ones.

The readings are one cell: they differ from device to device, and each line shows those that its device has.
"""

from __future__ import annotations

from collections.abc import Hashable

from textual.content import Content

from jaxprof import units
from jaxprof.tui.device_monitor import DeviceFacts, DeviceRow, DeviceTable
from jaxprof.tui.kit.drawing import bar, cell, heat, mark, spark
from jaxprof.tui.kit.table_columns import Drawing, TableColumn
from jaxprof.tui.kit.table_view import Heading, TableView, TextRow

BAR_WIDTH = 8
HEAD = 12
"""Terminal columns before the name, for mark and id."""
WIDE = 98
"""Width from which the name has room for details."""


class DeviceList(TableView[DeviceRow], keys="devices"):
    """One row per device, and a hint below each device that JAX does not use."""

    MARKS = True

    def __init__(self, devices: DeviceTable, chosen: list[str], *, id: str | None = None) -> None:
        super().__init__(
            (
                TableColumn("", lambda device: self._mark(device.facts), 1),
                TableColumn("device", lambda device: (device.facts.id, _strength(device.facts)), 8),
                TableColumn("readings", _name_and_readings, 8, weight=1),
            ),
            titles=False,
            id=id,
        )
        self._devices = devices
        self._chosen = chosen

    def show_devices(self) -> None:
        """Show the devices as they are now."""
        rows: dict[Hashable, DeviceRow | Heading] = {}
        for device in self._devices:
            facts = device.facts
            rows[facts.id] = device
            if facts.usable is False and facts.hint:
                rows[facts.id, "hint"] = TextRow(f"            {facts.hint}", "$accent")
        self.show_rows(rows)

    def _mark(self, facts: DeviceFacts) -> Content:
        return Content(" ") if facts.usable is False else mark(facts.id in self._chosen)


def _strength(facts: DeviceFacts) -> str:
    return "$quiet" if facts.usable is False else "bold"


def _name_and_readings(device: DeviceRow) -> Drawing:
    """Return the name, then the readings, or why JAX does not use it; what does not fit is left out, least important
    first."""
    facts = device.facts

    def draw(width: int) -> Content:
        if facts.usable is False:
            name = cell(facts.name, min(24, max(8, (width + HEAD) // 4)), "$quiet")
            rest = width - name.cell_length - 1
            return name + Content(" ") + cell(f"not used by JAX: {facts.reason}", rest, "$warning")
        wide = width >= WIDE
        label = f"{facts.name} · {facts.detail}" if facts.detail and wide else facts.name or facts.detail
        line = cell(label, 26 if wide else 14, "$text-muted") + Content(" ")
        for part in _readings(device):
            if line.cell_length + part.cell_length <= width:
                line = line + part
        return line

    return draw


def _readings(device: DeviceRow) -> list[Content]:
    """Return the readings as pieces of one line, the most important first, each of a width that does not change."""
    reading = device.reading
    if reading is None:
        return [Content.styled("reading…", "$quiet")]
    utilisation, used, limit = reading.utilisation, reading.memory_used_bytes, reading.memory_limit_bytes
    share = used / limit if used is not None and limit else None
    pieces = [
        Content.assemble(
            spark(device.history, 10, heat(utilisation)),
            " ",
            cell(units.percent(_whole(utilisation)), 5, right=True),
            "  ",
        ),
        Content.assemble(
            bar(share, BAR_WIDTH, heat(share)),
            " ",
            cell(f"{units.bytes_(used)} / {units.bytes_(limit)}", 19),
            " ",
        ),
    ]
    if reading.power_watts is not None:
        most = f" / {reading.power_limit_watts:.0f}" if reading.power_limit_watts else ""
        pieces.append(cell(f"{reading.power_watts:.0f}{most} W", 12))
    if reading.temperature_celsius is not None:
        warm = "$warning" if reading.temperature_celsius >= 85 else ""
        pieces.append(cell(f"{reading.temperature_celsius:.0f} °C", 7, warm))
    if reading.load_average is not None:
        pieces.append(cell(f"load {reading.load_average:.1f}", 10))
    if reading.clock_hertz is not None:
        pieces.append(cell(f"{reading.clock_hertz / 1e9:.2f} GHz", 10))
    if reading.throttle_reasons:
        pieces.append(Content.styled("throttled: " + ", ".join(map(str, reading.throttle_reasons)), "$warning"))
    elif reading.processes:
        count = len(reading.processes)
        pieces.append(Content.styled(units.counted(count, "process"), "$quiet"))
    return pieces


def _whole(share: float | None) -> float | None:
    """Return a share in whole percents, so that noise in the decimals does not redraw the line."""
    return None if share is None else round(share, 2)
