from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

from cli.calling import Caller, environment
from jaxprof import __version__
from jaxprof.cli.main import COMMANDS, FORMER, WITHIN, cli
from jaxprof.cli.output import ExitCode, for_error
from jaxprof.errors import FileRefusedError, StorageError, UsageError, WorkerError


def test_help_names_every_command_and_the_exit_codes(call: Caller) -> None:
    said = call("--help")
    assert said.code == 0
    for name in COMMANDS:
        assert f"  {name} " in said.out
    assert "130 interrupted" in said.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_loads_and_has_help(call: Caller, name: str) -> None:
    said = call(name, "--help")
    assert said.code == 0
    assert said.out.startswith(f"Usage: jaxprof {name}")


def _contexts(command: click.Command, name: str, parent: click.Context | None = None) -> Iterator[click.Context]:
    context = click.Context(command, info_name=name, parent=parent, terminal_width=80)
    yield context
    if isinstance(command, click.Group):
        within = list(WITHIN.values()) if parent is None else []
        for each in (*command.list_commands(context), *within):
            inner = command.get_command(context, each) if each not in within else _module(each)
            assert inner is not None
            yield from _contexts(inner, each, context)


def _module(name: str) -> click.Command:
    command = import_module(f"jaxprof.cli.commands.{name}").command
    assert isinstance(command, click.Command)
    return command


def test_no_help_has_a_summary_that_is_cut_or_a_type_of_click_for_a_value() -> None:
    contexts = list(_contexts(cli, "jaxprof"))
    assert {"jaxprof run", "jaxprof baseline save"} <= {context.command_path for context in contexts}
    for context in contexts:
        text = context.get_help()
        commands = text.partition("\nCommands:\n")[2]
        assert "..." not in commands, f"{context.command_path}: a summary is cut"
        assert not re.search(r"\b(INTEGER|FLOAT|TEXT|RANGE|FILENAME|DIRECTORY)\b", text), context.command_path
        assert not re.search(r"For times: [A-Z]", text), context.command_path
        for option in context.command.params:
            if isinstance(option, click.Option) and not (option.is_flag or isinstance(option.type, click.Choice)):
                assert option.metavar, f"{context.command_path} {option.opts}: click names its type"


def test_an_unknown_command_is_told_those_of_today(call: Caller) -> None:
    said = call("histroy")
    assert said.code == 2
    assert "history" not in said.err, "a former name is not proposed"


@pytest.mark.parametrize("words", WITHIN, ids=" ".join)
def test_the_help_of_a_command_names_the_one_within_it(call: Caller, words: tuple[str, str]) -> None:
    assert f"jaxprof {' '.join(words)}" in call(words[0], "--help").out.rpartition("See also: ")[2]


@pytest.mark.parametrize("words", [*WITHIN, *((former,) for former in FORMER)], ids=" ".join)
def test_words_that_stand_for_a_command_have_its_help(call: Caller, words: tuple[str, ...]) -> None:
    said = call(*words, "--help")
    now = " ".join(FORMER[words[0]][:2]) if len(words) == 1 else " ".join(words)
    assert said.code == 0
    assert said.out.startswith(f"Usage: jaxprof {now.split(' --')[0]}")


def test_former_commands_do_what_they_did(call: Caller, kept: Path) -> None:
    assert call("show", kept).out == call("open", kept).out
    assert call("workloads").out == call("run").out == call("run", "--describe").out
    assert "sort" in call("workloads", "sort").out
    assert call("history", "--format", "json").data == call("compare", "--over-time", "--format", "json").data
    assert "compare needs" in call("ab").err


def test_version(call: Caller) -> None:
    assert call("--version").out == f"jaxprof {__version__}\n"


def test_control_characters_in_an_error_are_shown_and_not_obeyed(call: Caller) -> None:
    said = call("run", "a\x1b[2Jb")
    assert said.code == ExitCode.USAGE
    assert "\x1b" not in said.err


def test_which_error_has_which_code() -> None:
    assert for_error(WorkerError("x")) == ExitCode.FAILED
    for cls in (UsageError, FileRefusedError, StorageError):
        assert for_error(cls("x")) == ExitCode.USAGE


def test_the_app_refuses_to_start_without_a_terminal(call: Caller) -> None:
    said = call()
    assert said.code == ExitCode.USAGE
    assert "needs a terminal" in said.err
    assert "jaxprof run" in said.err


def test_an_interrupt_in_a_command_is_130(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("jaxprof.session.log.Library.find", interrupted)
    assert call("show", "x").code == ExitCode.INTERRUPTED


@pytest.mark.process
def test_a_reader_that_went_away_is_no_traceback(kept: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as gone:
        done = subprocess.run(
            [sys.executable, "-m", "jaxprof", "show", str(kept), "--format", "json"],
            stdout=gone,
            stderr=subprocess.PIPE,
            env=environment(),
            timeout=60,
        )
    assert done.returncode == ExitCode.BROKEN_PIPE
    assert done.stderr == b""
