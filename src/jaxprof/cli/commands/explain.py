"""`jaxprof explain [FILE]`: what to do about a session, a job or a profile, the most expensive first."""

from __future__ import annotations

import sys

import click

from jaxprof.analysis.target import Kind, resolve
from jaxprof.base.grouping import grouped
from jaxprof.base.units import bytes_
from jaxprof.cli import options
from jaxprof.cli.output import ExitCode, format_option, note, print_json, print_report, row_limit
from jaxprof.cli.recorded import open_recorded
from jaxprof.report import wrap


@click.command("explain")
@click.argument("file", metavar="[FILE]", required=False, shell_complete=options.complete_with("session"))
@click.option(
    "--code", metavar="CODE", help="What a finding means, what to do, and where to read on; `all` lists them."
)
@click.option(
    "--fail-on",
    type=click.Choice(["standstill"]),
    help="Exit with 6 where the program or the job stands still: for a watchdog, while it runs.",
)
@options.profile
@format_option("text", "json", "markdown", bounded=("text", "json", "markdown"))
def command(file: str | None, code: str | None, fail_on: str | None, form: str) -> int:
    """Say what to change, the most expensive first, and what is unknown.

    FILE is a session (a path, the name of a kept one, part of it; by default the last one), the folder of a job, a
    recorded profile, or a text with XLA's out-of-memory message. At most five findings: each with its cost, the line,
    the fix, and the command that shows whether it helped (of a job: one that shows the process).
    """
    if code is not None:
        _print_code(code, form)
        return ExitCode.OK
    from jaxprof.findings import MOST_FINDINGS
    from jaxprof.findings.derive import explanation, explanation_of_job
    from jaxprof.report import explain

    wanted = row_limit(MOST_FINDINGS)
    most = sys.maxsize if wanted is None else wanted
    name = "last" if file is None else file
    target = resolve(name, note, jobs=True)
    if target.kind is Kind.JOB:
        from jaxprof.jobs.job import read_job_figures

        explained = explanation_of_job(read_job_figures(target.file), most=most)
    else:
        message = None
        if target.kind is Kind.OTHER:
            from jaxprof.analysis.kernels.out_of_memory import read_message

            message = read_message(target.file)
        if message is not None:
            from jaxprof.findings import Explanation
            from jaxprof.findings.out_of_memory import memory_finding
            from jaxprof.session import Session

            asked = message.bytes["asked"]
            finding = memory_finding(f"{bytes_(asked)} were asked for", asked, message.buffers, message)
            explained = Explanation(
                name=name, subject="message", findings=(finding,), left_out=0, abstentions=(), session=Session()
            )
        else:
            with open_recorded(target, ("kernels", "steps", "compile", "trust")) as found:
                explained = explanation(found.session, found.name, most=most)

    if form == "json":
        from jaxprof.cli.answers import command_line, next_of_session

        # Commands that verify a fix start something, and have words of the session: they stand beside their findings,
        # and are never proposed here.
        if explained.subject == "message":
            commands = []
        elif explained.session is not None:
            commands = next_of_session(explained.session, explained.name)[1:]  # the first one was just given
        else:  # a job's finding names only the paths of its processes
            commands = [f"{finding.verify} --format json" for finding in explained.findings if finding.verify]
        next_commands = list(dict.fromkeys(commands)) or [command_line("explain", "--code", "all")]
        print_json("explanation", explain.explanation_json(explained, whole=wanted is None), next_commands)
    else:
        print_report(explain.explanation_lines(explained), form)
    stands = any(finding.code in ("standstill", "process_standstill") for finding in explained.findings)
    return ExitCode.STANDS_STILL if fail_on and stands else ExitCode.OK


def _print_code(code: str, form: str) -> None:
    from jaxprof.cli.answers import command_line, print_answer
    from jaxprof.findings.catalogue import SOURCES, entries, find_entry

    if code == "all":
        lines: list[str] = []
        width = max(map(len, entries()))
        for source, group in grouped((entry.source, entry) for entry in entries().values()).items():
            lines += [*([""] if lines else []), SOURCES[source]]
            lines += [f"  {entry.code:<{width}}  {entry.title}" for entry in group]
        next_commands = [command_line("explain", "--code", "CODE")]
        print_answer(form, "catalogue", {"findings": entries().values()}, lines, next_commands)
        return
    entry = find_entry(code)
    page, _, heading = entry.page.partition("#")
    section = f", {heading.replace('-', ' ')}" if heading else ""
    title = wrap(f"{entry.code}: {entry.title}", first="", hang=2)
    advice = [*wrap(entry.means), *wrap(entry.fix, first="  → ")]
    print_answer(
        form, "finding", entry, [*title, "", *advice, "", f"  found in {SOURCES[entry.source]}; docs/{page}{section}"]
    )
