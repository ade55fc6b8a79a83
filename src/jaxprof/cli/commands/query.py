"""`jaxprof query SESSION... "SELECT ..."`: sessions as tables of SQL, which only reads them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from jaxprof.analysis.target import Kind, resolve
from jaxprof.base.errors import UsageError, unknown_name
from jaxprof.base.limits import PROCESSES, memory_bound
from jaxprof.cli import options
from jaxprof.cli.answers import command_line, print_facts
from jaxprof.cli.options import require_packages
from jaxprof.cli.output import format_option, no_form, note, notes, print_csv, print_json, print_lines, row_limit
from jaxprof.cli.recorded import open_recorded
from jaxprof.report import Table, text_lines
from jaxprof.session import Library
from jaxprof.session.files import EXTENSION
from jaxprof.session.library import none_kept, read_job_entry

if TYPE_CHECKING:
    from jaxprof.query.execution import QueriedSession

_EXAMPLE = 'jaxprof query last "SELECT variant, median_seconds FROM runs"'
_ROWS = 50
"""Rows that are printed as text, unless more are requested."""


@click.command("query")
@click.argument("words", metavar="SESSION... SQL", nargs=-1, shell_complete=options.complete_with("session"))
@click.option("--all", "every", is_flag=True, help="All kept sessions, instead of SESSION.")
@click.option("--schema", is_flag=True, help="Print the tables with their columns, or those of the named TABLE...")
@format_option("text", "json", "csv", bounded=("text", "json"))
def command(words: tuple[str, ...], every: bool, schema: bool, form: str) -> None:
    """Ask sessions in SQL (DuckDB): runs, samples, phases, kernels, compiles, findings, processes and more.

    SESSION is a path, a folder of sessions, the folder of a job, a profile, the name of a kept session, part of it, or
    `last`; SQL is one SELECT, or - to read it from stdin. `jaxprof query --schema` prints the tables.

    Sessions are only read, and SQL reaches no file and no network.
    """
    require_packages("query", *options.QUERY_PACKAGES)
    if schema:
        from jaxprof.facts.tables import COLUMN, TABLES, columns_of

        for name in words:
            if name not in TABLES:
                raise unknown_name("table", name, TABLES)
        tables = [TABLES[name] for name in words] or list(TABLES.values())
        if form == "json":
            next_commands = [] if words else [command_line("query", "--schema", tables[0].name)]
            print_facts("query-schema", {"tables": tables}, next_commands, limit=0 if words else None)
        elif form == "text":
            for table in tables:
                print_lines((f"{table.name}: {table.meaning}", *text_lines(Table(COLUMN, columns_of(table))), ""))
        else:
            raise no_form("--schema", form, "text", "json")
        return
    *names, sql = words or ("",)
    if sql == "-":
        sql = sys.stdin.read()
    if every and names:
        raise UsageError(
            f"--all already selects every kept session, and {names[0]} names one", "Leave out --all, or the names."
        )
    if len(sql.split()) < 2:
        what = f"the last argument must be SQL, and {sql!r} is not" if sql.strip() else "there is no SQL"
        raise UsageError(what, f"Name a session, or --all, and then ask: {_EXAMPLE}")
    if not every and not names:
        raise UsageError("no session was named", f"Name a session, or --all, before the SQL: {_EXAMPLE}")
    with ExitStack() as stack:
        from jaxprof.query.sql_process import SqlProcess

        process = stack.enter_context(SqlProcess())
        from jaxprof.query.execution import execute, memory_errors, plain_value, rows_table

        stack.enter_context(memory_bound())
        sources = _sources(names, every, stack, processes_wanted="processes" in sql.lower())
        answer = execute(process, sql, sources)
        notes(f"note: {notice}" for notice in answer.notices)
        with memory_errors():
            schema_of_rows = answer.reader.schema
            if form == "csv":
                print_csv(rows_table(schema_of_rows, answer.rows()))
            elif form == "json":
                rows = (dict(zip(answer.names, map(plain_value, row), strict=True)) for row in answer.rows())
                print_json("query", {"rows": rows, "notices": answer.notices}, [command_line("query", "--schema")])
            else:
                found, more = answer.first(row_limit(_ROWS))
                listed = rows_table(schema_of_rows, found)
                print_lines(text_lines(listed, indent="", all_columns=True) if found else ["no rows"])
                if more:
                    note(f"note: there are more rows than {len(found)}; --limit N prints more of them, --full all")


def _sources(
    names: Sequence[str], every: bool, stack: ExitStack, *, processes_wanted: bool = False
) -> list[QueriedSession]:
    """Return the sessions of these names, each once, of a job one a process; a profile is read as a session.
    `processes_wanted`: also return the rows of a job's processes, as far as roll-ups have them. Raises JaxprofError."""
    from jaxprof.jobs.folder import job_sessions, missing_of, no_session_in
    from jaxprof.query.execution import QueriedSession, rows_without_sessions

    found: list[QueriedSession] = []
    if every:
        found = [QueriedSession(path, optional=True) for path in reversed(Library().paths())]
        if not found:
            raise none_kept()
    for name in names:
        target = resolve(name, note, jobs=True)
        folder = target.path
        inside: list[Path] = []
        if folder is not None and target.kind is Kind.JOB:
            of_processes, left_out = job_sessions(folder)
            if not of_processes:
                raise no_session_in(folder)
            outline = read_job_entry(folder).job
            count = min(outline.count or 0 if outline is not None else 0, PROCESSES.most)
            left_out += missing_of(count, {index for index, _ in of_processes})
            notes(f"note: {notice}" for notice in left_out)
            inside = [path for _, path in of_processes]
        elif folder is not None and folder.is_dir():
            inside = sorted(folder.glob(f"*{EXTENSION}"))
        rolled = rows_without_sessions(folder) if folder is not None and inside and processes_wanted else {}
        found += (QueriedSession(path, optional=True, process=rolled.get(path)) for path in inside)
        if not inside:
            source = stack.enter_context(open_recorded(target))
            found.append(QueriedSession(source.given, source.imported))
    return list({asked.path.resolve(): asked for asked in found}.values())
