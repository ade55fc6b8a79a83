"""`jaxprof devices`: what JAX sees, with live readings. JAX runs in a child process, which takes no GPU memory.

`devices target`: the compilers for devices that are not here, in a folder of jaxprof's own.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from jaxprof.base.errors import UsageError
from jaxprof.base.units import counted
from jaxprof.cli import options
from jaxprof.cli.answers import print_answer
from jaxprof.cli.output import confirm, format_option, note, print_text
from jaxprof.devices import Device
from jaxprof.devices.absent import CHIPS, Vendor, chip
from jaxprof.devices.inventory.machine import parse_device
from jaxprof.devices.live.host import Monitor
from jaxprof.devices.live.nvidia import NvidiaListing, nvml_threads
from jaxprof.facts.devices import TARGETS, list_devices
from jaxprof.report import Table, report_lines, text_lines
from jaxprof.report.device_list import device_pieces, devices_text
from jaxprof.runner.device_choice import find_all
from jaxprof.runner.interpreter import find_interpreter

VENDORS: tuple[Vendor, ...] = ("nvidia", "tpu")
PATIENCE_SECONDS = 8.0
"""Longest wait for a driver that is slow to list or read its GPUs."""
WINDOW_SECONDS = 0.3
"""Seconds for which core use is measured, after the child has ended, so that the child is not counted."""


@click.group("devices", cls=options.ListingGroup)
def command() -> None:
    """List the devices that JAX sees, and those that it does not use; install compilers for devices that are not
    here."""


@command.command("list")
@options.python(help="The interpreter or environment whose jax lists the devices.")
@click.option("--watch", is_flag=True, help="List them again every second, until ctrl+c.")
@format_option("text", "json")
def list_(python: Path | None, watch: bool, form: str) -> None:
    """List devices, those that JAX does not use with the fix."""
    if watch and form == "json":
        raise UsageError("--watch is a list for a person", "Ask for --format json as often as you need it.")
    devices, listing = _find(python)
    monitor = _start_monitor(devices)
    while watch:
        lines = devices_text(list_devices(devices, monitor.read()), listing.driver)
        clear = "\x1b[H\x1b[J" if sys.stdout.isatty() else ""  # home, and erase what was below
        print_text(clear + "\n".join(lines))
        time.sleep(1.0)
    rows = list_devices(devices, monitor.read())
    print_answer(form, "devices", {"devices": rows}, devices_text(rows, listing.driver))


@command.command()
@click.argument("device")
@options.python(help="The interpreter or environment whose jax lists the devices.")
@format_option("text", "json")
def show(device: str, python: Path | None, form: str) -> None:
    """Show one device: who uses it, its clocks and its links.

    DEVICE is its name in the list, cuda:2, or its number in nvidia-smi, 2.
    """
    devices, listing = _find(python)
    by_name = {each.machine_index: each.id for each in devices if each.machine_index} | {
        each.id: each.id for each in devices
    }
    try:
        name = by_name.get(device) or parse_device(device, by_name)
    except UsageError as error:
        if not listing.late:
            raise
        what = f"whether there is a device {device!r} is unknown: NVML has not answered in {PATIENCE_SECONDS:.0f} s"
        raise UsageError(what, f"Ask again once nvidia-smi answers. {error.hint}") from error
    found = [each for each in devices if each.id == name]
    (row,) = list_devices(found, _start_monitor(found).read())
    row = replace(row, wiring=nvml_threads().wiring(row.device, PATIENCE_SECONDS))
    if row.wiring is None and row.device.nvml_key is not None:
        note(f"jaxprof: NVML has not answered in {PATIENCE_SECONDS:.0f} s: what only it knows is missing here")
    print_answer(form, "devices", {"devices": [row]}, report_lines(device_pieces(row)))


def _find(python: Path | None) -> tuple[Sequence[Device], NvidiaListing]:
    """Return all devices, and what NVIDIA's driver lists; note who could not be asked."""
    interpreter = find_interpreter(python)
    listing = nvml_threads().listing(PATIENCE_SECONDS)
    if listing.late:
        note(f"jaxprof: NVML has not answered in {PATIENCE_SECONDS:.0f} s: NVIDIA's GPUs are missing here")
    devices, problem = find_all(interpreter)
    if problem:
        note(f"jaxprof: JAX could not list its devices; these are the machine's: {problem}")
    return devices, listing


def _start_monitor(devices: Sequence[Device]) -> Monitor:
    """Return a monitor of the devices whose next reading tells how busy the cores are."""
    monitor = Monitor(devices)
    monitor.read(PATIENCE_SECONDS)
    time.sleep(WINDOW_SECONDS)
    return monitor


@command.group()
def target() -> None:
    """The compilers for devices that are not here.

    `jaxprof hlo TARGET --for DEVICE` needs one.
    """


@target.command("list")
@format_option("text", "json")
def list_targets(form: str) -> None:
    """List the devices that jaxprof can compile for."""
    print_answer(form, "targets", {"targets": CHIPS}, text_lines(Table(TARGETS, CHIPS), indent=""))


class VendorType(click.Choice[Vendor]):
    """A vendor, or the name of any of its devices that can be compiled for."""

    def convert(self, value: str, param: click.Parameter | None, context: click.Context | None) -> Vendor:
        return super().convert(value if value.lower() in VENDORS else chip(value).vendor, param, context)


_vendor_argument = click.argument("vendor", metavar="nvidia|tpu|DEVICE", type=VendorType(VENDORS, case_sensitive=False))


@target.command("install")
@_vendor_argument
@options.yes()
@options.python()
@click.option("--allow-unpinned", is_flag=True, help="Install versions whose hashes this jaxprof does not know.")
def install(vendor: Vendor, yes: bool, python: Path | None, allow_unpinned: bool) -> None:
    """Download the compiler for the devices of a vendor. Your own environment stays as it is.

    Shows the download size and the licences first. Each file must have the SHA-256 that this jaxprof knows of it.
    """
    from jaxprof.devices.absent import wheels

    interpreter = find_interpreter(python)
    kit = wheels.KITS[vendor]
    there = wheels.folder_if_installed(vendor, interpreter.path)
    if there is not None:
        note(f"already installed in {there}")
        return
    note(f"About {kit.megabytes} MB to download, for jax {interpreter.jax} of {interpreter.path}:")
    for package, licence in kit.licences:
        note(f"  {package}: {licence}")
    if not confirm("Install?", yes=yes):
        raise click.Abort
    note(f"installed in {wheels.install(vendor, interpreter.path, note, allow_unpinned=allow_unpinned)}")


@target.command("remove")
@_vendor_argument
def remove(vendor: Vendor) -> None:
    """Delete a vendor's compilers, of every version of jax."""
    from jaxprof.devices.absent import wheels

    removed = wheels.remove(vendor)
    note(f"removed {counted(len(removed), 'folder')}" if removed else "nothing was installed")
