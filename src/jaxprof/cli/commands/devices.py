"""`jaxprof devices`: what JAX sees, joined with live readings. jax runs in a child, which takes no GPU memory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jaxprof.cli.output import format_option, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxprof.events import DeviceReading
    from jaxprof.telemetry.devices import Device

WINDOW_SECONDS = 0.3
"""Over how long the use of the cores is read; after the child has ended, so that it is not counted."""


@click.command("devices")
@click.option("--python", metavar="PATH", help="The interpreter, or environment, whose jax is asked.")
@format_option("text", "json")
def command(python: str | None, form: str) -> None:
    """List the devices that JAX sees, with live readings; name those that it does not use, and what mends that."""
    from jaxprof.cli.devices import find_all
    from jaxprof.telemetry.report import devices_report, devices_text
    from jaxprof.worker import find_interpreter

    interpreter = find_interpreter(Path(python) if python else None)
    devices, problem = find_all(interpreter)
    if problem:
        click.echo(f"jaxprof: JAX could not be asked, this is what the machine says: {problem}", err=True)
    readings = _read(devices)
    if form == "json":
        print_json(devices_report(devices, readings))
    else:
        click.echo("\n".join(devices_text(devices, readings)))


def _read(devices: Sequence[Device]) -> list[DeviceReading]:
    from jaxprof.telemetry.monitor import Monitor

    monitor = Monitor(devices)
    try:
        monitor.read()
        time.sleep(WINDOW_SECONDS)
        return monitor.read()
    finally:
        monitor.close()
