"""Every command and view that prints CSV, found from the command line itself, on a session whose names are hostile."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import program_events
from cli.calling import Caller
from jaxprof.cli.exit_codes import ExitCode
from jaxprof.cli.given import _collect
from jaxprof.cli.main import cli
from jaxprof.session.log import Library, LogWriter
from report import sessions

HOSTILE = ["=HYPERLINK(1)", "+cmd", "-1+1", "@SUM(1)", "\t=1", "\r=1"]
NAMES = {
    "workload", "variant", "device", "error", "message", "advice", "name", "module", "function", "code", "type",
    "instruction", "shape", "op_name", "file", "kernels", "stage", "reason", "thread", "factory",
}  # fmt: skip
"""Of an event, what comes from outside."""
PROGRAM = program_events.program(
    *program_events.shaped(5, cache="off", compile_seconds=0.1),
    program_events.steps(2400, 6.2e-3, 85, lines={91: 0.5, 88: 0.4, 86: 0.1}),
    program_events.copies("host_to_device", 2400, bytes=9_830_400, type="f32[4]"),
)


WITHOUT_NAMES = {("--timeline",), ("--lanes",), ("--flame",), ("--hosts",)}


def ways() -> Iterator[tuple[str, ...]]:
    """The words of each command that has `--format csv`: alone, and with each of its views."""
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        for parameter in command.params:
            if parameter.name == "form" and "csv" in getattr(parameter.type, "choices", ()):
                yield (name,)
                views = [one for one in command.params if isinstance(one, click.Option) and one.callback is _collect]
                yield from ((name, view.opts[0]) for view in views)


def hostile(value: Any, text: str) -> Any:
    """`value` with `text` for each name in it."""
    if isinstance(value, dict):
        return {key: renamed(found, text) if key in NAMES else hostile(found, text) for key, found in value.items()}
    return [hostile(found, text) for found in value] if isinstance(value, list) else value


def renamed(value: Any, text: str) -> Any:
    if isinstance(value, str):
        return text
    return [text for _ in value] if isinstance(value, list) else hostile(value, text)


def session_file(folder: Path, text: str) -> Path:
    """A measured run with its captures and a recorded program; all their names are `text`."""
    path = folder / "hostile.jaxprof"
    writer = LogWriter(sessions.HEADER, path)
    runs = [*sessions.jit_run("r2", "")[:-2], *sessions.captures("r2"), *sessions.failed_run("r3", "")]
    for event in [*PROGRAM, *runs]:
        writer.append(event)
    writer.close()
    header, *lines = path.read_text().splitlines()
    events = [json.loads(line) for line in lines]
    for event in events:
        if event["type"] == "text_recorded":
            if text.isprintable():
                event["text"] = event["text"].replace("jit(selu)/mul", text).replace("/home/me/selu.py", text)
        else:
            event |= hostile(event, text) | {"type": event["type"]}
    path.write_text("\n".join([header, *map(json.dumps, events)]) + "\n")
    return path


def test_the_ways_are_found() -> None:
    found = set(ways())
    assert {("show",), ("show", "--kernels"), ("show", "--compiles"), ("hlo", "--kernels")} <= found


@pytest.mark.parametrize("text", HOSTILE, ids=repr)
@pytest.mark.parametrize("words", ways(), ids=" ".join)
def test_no_name_begins_a_formula_in_a_spreadsheet(
    call: Caller, tmp_path: Path, words: tuple[str, ...], text: str
) -> None:
    session = session_file(tmp_path, text)
    given: list[str | Path] = [f"{session}:r1", f"{session}:r2"] if words[0] == "compare" else [session]
    if words[0] == "history":  # of the kept sessions
        Library().folder.mkdir(parents=True)
        session.rename(Library().folder / session.name)
        given = []
    if words[1:] == ("--hosts",):  # of the folder of a job
        folder = tmp_path / "run.jaxprof.d"
        folder.mkdir()
        given = [folder]
        session.rename(folder / "process-00000.jaxprof")
    if words[0] == "query":
        given.append("SELECT * FROM runs")
    said = call(words[0], *given, *words[1:], "--format", "csv")
    if said.code == ExitCode.USAGE:  # this view has no CSV
        assert said.out == ""
        assert "csv" in said.err.lower() or "--passes" in said.err
        return
    assert said.code == ExitCode.OK, said.err
    cells = [cell for row in csv.reader(io.StringIO(said.out, newline="")) for cell in row]
    suspects = [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert [cell for cell in suspects if not is_number(cell)] == []
    # Those have no name of a user's, or only in a list; and no run here has ended, as one in a history has.
    if words[1:] not in WITHOUT_NAMES and words[0] != "history" and (words[0] != "hlo" or text.isprintable()):
        assert any(cell.startswith("'") for cell in cells)


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
