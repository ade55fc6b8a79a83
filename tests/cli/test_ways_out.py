"""Whatever a name holds, nothing leaves a command that a terminal or a shell would obey; and stdout that cannot be
written is one line and an exit code."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import jaxprof
import program_events
from cli.calling import Caller, environment
from jaxprof.cli.main import cli
from jaxprof.cli.options import _collect
from jaxprof.cli.output import ExitCode
from jaxprof.session.log import LogWriter
from jaxprof.text import safe_text
from report import sessions
from source_tree import tree

HOSTILE = "a\x1b]0;x\x07\r\x9b31m\x7f\u202eb\u2028c\u200b\nforged"
FILE_NAME = "k\x1b[31m\u202e\nforged $(touch PWNED).jaxprof"
SOURCE = Path(jaxprof.__file__).parent
READING = {"open", "compare", "explain", "gate", "hlo", "export", "query"}
BINARY = {"parquet", "arrow"}
"""Commands with a format that read a session, and whose output can hold its names."""


def ways() -> Iterator[tuple[str, ...]]:
    """Each of those commands, in each format, alone and with each of its views."""
    context = click.Context(cli)
    for name in READING:
        command = cli.get_command(context, name)
        assert command is not None
        form = next(parameter for parameter in command.params if parameter.name == "form")
        assert isinstance(form.type, click.Choice)
        views = [one.opts[0] for one in command.params if isinstance(one, click.Option) and one.callback is _collect]
        for choice in set(form.type.choices) - BINARY:
            yield (name, "--format", str(choice))
            if name == "compare":
                yield (name, "--over-time", "--format", str(choice))
            yield from ((name, view, "--format", str(choice)) for view in views)


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


def spoiled(value: Any, text: str) -> Any:
    """`value` with `text` for each name in it."""
    if isinstance(value, dict):
        return {key: renamed(found, text) if key in NAMES else spoiled(found, text) for key, found in value.items()}
    return [spoiled(found, text) for found in value] if isinstance(value, list) else value


def renamed(value: Any, text: str) -> Any:
    if isinstance(value, str):
        return text
    return [text for _ in value] if isinstance(value, list) else spoiled(value, text)


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
            event |= spoiled(event, text) | {"type": event["type"]}
    path.write_text("\n".join([header, *map(json.dumps, events)]) + "\n")
    return path


@pytest.fixture
def hostile(state_home: Path, tmp_path: Path) -> Path:
    """A kept session whose names, and whose file's name, are hostile."""
    folder = state_home / "sessions"
    folder.mkdir(parents=True, exist_ok=True)
    return session_file(tmp_path, HOSTILE).rename(folder / FILE_NAME)


def with_timeline(path: Path, name: str) -> Path:
    """The session with a timeline of two intervals, whose names are all `name`."""
    lane = {"device": "gpu:0", "name": name, "kind": "stream", "labels": [[name, 0]], "label": [0, 0]}
    text = json.dumps(
        {
            "version": 1,
            "started_unix_ns": None,
            "left_out": 0,
            "ops": [[name, name, name]],
            "lanes": [lane | {"start": [0, 10], "duration": [5, 5]}],
            "counters": [{"device": name, "name": name, "unit": name, "time": [1], "value": [2.0]}],
        }
    )
    event = {"type": "text_recorded", "run": "r2", "seq": 99, "monotonic_seconds": 9.0, "name": "timeline"}
    with path.open("a") as file:
        file.write(json.dumps(event | {"text": text, "bytes": len(text)}) + "\n")
    return path


def is_inert(text: str) -> bool:
    return text == safe_text(text) and "\nforged" not in text


@pytest.mark.process
def test_no_format_of_a_command_passes_a_control_character_on(call: Caller, hostile: Path) -> None:
    more = {
        "compare": [f"{hostile}:r1", f"{hostile}:r2"],
        "query": [str(hostile), "SELECT * FROM runs"],
        "gate": [str(hostile), "--base", str(hostile), "--fail-on", "kernels"],
    }
    for name, *options in sorted(ways()):
        said = call(name, *([] if "--over-time" in options else more.get(name, [str(hostile)])), *options)
        words = (name, *options)
        assert said.code in set(ExitCode), words
        assert said.out or said.err, words
        assert safe_text(said.out) == said.out, words
        assert "\nforged" not in said.out or options[-1] == "csv", "a cell of CSV may have lines; nothing else may"
        assert is_inert(said.err), (words, said.err)


