"""Whatever a name holds, nothing leaves a command that a terminal or a shell would obey; and stdout that cannot be
written is one line and an exit code."""

import json
import os
import shutil
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import click
import pytest

import jaxprof
import program_events
from cli.calling import environment
from folding import written
from jaxprof.base.text import safe_text
from jaxprof.cli import output
from jaxprof.cli.main import cli
from jaxprof.cli.options import ViewFlag
from jaxprof.cli.output import ExitCode
from report import sessions
from tui import profiles

HOSTILE = "a\x1b]0;x\x07\r\x9b31m\x7f\u202eb\u2028c\u200b\nforged"
FILE_NAME = "k\x1b[31m\u202e\nforged $(touch PWNED).jaxprof"
READING = {"open", "compare", "explain", "gate", "hlo", "export", "query"}
BINARY = {"parquet"}
"""Commands with a format that read a session, and whose output can hold its names."""


def ways():
    """Each of those commands, in each format, alone and with each of its views."""
    context = click.Context(cli)
    for name in READING:
        command = cli.get_command(context, name)
        form = next(parameter for parameter in command.params if parameter.name == "form")
        views = [one.opts[0] for one in command.params if isinstance(one, ViewFlag)]
        for choice in set(form.type.choices) - BINARY:
            yield (name, "--format", str(choice))
            yield from ((name, view, "--format", str(choice)) for view in views)


NAMES = {
    "workload", "variant", "device", "error", "message", "advice", "name", "module", "function", "code", "type",
    "instruction", "shape", "op_name", "file", "kernels", "stage", "reason", "thread", "factory",
}  # fmt: skip
"""Of an event, what comes from outside."""


def spoiled(value, text, named=False):
    """`value` with `text` for each name in it."""
    if isinstance(value, dict):
        return {key: spoiled(found, text, key in NAMES) for key, found in value.items()}
    if isinstance(value, list):
        return [text if named else spoiled(found, text) for found in value]
    return text if named and isinstance(value, str) else value


def session_file(folder, text):
    """A measured run with its captures and a recorded program; all their names are `text`."""
    runs = [*sessions.jit_run("r2", "")[:-2], *sessions.captures("r2"), *sessions.failed_run("r3", "")]
    path = written(folder / "hostile.jaxprof", [*program_events.training_events(), *runs], sessions.HEADER)
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
def hostile(state_home, tmp_path):
    folder = state_home / "sessions"
    folder.mkdir(parents=True, exist_ok=True)
    return session_file(tmp_path, HOSTILE).rename(folder / FILE_NAME)


def with_timeline(path, name):
    """The session with a timeline in which a stream and its intervals are called `name`."""
    text = profiles.timeline(1, name).replace("Stream #1(Compute)", json.dumps(name)[1:-1])
    event = {"type": "text_recorded", "run": "r2", "seq": 99, "monotonic_seconds": 9.0, "name": "timeline"}
    with path.open("a") as file:
        file.write(json.dumps({**event, "text": text, "bytes": len(text)}) + "\n")
    return path


def is_inert(text):
    return text == safe_text(text) and "\nforged" not in text


@pytest.mark.process
def test_no_format_of_a_command_passes_a_control_character_on(call, hostile):
    more = {
        "compare": [f"{hostile}:r1", f"{hostile}:r2"],
        "query": [str(hostile), "SELECT * FROM runs"],
        "gate": [str(hostile), "--base", str(hostile), "--fail-on", "kernels"],
    }
    for name, *options in sorted(ways()):
        said = call(name, *more.get(name, [str(hostile)]), *options)
        words = (name, *options)
        assert said.code in set(ExitCode), words
        assert said.out or said.err, words
        assert safe_text(said.out) == said.out, words
        assert "\nforged" not in said.out or options[-1] == "csv", "a cell of CSV may have lines; nothing else may"
        assert is_inert(said.err), (words, said.err)


@pytest.mark.process
def test_no_list_and_no_error_passes_a_control_character_on(call, hostile):
    lines = """sessions; sessions list --format json; sessions prune --keep 0;
    sessions delete FILE; sessions rename FILE TEXT; sessions delete TEXT;
    sessions prune --max-size TEXT; open TEXT; open FILE --run TEXT; open last TEXT; open FILE --keep;
    export FILE --run TEXT; compare FILE TEXT; hlo FILE --kernel TEXT; run TEXT; run selu --set TEXT;
    run --describe TEXT; run --from TEXT; compare TEXT selu; open --seconds 2 TEXT; devices target install TEXT;
    config completion TEXT; TEXT"""
    given = {"FILE": FILE_NAME, "TEXT": HOSTILE}
    for line in lines.split(";"):
        said = call(*(given.get(word, word) for word in line.split()))
        assert said.out or said.err, line
        assert is_inert(said.out), (line, said.out)
        assert is_inert(said.err), (line, said.err)
        assert hostile.exists(), line


