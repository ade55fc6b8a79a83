"""What the pytest plugin does at the end of a run with the tests' programs: a table, and a session file, which
`jaxprof gate` and `jaxprof compare` take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path

import pytest

from jaxprof.api.session import Session, header_environment
from jaxprof.base.errors import JaxprofError
from jaxprof.base.text import safe
from jaxprof.events import SessionClosed
from jaxprof.facts import column, pick, within
from jaxprof.facts.comparisons import EXACT
from jaxprof.findings.compare.session_difference import facts_of
from jaxprof.report.renderers import Table, text_lines
from jaxprof.session.files import EXTENSION
from jaxprof.session.log import new_header
from jaxprof.session.log.codec import decode_line


def file_of(option: str) -> Path:
    """Return the session file that `--jaxprof-save` names, which is replaced. Raises pytest.UsageError for a name with
    another ending: pytest takes the word after the option as its value, a file of tests too."""
    path = Path(option)
    if path.suffix not in ("", EXTENSION) or path.is_dir():
        raise pytest.UsageError(f"--jaxprof-save {option} is no session file. Write --jaxprof-save=NAME{EXTENSION}.")
    return path.with_suffix(EXTENSION)


def session_of(lines: Mapping[str, Iterable[str]]) -> Session:
    """Return one session of the programs of all tests, with their runs numbered. `lines`: log lines by test id."""
    session = Session(new_header(header_environment()))
    count = 0
    for test_lines in lines.values():
        numbers: dict[str, str] = {}
        for line in test_lines:
            event = decode_line(line.encode())
            if event.run not in numbers:
                count += 1
                numbers[event.run] = f"r{count}"
            session.apply(replace(event, run=numbers[event.run]))
    session.apply(SessionClosed())
    return session


def report(path: Path | None, programs: Mapping[str, Sequence[str]]) -> tuple[list[str], bool]:
    """Return the table of the programs, after saving them at `path`, if there is one; and whether that failed.
    `programs`: events by test id."""
    if not programs:
        return ["no test has called the fixture jaxprof: nothing is saved"], False
    session = session_of(programs)
    lines = list(_table_lines(session))
    if path is None:
        return lines, False
    try:
        return [*lines, safe(f"saved: {session.save(path, replace=True)}")], False
    except JaxprofError as error:
        return [*lines, safe(f"not saved: {error.what}. {error.hint}")], True


_SHOWN = {
    "kernels": "kernels",
    "flops": "FLOPs",
    "accessed_bytes": "bytes",
    "peak_bytes": "peak",
    "compiles": "compiles",
}
"""Code of a fact → the title of its column."""


def _table_lines(session: Session) -> Iterator[str]:
    runs = list(session.runs.values())
    programs = Counter(run.plan.workload for run in runs)
    tests = Counter({run.plan.workload: run.plan.workload.rpartition("::")[2] for run in runs}.values())
    names = []
    for run in runs:
        short = run.plan.workload.rpartition("::")[2]
        test = short if tests[short] == 1 else run.plan.workload
        names.append(f"{test} {run.plan.variant}" if programs[run.plan.workload] > 1 else test)
    rows = [(name, facts_of(session, run)) for name, run in zip(names, runs, strict=True)]
    exact = (replace(fact, title=_SHOWN[fact.key]) for fact in pick(EXACT, *_SHOWN))
    columns = [column("name", itemgetter(0)), *within(itemgetter(1), exact)]
    yield from text_lines(Table(columns, rows), indent="")
