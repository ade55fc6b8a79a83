"""`jaxprof gate TARGET --base BASE --fail-on FACT[:N%]`: whether the exact facts and times of a program are within
limits. `cli.gating` judges them."""

from __future__ import annotations

from typing import Any

import click

from jaxprof.cli.complete import complete_base, complete_target
from jaxprof.cli.options import (
    LocalFile,
    arguments_option,
    device_option,
    measuring_options,
    python_option,
    settings_option,
    target_options,
    variant_option,
)
from jaxprof.cli.output import format_option


@click.command("gate")
@click.argument("target", metavar="TARGET", shell_complete=complete_target)
@click.option(
    "--base",
    metavar="BASE",
    shell_complete=complete_base,
    help="What TARGET is compared with; by default HEAD, where it has changes that are not committed.",
)
@click.option(
    "--fail-on",
    "limits",
    multiple=True,
    required=True,
    metavar="FACT[:N%]",
    help="Fail if it grows (by more than N %): kernels, flops, bytes, peak, collectives... or a time: run:5%, "
    "compile:20%. May be repeated.",
)
@click.option(
    "--accept",
    metavar="WHY",
    help="Accept what exceeds a limit now: keep that decision, and WHY, with the named baseline.",
)
@click.option("--strict", is_flag=True, help="Exit with 4 where a limit is undecided.")
@target_options("Compile for h100, tpu-v5e... that need not be here.")
@variant_option()
@arguments_option(help="For your own function: f32[1024,1024].")
@settings_option()
@python_option()
@device_option(help="For times: the device to run on.")
@measuring_options("For times: ")
@click.option("--junit", type=LocalFile(), metavar="FILE", help="Write JUnit XML there, too.")
@format_option("text", "markdown", "json")
def command(**words: Any) -> int:
    """Fail if an exact fact of TARGET, or a time, has grown since BASE.

    TARGET is a function of yours (path/to/file.py:function), a workload, or a session (of `run`, or of `hlo --out`).
    BASE is one of these, a baseline (jaxprof gate baseline save NAME), or a git revision of the repository that holds
    TARGET.

    For facts both are compiled, and nothing is run: kernels, launches, flops, bytes, transcendentals, product_bytes,
    peak, argument, output, temporary, constant, donated (must not shrink), code, collectives, collective_bytes,
    compiles. Times are measured in turns: run:5% (a call), first_run, trace, lower, compile. Exit codes: 0 within, 1 a
    side failed, 3 a limit was exceeded, 4 undecided (--strict).
    """
    from jaxprof.cli.gating import run_gate

    return run_gate(**words)