def test_json_escapes_control_characters(call, hostile):
    said = call("open", hostile, "--format", "json")
    assert HOSTILE in {run["workload"] for run in said.data["runs"]}
    for escape in ("\\u001b", "\\u009b", "\\u007f", "\\u202e", "\\u2028", "\\u200b"):
        assert escape in said.out
    said = call("export", with_timeline(hostile, HOSTILE))
    assert is_inert(said.out), repr(said.out)
    assert {event["name"] for event in json.loads(said.out)["traceEvents"]} >= {HOSTILE}


@pytest.mark.parametrize(
    ("encoding", "bar"), [("utf-8", "──"), ("latin-1", "--"), ("ascii", "--"), ("iso8859-15", "--")]
)
def test_a_report_for_a_terminal_without_its_symbols_is_in_ascii(encoding, bar):
    raw = BytesIO()
    stream = TextIOWrapper(raw, encoding, errors=output._PLAIN_SYMBOLS)
    stream.write("─────  n = 1\u202f000  ×  漢")
    stream.flush()
    shown = raw.getvalue().decode(encoding)
    assert shown.startswith(bar)
    assert "\\u2500" not in shown
    assert "\\u202f" not in shown
    assert encoding == "utf-8" or shown.endswith("\\u6f22")


@pytest.mark.process
@pytest.mark.parametrize(
    ("words", "variables"),
    [
        ("open --format json", {"PYTHONIOENCODING": "latin-1"}),
        ("open --format json", {"PYTHONIOENCODING": "ascii"}),
        ("open --format csv", {"PYTHONIOENCODING": "latin-1"}),
        ("export", {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    ],
)
def test_what_programs_read_is_utf_8_on_every_terminal(words, variables, tmp_path):
    name = "\xe9 \u6f22 \U0001f600"
    session = with_timeline(session_file(tmp_path, name), name)
    command = [sys.executable, "-m", "jaxprof", *words.split(), session]
    ran = subprocess.run(command, capture_output=True, env=environment() | variables)
    assert ran.returncode == ExitCode.OK, ran.stderr
    assert name in ran.stdout.decode("utf-8")


@pytest.mark.process
def test_a_completion_is_never_more_than_a_word(hostile, tmp_path):
    """In bash itself: what it would insert after Tab is put on a command line and run."""
    for name in ("$(touch PWNED)", "`touch PWNED`", "a;touch PWNED", "a b", "x\nplain,$(touch PWNED)", "~", "plain-1"):
        shutil.copy(hostile, hostile.with_name(f"{name}.jaxprof"))
    work, binary = tmp_path / "work", tmp_path / "bin"
    work.mkdir()
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
    env = environment() | {"PATH": f"{binary}{os.pathsep}{os.environ['PATH']}"}
    ran = subprocess.run(["bash", "--norc", "-c", script], cwd=work, capture_output=True, text=True, env=env)
    assert (ran.returncode, ran.stdout.split()) == (0, ["last", "plain-1"]), ran.stderr
    assert list(work.iterdir()) == []


def in_shell(line, *words):
    """`jaxprof WORDS`, with what the line of a shell does to its streams."""
    shell = ["sh", "-c", f'"{sys.executable}" -m jaxprof "$@" {line}', "sh", *map(str, words)]
    return subprocess.run(shell, capture_output=True, text=True, env=environment())


@pytest.mark.process
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_or_closed_stdout_is_one_line_and_a_code(tmp_path):
    session = session_file(tmp_path, "name")
    session_in = ["export", with_timeline(session, "name")]
    lost = (["open", session], "> /dev/full"), (session_in, ">&-"), (["--help"], "> /dev/full"), (["--version"], ">&-")
    for words, redirected in lost:
        ran = in_shell(redirected, *words)
        *before, last = ran.stderr.splitlines()
        assert last.startswith("jaxprof: stdout cannot be written: "), ran.stderr
        assert not any("Traceback" in line or "Exception" in line for line in before)
        assert ran.returncode == ExitCode.STDOUT_LOST
    ran = in_shell("<&- 2>&-", "run", "--describe")
    assert ran.returncode == ExitCode.OK, "nothing is lost with stdin and stderr"
    assert "selu" in ran.stdout, "nothing is lost with stdin and stderr"


@pytest.mark.process
def test_an_interrupt_while_it_starts_is_no_traceback(tmp_path):
    """As of a process of a job that is not up yet."""
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt\n")
    found = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{Path(jaxprof.__file__).parents[1]}"}
    command = [sys.executable, "-m", "jaxprof", "open", "x"]
    said = subprocess.run(command, env=found, capture_output=True, text=True, check=False)
    assert (said.returncode, said.stderr) == (130, "")
