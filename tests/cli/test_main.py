import json
import os
import re
import subprocess
import sys
from unittest.mock import Mock

import click
import pytest

from cli.calling import SOURCE, environment
from jaxprof import __version__
from jaxprof.cli.main import COMMANDS, cli
from jaxprof.cli.output import ExitCode
from waiting import SLOWER


def test_help_names_every_command_and_the_exit_codes(call):
    said = call("--help")
    assert said.code == 0
    assert [name for name in COMMANDS if f"  {name} " not in said.out] == []
    codes = said.out.partition("Exit codes: ")[2]
    page = (SOURCE.parent / "docs" / "exit-codes.md").read_text()
    for code in ExitCode:
        assert re.search(rf"\b{code.value} \w", codes), f"{code!r} is not in the help"
        assert f"\n| {code.value} | " in page, f"{code!r} is not in the documents"
    assert call("--version").out == f"jaxprof {__version__}\n"


def _contexts(command, name, parent=None):
    context = click.Context(command, info_name=name, parent=parent, terminal_width=80)
    yield context
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            yield from _contexts(command.get_command(context, each), each, context)


def test_help_has_whole_summaries_and_own_metavars():
    contexts = list(_contexts(cli, "jaxprof"))
    assert {"jaxprof run", "jaxprof sessions rename"} <= {context.command_path for context in contexts}
    for context in contexts:
        text = context.get_help()
        commands = text.partition("\nCommands:\n")[2]
        assert "..." not in commands, f"{context.command_path}: a summary is cut"
        assert not re.search(r"\b(INTEGER|FLOAT|TEXT|RANGE|FILENAME|DIRECTORY)\b", text), context.command_path
        assert not re.search(r"For times: [A-Z]", text), context.command_path
        for option in context.command.params:
            if isinstance(option, click.Option) and not (option.is_flag or isinstance(option.type, click.Choice)):
                assert option.metavar, f"{context.command_path} {option.opts}: click names its type"


@pytest.mark.parametrize("words", [*COMMANDS, "sessions rollup", "devices target", "devices target list"])
def test_words_that_stand_for_a_command_have_its_help(call, words):
    said = call(*words.split(), "--help")
    assert said.code == 0
    assert said.out.startswith(f"Usage: jaxprof {words} ")


@pytest.mark.parametrize("group", ["sessions", "config"])
def test_group_without_a_command_lists(call, group):
    listing = call(group, "--format", "json").out
    assert json.loads(listing)["kind"] == group
    assert "--format [text|json]" in call(group, "--help").out
    assert "--python PATH" in call("devices", "--help").out


def test_the_app_refuses_to_start_without_a_terminal(call):
    said = call()
    assert said.code == ExitCode.USAGE
    assert "needs a terminal" in said.err
    assert "jaxprof run" in said.err


def test_an_interrupt_in_a_command_is_130(call, monkeypatch):
    monkeypatch.setattr("jaxprof.session.Library.search", Mock(side_effect=KeyboardInterrupt))
    assert call("open", "x").code == ExitCode.INTERRUPTED


@pytest.mark.process
def test_a_reader_that_went_away_is_no_traceback(kept):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as gone:
        words = [sys.executable, "-m", "jaxprof", "open", str(kept), "--format", "json"]
        done = subprocess.run(words, stdout=gone, stderr=subprocess.PIPE, env=environment(), timeout=60 * SLOWER)
    assert (done.returncode, done.stderr) == (ExitCode.BROKEN_PIPE, b"")


def test_every_help_fits_into_80_columns():
    def commands(command, name):
        yield command, name
        for word in command.list_commands(click.Context(command)) if isinstance(command, click.Group) else ():
            yield from commands(command.get_command(click.Context(command), word), f"{name} {word}")

    for command, name in commands(cli, "jaxprof"):
        context = click.Context(command, info_name=name, terminal_width=80)
        assert [line for line in command.get_help(context).splitlines() if len(line) > 80] == [], name
