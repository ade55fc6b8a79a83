"""The devices with their live readings, a line each; the marked ones are run on. Nothing is drawn twice the same."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message

from jaxprof import units
from jaxprof.tui.devices import Device, Devices
from jaxprof.tui.widgets.drawing import bar, cell, heat, mark, spark
from jaxprof.tui.widgets.row_list import RowList

BAR_WIDTH = 8


class DeviceList(RowList):
    """One row a device, and a row beneath for what mends one that JAX does not use."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,enter", "mark", "Run on", tooltip="Run on this device, or no longer", id="devices.mark"),
    ]

    class Toggled(Message):
        """A device shall be run on, or no longer."""

        def __init__(self, device: str) -> None:
            super().__init__()
            self.device = device

    def __init__(self, devices: Devices, chosen: list[str], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._devices = devices
        self._chosen = chosen
        self._drawn: list[Content] = []

    def show_devices(self) -> None:
        """Draws what has changed since it was drawn."""
        keys: list[Hashable] = []
        for device in self._devices:
            keys.append(device.facts.id)
            if device.facts.usable is False and device.facts.mend:
                keys.append((device.facts.id, "mend"))
        if keys != self.keys:
            self._drawn = []
            self.set_keys(keys)
            return
        width = self.size.width
        drawn = [self.draw_row(index, width) for index in range(len(keys))]
        if len(drawn) != len(self._drawn):
            self.refresh()
        else:
            for index, (before, after) in enumerate(zip(self._drawn, drawn, strict=True)):
                if not before.is_same(after):
                    self.refresh_row(index)
        self._drawn = drawn

    def selectable(self, index: int) -> bool:
        return isinstance(self.keys[index], str)

    def draw_row(self, index: int, width: int) -> Content:
        key = self.keys[index]
        if isinstance(key, tuple):
            device = self._devices.get(str(key[0]))
            return cell(f"            {device.facts.mend if device else ''}", width, "$accent")
        device = self._devices.get(str(key))
        if device is None:
            return Content("")
        return draw_device(device, width, chosen=key in self._chosen)

    def action_mark(self) -> None:
        """Marks the device under the cursor."""
        self._toggle(self.cursor)

    def on_row_list_clicked(self, message: RowList.Clicked) -> None:
        if message.x < 4:
            self._toggle(message.index)

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        self._toggle(message.index)

    def _toggle(self, index: int) -> None:
        if self.keys and isinstance(self.keys[index], str):
            self.post_message(self.Toggled(str(self.keys[index])))


def draw_device(device: Device, width: int, *, chosen: bool) -> Content:
    """One device in `width` columns; what does not fit is left out, the least important first."""
    facts = device.facts
    box = Content(" ") if facts.usable is False else mark(chosen)
    head = Content.assemble(" ", box, " ", cell(facts.id, 8, "bold" if facts.usable is not False else "$quiet"), " ")
    if facts.usable is False:
        name = cell(facts.name, min(24, max(8, width // 4)), "$quiet")
        rest = width - head.cell_length - name.cell_length - 1
        return head + name + Content(" ") + cell(f"not used by JAX: {facts.reason}", rest, "$warning")
    parts = _readings(device)
    name_width = 26 if width >= 110 else 14
    label = f"{facts.name} · {facts.detail}" if facts.detail and width >= 110 else facts.name or facts.detail
    line = head + cell(label, name_width, "$text-muted") + Content(" ")
    for part in parts:
        if line.cell_length + part.cell_length <= width:
            line = line + part
    return line


def _readings(device: Device) -> list[Content]:
    """The readings as pieces of one line, the most important first, each of a width that does not change."""
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
        pieces.append(Content.styled(f"{count} process{'es' if count != 1 else ''}", "$quiet"))
    return pieces


def _whole(share: float | None) -> float | None:
    """To whole percents: a line that changes in the second decimal would be sent again and again."""
    return None if share is None else round(share, 2)