@pytest.mark.process
def test_no_list_and_no_error_passes_a_control_character_on(call: Caller, hostile: Path) -> None:
    for words in (
        ("sessions",),
        ("sessions", "list", "--format", "json"),
        ("sessions", "prune", "--keep", "0", "--dry-run"),
        ("sessions", "prune", "--keep", "0"),
        ("sessions", "delete", FILE_NAME),
        ("sessions", "scrub", FILE_NAME, "--in-place"),
        ("sessions", "rename", FILE_NAME, HOSTILE),
        ("sessions", "delete", HOSTILE),
        ("sessions", "prune", "--max-size", HOSTILE),
        ("show", HOSTILE),
        ("show", FILE_NAME, "--run", HOSTILE),
        ("show", "last", HOSTILE),
        ("open", FILE_NAME),
        ("import", FILE_NAME),
        ("export", FILE_NAME, "--run", HOSTILE),
        ("compare", FILE_NAME, HOSTILE),
        ("hlo", FILE_NAME, "--kernel", HOSTILE),
        ("workloads", HOSTILE),
        ("run", HOSTILE),
        ("run", "selu", "--set", HOSTILE),
        ("run", "--from", HOSTILE),
        ("ab", HOSTILE, "selu"),
        ("attach", HOSTILE),
        ("target", "install", HOSTILE),
        ("completion", HOSTILE),
        (HOSTILE,),
    ):
        said = call(*words)
        assert said.out or said.err, words
        assert is_inert(said.out), (words, said.out)
        assert is_inert(said.err), (words, said.err)
        assert hostile.exists(), words


def test_json_escapes_what_a_terminal_obeys_and_reads_back_as_it_was(call: Caller, hostile: Path) -> None:
    said = call("show", hostile, "--format", "json")
    read = said.data
    assert HOSTILE in {run["workload"] for run in read["runs"]}
    for escape in ("\\u001b", "\\u009b", "\\u007f", "\\u202e", "\\u2028", "\\u200b"):
        assert escape in said.out


@pytest.mark.process
@pytest.mark.parametrize(
    ("encoding", "variables"),
    [
        ("latin-1", {"PYTHONIOENCODING": "latin-1"}),
        ("utf-8", {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    ],
)
def test_a_terminal_that_cannot_show_a_name_gets_it_whole(
    encoding: str, variables: dict[str, str], tmp_path: Path
) -> None:
    name = "\xe9 \u6f22 \U0001f600"
    session = with_timeline(session_file(tmp_path, name), name)

    def said(*words: str, encoding: str = encoding) -> str:
        command = [sys.executable, "-m", "jaxprof", *words]
        given = environment() | variables | {"JAXPROF_HOME": str(tmp_path)}
        ran = subprocess.run(command, capture_output=True, env=given)
        assert ran.returncode == ExitCode.OK, ran.stderr
        return ran.stdout.decode(encoding)

    assert name in json.dumps(json.loads(said("show", str(session), "--format", "json")), ensure_ascii=False)
    timeline = json.loads(said("export", str(session), encoding="utf-8"))
    assert name in json.dumps(timeline, ensure_ascii=False)
    assert "<html" in said("export", str(session), "--format", "html", encoding="utf-8")


def test_so_does_an_exported_timeline(call: Caller, hostile: Path) -> None:
    said = call("export", with_timeline(hostile, HOSTILE))
    assert said.code == ExitCode.OK, said.err
    assert is_inert(said.out), repr(said.out)
    assert {event["name"] for event in json.loads(said.out)["traceEvents"]} >= {HOSTILE}


@pytest.mark.process
def test_a_completion_is_never_more_than_a_word(hostile: Path, tmp_path: Path) -> None:
    """In bash itself: what it would insert after Tab is put on a command line and run."""
    folder = hostile.parent
    names = ["$(touch PWNED)", "`touch PWNED`", "a;touch PWNED", "a b", "x\nplain,$(touch PWNED)", "~"]
    for name in names:
        (folder / f"{name}.jaxprof").write_bytes(hostile.read_bytes())
    (folder / "plain-1.jaxprof").write_bytes(hostile.read_bytes())
    work = tmp_path / "work"
    work.mkdir()
    binary = tmp_path / "bin"
    binary.mkdir()
    (binary / "jaxprof").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m jaxprof "$@"\n')
    (binary / "jaxprof").chmod(0o755)
    script = """
        eval "$(jaxprof config completion bash | sed 's/complete -o nosort/complete/')"
        compopt() { :; }
        for typed in '$' '`' a x '~' l p; do
            COMPREPLY=() COMP_WORDS=(jaxprof open "$typed") COMP_CWORD=2
            _jaxprof_completion jaxprof
            for inserted in "${COMPREPLY[@]}"; do echo "$inserted"; eval "true $inserted"; done
        done
    """
    ran = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=work,
        capture_output=True,
        text=True,
        check=True,
        env=environment() | {"PATH": f"{binary}{os.pathsep}{os.environ['PATH']}"},
    )
    assert ran.stdout.split() == ["last", "plain-1"], ran.stderr
    assert list(work.iterdir()) == []


@pytest.mark.process
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_or_closed_stdout_is_one_line_and_a_code(state_home: Path, tmp_path: Path) -> None:
    session = session_file(tmp_path, "name")
    for words, redirected in (
        (["show", session], "> /dev/full"),
        (["export", with_timeline(session, "name")], ">&-"),
        (["query", "--help"], "> /dev/full"),
        (["completion", "fish"], ">&-"),
    ):
        ran = subprocess.run(
            ["sh", "-c", f'"{sys.executable}" -m jaxprof "$@" {redirected}', "sh", *map(str, words)],
            capture_output=True,
            text=True,
            env=environment() | {"JAXPROF_HOME": str(state_home)},
        )
        *before, last = ran.stderr.splitlines()
        assert last.startswith("jaxprof: stdout cannot be written: "), ran.stderr
        assert not any("Traceback" in line or "Exception" in line for line in before)
        assert ran.returncode == ExitCode.STDOUT_LOST


@pytest.mark.process
def test_a_closed_stdin_or_stderr_costs_no_data(state_home: Path) -> None:
    ran = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m jaxprof workloads <&- 2>&-'],
        stdout=subprocess.PIPE,
        text=True,
        env=environment() | {"JAXPROF_HOME": str(state_home)},
    )
    assert ran.returncode == ExitCode.OK
    assert "selu" in ran.stdout


