"""The devices with their live readings, one line each; runs go to the marked ones.

The readings are one cell: they differ from device to device, and each line shows those that its device has.
"""

from __future__ import annotations

from collections.abc import Hashable

from textual.content import Content

from jaxprof.base import units
from jaxprof.tui.kit.drawing import bar, cell, heat, mark, spark
from jaxprof.tui.kit.row_list import Heading, RowList
from jaxprof.tui.kit.table_columns import Drawing, TableColumn
from jaxprof.tui.shell.device_monitor import DeviceMonitor, DeviceRow

BAR_WIDTH = 8
HEAD = 12
"""Terminal columns before the name, for mark and id."""
WIDE = 98
"""Width from which the name has room for details."""


class DeviceList(RowList[DeviceRow], keys="devices"):
    """One row per device, and a hint below each device that JAX does not use."""

    EMPTY = "Looking for devices…"

    def __init__(self, devices: DeviceMonitor, chosen: list[str]) -> None:
        super().__init__(
            (
                TableColumn("", lambda row: " " if _unused(row) else mark(row.device.id in self._chosen), 1),
                TableColumn("device", lambda row: (row.device.id, "$quiet" if _unused(row) else "bold"), 8),
                TableColumn("readings", _name_and_readings, 8, weight=1),
            ),
            titles=False,
            id="devices",
        )
        self._devices = devices
        self._chosen = chosen

    def show_devices(self) -> None:
        if self._devices.asked:
            self.show_empty("The devices cannot be read.")
        rows: dict[Hashable, DeviceRow | Heading] = {}
        for row in self._devices:
            rows[row.device.id] = row
            if _unused(row) and row.device.hint:
                rows[row.device.id, "hint"] = Heading(f"            {row.device.hint}", "$accent")
        self.show_rows(rows)


def _unused(row: DeviceRow) -> bool:
    return row.device.used_by_jax is False


def _name_and_readings(row: DeviceRow) -> Drawing:
    """Return the name, then the readings, or why JAX does not use it; the least important ones give way."""
    device = row.device
    name = device.kind or device.platform.upper()

    def draw(width: int) -> Content:
        if _unused(row):
            head = cell(name, min(24, max(8, (width + HEAD) // 4)), "$quiet")
            rest = width - head.cell_length - 1
            return head + Content(" ") + cell(f"not used by JAX: {device.reason}", rest, "$warning")
        wide = width >= WIDE
        details = [name] if name else []
        if wide and device.core_count is not None:
            details.append(f"{device.core_count:g} core{'s' if device.core_count != 1 else ''}")
        if wide and device.compute_capability is not None:
            details.append(f"sm {device.compute_capability}")
        line = cell(" · ".join(details), 26 if wide else 14, "$text-muted") + Content(" ")
        for part in _readings(row):
            if line.cell_length + part.cell_length <= width:
                line = line + part
        return line

    return draw


def _readings(row: DeviceRow) -> list[Content]:
    """Return the readings as pieces of one line, the most important first, each of a width that does not change."""
    reading = row.reading
    if reading is None:
        return [Content.styled("reading…", "$quiet")]
    utilisation, used, limit = reading.utilisation, reading.memory_used_bytes, reading.memory_limit_bytes
    share = used / limit if used is not None and limit else None
    whole = None if utilisation is None else round(utilisation, 2)  # noise in the decimals does not redraw the line
    pieces = [
        Content.assemble(
            spark(row.history, 10, heat(utilisation)), " ", cell(units.percent(whole), 5, right=True), "  "
        ),
        Content.assemble(
            bar(share, BAR_WIDTH, heat(share)), " ", cell(f"{units.bytes_(used)} / {units.bytes_(limit)}", 19), " "
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
