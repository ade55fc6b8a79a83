"""`jaxprof devices target`: the compilers for devices that are not here, in a folder of jaxprof's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from jaxprof.cli.options import python_option, yes_option
from jaxprof.cli.output import confirmed, format_option, note, print_json, print_lines

if TYPE_CHECKING:
    from jaxprof.devices.targets.chips import Vendor

VENDORS = ("nvidia", "tpu")


@click.group("target", invoke_without_command=False)
def command() -> None:
    """Compilers for devices that are not here, for `jaxprof hlo TARGET --for DEVICE`."""


@command.command("list")
@format_option("text", "json")
def list_(form: str) -> None:
    """List the devices that jaxprof can compile for."""
    from jaxprof.cli.kinds import target_facts
    from jaxprof.devices.targets.chips import CHIPS
    from jaxprof.report.renderers import Table, records, text_lines

    table = Table(target_facts(), CHIPS)
    if form == "json":
        print_json("targets", {"targets": list(records(table))})
    else:
        print_lines(text_lines(table, indent=""))


@command.command("install")
@click.argument("vendor", type=click.Choice(VENDORS))
@yes_option()
@python_option()
@click.option("--allow-unpinned", is_flag=True, help="Install versions whose hashes this jaxprof does not know.")
def install(vendor: Vendor, yes: bool, python: Path | None, allow_unpinned: bool) -> None:
    """Download the compiler for VENDOR's devices. Your own environment stays as it is.

    Shows the download size and the licences first. Each file must have the SHA-256 that this jaxprof knows of it.
    """
    from jaxprof.devices.targets import wheels
    from jaxprof.runner.interpreter import find_interpreter

    interpreter = find_interpreter(python)
    kit = wheels.KITS[vendor]
    there = wheels.installed(vendor, interpreter.path)
    if there is not None:
        note(f"already installed in {there}")
        return
    note(f"About {kit.megabytes} MB to download, for jax {interpreter.jax} of {interpreter.path}:")
    for package, licence in kit.licences:
        note(f"  {package}: {licence}")
    if not confirmed("Install?", yes=yes):
        raise click.Abort
    note(f"installed in {wheels.install(vendor, interpreter.path, note, allow_unpinned=allow_unpinned)}")


@command.command("remove")
@click.argument("vendor", type=click.Choice(VENDORS))
def remove(vendor: Vendor) -> None:
    """Delete VENDOR's compilers, of every version of jax."""
    from jaxprof.devices.targets import wheels

    removed = wheels.remove(vendor)
    note(f"removed {len(removed)} folders" if removed else "nothing was installed")