_WRITERS = {"click.echo", "click.secho", "click.prompt", "click.confirm", "print", "pprint", "sys.stdout.write"}
_PLACES = {
    **{name: {"cli/output.py", "api/magics.py"} for name in _WRITERS},
    "sys.stderr.write": {"tui/launch.py"},
    "CompletionItem": {"cli/complete.py:_offered", "cli/complete.py:_files"},
    "csv.writer": {"report/renderers.py:csv_lines"},
    "html.escape": set(),
    "escape": {"report/page/elements.py", "report/renderers.py:html_text"},
    "json.dumps": {"trace/timeline.py", "events/base.py", "analysis/ceilings.py"},
}
"""What writes, or escapes for a medium, and the only files or functions that may call it. `json.dumps` stands where
programs alone read the text."""
_OF_THE_CLIENT = ("cli", "api", "report", "analysis", "hlo", "trace", "tui", "events")


def calls(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """What is called, and the outermost function in which."""
    for node in ast.iter_child_nodes(tree):
        name = node.name if isinstance(node, ast.FunctionDef | ast.ClassDef) else ""
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call):
                yield ast.unparse(inner.func), name


def test_nothing_writes_but_through_the_one_place_of_its_medium() -> None:
    found: dict[str, set[str]] = {name: set() for name in _PLACES}
    for path in (path for package in _OF_THE_CLIENT for path in (SOURCE / package).rglob("*.py")):
        file = str(path.relative_to(SOURCE))
        for called, function in calls(tree(path)):
            if called in _PLACES and not {file, f"{file}:{function}"} & _PLACES[called]:
                found[called].add(f"{file}:{function}")
    assert {name: places for name, places in found.items() if places} == {}


@pytest.mark.process
def test_an_interrupt_while_it_starts_is_no_traceback(tmp_path: Path) -> None:
    """As of a process of a job that is not up yet."""
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt\n")
    found = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(jaxprof.__file__).parents[1]}"}
    command = [sys.executable, "-m", "jaxprof", "show", "x"]
    said = subprocess.run(command, env=found, capture_output=True, text=True, check=False)
    assert (said.returncode, said.stderr) == (130, "")
