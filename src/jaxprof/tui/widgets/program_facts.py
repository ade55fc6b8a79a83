"""What else is known of a program: its loops, its arrays, its transfers, what was not seen. Below the table of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.results.programs.copies import copies_remark
from jaxprof.safe_text import safe
from jaxprof.tui.widgets.drawing import cell, hang
from jaxprof.tui.widgets.place_text import place_text
from jaxprof.units import UNKNOWN, bytes_, integer, percent, scaled, seconds

if TYPE_CHECKING:
    from jaxprof.results.programs.derive import ProgramResult

_DIRECTIONS = {
    "host_to_device": "host to device",
    "device_to_host": "device to host",
    "device_to_device": "device to device",
}
_FOUND_BY = {"monitoring": "counted", "annotation": "by its annotation"}
MOST = 12
"""Rows of each table."""


def more_lines(found: ProgramResult, width: int) -> list[Content]:
    """The tables, each below its title; those with nothing in them are left out."""
    lines: list[Content] = []
    for title, rows in (
        ("loops", _loops(found, width)),
        ("live arrays", _arrays(found, width)),
        ("transfers that nobody asked for in words", _transfers(found, width)),
        ("recording", _recording(found)),
    ):
        if rows:
            lines += [Content(""), Content.styled(title, "bold $primary"), *rows]
    return lines


def _loops(found: ProgramResult, width: int) -> list[Content]:
    return [
        Content.assemble(
            cell(f"{scaled(one.per_second)} steps/s", 16, "bold"),
            cell(f"± {percent(one.jitter)}" if one.jitter is not None else "", 10, "$text-muted"),
            cell(f"{integer(one.count)} steps", 14), cell(f"median {seconds(one.median_seconds)}", 18),
            cell(safe(one.name) or place_text(one.where, found.directory), max(8, width - 76), "$primary"), " ",
            cell(_FOUND_BY.get(one.found_by, one.found_by), 17, "$quiet"),
        ).truncate(width, ellipsis=True)
        for one in found.loops[:MOST]
    ]  # fmt: skip


def _arrays(found: ProgramResult, width: int) -> list[Content]:
    arrays = found.arrays
    if arrays is None:
        return []
    growth = arrays.growth_a_minute
    grows = f", {growth:+.3g} a minute" if growth is not None else ""
    text = (
        f"{integer(arrays.first[0])} at first, {integer(arrays.last[0])} at last{grows}; "
        f"at most {integer(arrays.peak_count)} and {bytes_(arrays.peak_bytes)}"
    )
    devices = ", ".join(f"{device} {bytes_(used)}" for device, used in sorted(arrays.device_peak_bytes.items()))
    lines = hang(Content(""), text, width)
    return [*lines, *hang(Content("peak by device  "), devices, width)] if devices else lines


def _transfers(found: ProgramResult, width: int) -> list[Content]:
    rows = [
        Content.assemble(
            cell(_DIRECTIONS.get(one.direction, one.direction), 17),
            cell(f"{integer(one.count)}{'×' if one.source == 'guard' else ' samples'}", 13, right=True),
            cell(bytes_(one.bytes), 11, "bold", right=True), cell(seconds(one.seconds), 10, right=True), "  ",
            cell(safe(one.type) or place_text(one.where, found.directory) or UNKNOWN, max(8, width - 53), "$primary"),
        )
        for one in found.transfers[:MOST]
    ]  # fmt: skip
    if len(found.transfers) > MOST:
        rows.append(Content.styled(f"and {integer(len(found.transfers) - MOST)} more", "$quiet"))
    if rows:
        rows += Content.styled(copies_remark(found.run, found.transfers), "$quiet").wrap(max(12, width))
    return rows


def _recording(found: ProgramResult) -> list[Content]:
    lines = []
    if found.own_seconds is not None:
        share = percent(found.of_wall(found.own_seconds))
        lines.append(
            Content(f"{integer(found.samples)} samples; recording took {seconds(found.own_seconds)} ({share})")
        )
    if found.import_seconds is not None:
        lines.append(Content(f"import jax took {seconds(found.import_seconds)}"))
    return [*lines, *(Content.styled(safe(note.message), "$warning") for note in found.notes)]
