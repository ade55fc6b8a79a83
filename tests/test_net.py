"""What jaxprof prints of kept inputs, and every name that a user can rely on, frozen in `tests/net`.

`UPDATE_NET=1 pytest tests/test_net.py` writes the files again, for the commands that are in them. A change of a name
belongs in CHANGELOG.md.
"""

import json
import os
import re
from pathlib import Path

import click
import pytest

from cli.test_schema import files, made  # noqa: F401
from golden import commands, held
from jaxprof.base.limits import LIMITS
from jaxprof.cli.main import cli
from jaxprof.findings.catalogue import entries
from jaxprof.session import Session, load

_LONG_NUMBER = re.compile(r"\b\d+\.\d{12,}(?:e[-+]?\d+)?\b")
_CODE_OF_PAGE = re.compile(r"<(script|style)\b[^>]*>.*?</\1>", re.DOTALL)
_HASH = re.compile(r"'sha256-[^']+'")


@pytest.mark.parametrize("name", commands())
@pytest.mark.usefixtures("files")
def test_what_is_printed_of_an_input(call, name):
    held(name, "".join(f"$ jaxprof {line}\n{printed(call, line)}\n" for line in commands()[name]))


def printed(call, line):
    """The answer, readable in a difference, and the same with every Python."""
    said = call(*line.split())
    text = Path("page.html").read_text() if line.startswith("export") else said.out
    text = _HASH.sub("HASH", _CODE_OF_PAGE.sub(r"<\1/>", text)).replace("><", ">\n<")
    if line.endswith("--format json"):
        text = json.dumps(json.loads(text), indent=1, ensure_ascii=False) + "\n"
    text += f"exit code {said.code}\n" if said.code else ""
    text = text.replace(str(Path.cwd()), "FOLDER").replace(os.environ["JAXPROF_HOME"], "HOME").replace("\r", "")
    # From Python 3.12 on `sum` makes up for what rounding loses.
    return _LONG_NUMBER.sub(lambda found: repr(float(f"{float(found[0]):.12g}")), text)


@pytest.mark.usefixtures("files")
def test_rows_of_sql(tmp_path):
    pytest.importorskip("duckdb")
    from query.conftest import write

    tables = {f"{table} of a session": rows for table, rows in sql_rows(write(tmp_path / "whole.jaxprof"))}
    folder = tmp_path / "run.jaxprof.d"
    tables |= {f"{table} of a process": rows for table, rows in sql_rows(folder / "process-00001.jaxprof")}
    tables |= {f"{table} of a roll-up": rows for table, rows in rolled_up(folder / "process-00001.jaxprof")}
    held("sql.txt", "".join(f"{name}\n{rows}\n" for name, rows in tables.items()).replace(str(tmp_path), "FOLDER"))


def sql_rows(path):
    """Each table of a session that has rows, as CSV."""
    from jaxprof.facts import SessionFile
    from jaxprof.facts.tables import TABLES
    from jaxprof.query.columnar import arrow_table

    for name, table in TABLES.items():
        found = arrow_table(table, SessionFile(path, load(path, Session)))
        if found.num_rows:
            yield name, csv_of(found)


def rolled_up(path):
    """Each table of the roll-up of a process, as CSV."""
    from jaxprof.jobs.job import ProcessFile
    from jaxprof.rollup.making import build

    tables = build(ProcessFile(path, load(path, Session), index=1, bytes=1000, modified_ns=2000))
    yield from ((name, csv_of(rows)) for name, rows in tables.items() if rows.num_rows)


def csv_of(table, most=5):
    """The first rows of an Arrow table."""
    from jaxprof.query.execution import rows_table
    from jaxprof.report import csv_lines

    rows = map(list, zip(*(column.to_pylist() for column in table.slice(0, most).columns), strict=True))
    return _LONG_NUMBER.sub(
        lambda found: repr(float(f"{float(found[0]):.12g}")), "".join(csv_lines(rows_table(table.schema, rows)))
    )


def test_the_census_of_names():
    held("census.txt", "\n".join(census()) + "\n")


def census():
    """Every command with its options, code of a finding, limit, action. Keys of JSON and columns of SQL and of roll-ups
    are in `docs/json.md`, `query.md` and `scale.md`, which `test_documents.py` compares with the facts."""
    from jaxprof.tui.keys import ACTIONS
    from jaxprof.tui.keys import keys_of as keys_of_action

    yield from sorted(options(cli, "jaxprof"))
    yield from (f"finding {code}" for code in sorted(entries()))
    yield from (f"limit {name}" for name in LIMITS)
    yield from (f"key {name} {','.join(keys_of_action(key))}" for name, key in sorted(ACTIONS.items()))


def options(command, name):
    with click.Context(command, info_name=name) as context:
        for option in command.params:
            words = "/".join((*option.opts, *option.secondary_opts))
            choices = f" {'|'.join(option.type.choices)}" if isinstance(option.type, click.Choice) else ""
            yield f"command {name} {words}{choices}"
        if isinstance(command, click.Group):
            for inner in command.list_commands(context):
                found = command.get_command(context, inner)
                yield f"command {name} {inner}"
                yield from options(found, f"{name} {inner}")
