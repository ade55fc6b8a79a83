"""`jaxprof explain [FILE]`: what to do about a session, a profile or HLO, the most expensive first."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from jaxprof.cli.answers import command_line, explained_job, in_json
from jaxprof.cli.options import completed_by, profile_options, refuse
from jaxprof.cli.output import format_option, print_json, print_lines, print_report
from jaxprof.cli.target import job_named, local_source, recorded, refuse_of_profile, refuse_unrecorded
from jaxprof.files import with_home

if TYPE_CHECKING:
    from jaxprof.analysis.explain.model import Explanation


@click.command("explain")
@click.argument("file", metavar="[FILE]", required=False, callback=local_source, shell_complete=completed_by("session"))
@click.option(
    "--code", metavar="CODE", help="What a finding means, what to do, and where to read on; `all` lists them."
)
@click.option("--full", is_flag=True, help="Print every finding in full, even if they fill more than a screen.")
@profile_options
@format_option("text", "json", "markdown", bounded=())
def command(
    file: str | None,
    code: str | None,
    full: bool,
    form: str,
) -> None:
    """Say what to change, the most expensive first, and what cannot be said.

    FILE is a session (a path, the name of a kept one, part of it; by default the last one), the folder of a job, a
    recorded profile, or HLO (a file, or the folder of an XLA dump). At most five findings: each with its cost, the
    line, the fix, and the command that shows whether it helped.
    """
    if code is not None:
        refuse(("file", "full", "profile_run", "hosts"), "has no effect beside --code", "Leave it out.")
        _print_entry(code, form)
        return
    if form == "json":
        refuse(("full",), "applies to text and Markdown", "JSON does not depend on a screen.")
    from jaxprof.analysis.explain.model import MOST_FINDINGS

    most = sys.maxsize if full else MOST_FINDINGS
    explained = _explain(file, most)
    _print(explained, form, full=full)


def _explain(file: str | None, most: int) -> Explanation:
    folder = job_named(file if file is not None else "last")
    if folder is not None:
        refuse_of_profile(file or "the last job")
        return explained_job(folder)
    from jaxprof.analysis.explain.derive import explanation, explanation_of_modules
    from jaxprof.analysis.opener import Kind, kind_of

    if file is not None and kind_of(with_home(file)) is Kind.HLO:
        from jaxprof.hlo.open.paths import modules_at

        refuse_of_profile(file)
        return explanation_of_modules(modules_at(with_home(file)), file)
    refuse_unrecorded(file)
    with recorded(file or "last", ("kernels", "steps", "trust")) as found:
        return explanation(found.session, found.name, most=most)


def _print(explained: Explanation, form: str, *, full: bool) -> None:
    from jaxprof.report import explain

    if form == "json":
        print_json("explanation", explain.explanation_json(explained), _next(explained))
    else:
        print_report("\n".join(explain.explanation_lines(explained, full=full or form == "markdown")), form)


def _next(explained: Explanation) -> list[str]:
    """Return the commands that verify the fixes; without a finding, those that would fill what is unknown."""
    verifying = (finding.verify for finding in explained.findings)
    commands = dict.fromkeys(filter(None, verifying))
    commands = commands or dict.fromkeys(unknown.command for unknown in explained.abstentions if unknown.command)
    return [in_json(line) for line in commands] or [command_line("explain", "--code", "all")]


def _print_entry(code: str, form: str) -> None:
    from jaxprof.analysis.explain.catalogue import entries, find_entry
    from jaxprof.facts import recorder
    from jaxprof.report import explain

    if code == "all":
        if form == "json":
            listed = list(map(recorder(explain.ENTRY[:3]), entries().values()))
            print_json("catalogue", {"findings": listed}, [command_line("explain", "--code", "CODE")])
        else:
            print_lines(explain.catalogue_lines())
    elif form == "json":
        print_json("finding", explain.entry_json(find_entry(code)))
    else:
        print_lines(explain.entry_lines(find_entry(code)))
