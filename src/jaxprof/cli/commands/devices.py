"""`jaxprof devices`: what JAX sees, with live readings. JAX runs in a child process, which takes no GPU memory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jaxprof.cli.options import python_option
from jaxprof.cli.output import format_option, note, print_json, print_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxprof.devices.inventory.machine import Device
    from jaxprof.events import DeviceReading

WINDOW_SECONDS = 0.3
"""Seconds for which core use is measured, after the child has ended, so that the child is not counted."""


@click.command("devices")
@python_option(help="The interpreter or environment whose jax lists the devices.")
@format_option("text", "json")
def command(python: Path | None, form: str) -> None:
    """List the devices that JAX sees, with live readings, and those that it does not use, with the fix."""
    from jaxprof.cli.selection import find_all
    from jaxprof.report.device_list import devices_report, devices_text
    from jaxprof.runner.interpreter import find_interpreter

    interpreter = find_interpreter(python)
    devices, problem = find_all(interpreter)
    if problem:
        note(f"jaxprof: JAX could not list its devices; these are the machine's: {problem}")
    readings = _read(devices)
    if form == "json":
        print_json("devices", devices_report(devices, readings))
    else:
        print_lines(devices_text(devices, readings))


def _read(devices: Sequence[Device]) -> list[DeviceReading]:
    from jaxprof.devices.live.monitor import Monitor

    monitor = Monitor(devices)
    try:
        monitor.read()
        time.sleep(WINDOW_SECONDS)
        return monitor.read()
    finally:
        monitor.close()
