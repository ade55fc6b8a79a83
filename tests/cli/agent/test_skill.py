"""A skill is written where it was shown, after it was shown, and only if that was wanted."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import click

from cli.calling import Caller
from jaxprof.cli.commands import agent
from jaxprof.cli.commands.agent import FOLDERS, SKILL
from jaxprof.cli.main import cli


def test_it_is_written_for_the_agents_in_use(caller: Caller, tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".other").mkdir()
    said = caller("agent", "install", "--dir", tmp_path, "--yes")
    written = tmp_path / ".claude" / "skills" / "jaxprof" / "SKILL.md"
    assert said.code == 0
    assert written.read_text() == SKILL
    assert said.out.strip() == SKILL.strip(), "what is written is shown"
    assert f"{written} (claude): new" in said.err
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [written]
    again = caller("agent", "install", "--dir", tmp_path)
    assert (again.code, "Nothing to write." in again.err) == (0, True)


def test_another_text_is_named_before_it_is_replaced(caller: Caller, tmp_path: Path) -> None:
    written = tmp_path / ".codex" / "skills" / "jaxprof" / "SKILL.md"
    written.parent.mkdir(parents=True)
    written.write_text("mine")
    said = caller("agent", "install", "--dir", tmp_path)
    assert said.code == 2, "stdin is no terminal, and nobody said yes"
    assert "replaces the text that is there" in said.err
    assert written.read_text() == "mine"
    assert caller("agent", "install", "--dir", tmp_path, "--yes").code == 0
    assert written.read_text() == SKILL


def test_without_an_agent_it_asks_for_a_name(caller: Caller, tmp_path: Path) -> None:
    said = caller("agent", "install", "--dir", tmp_path, "--yes")
    assert said.code == 2
    assert "no coding agent has a folder" in said.err
    assert list(tmp_path.iterdir()) == []


def test_the_commands_of_the_skill_are_understood_and_its_agents_are_the_commands() -> None:
    named = re.findall(r"`(jaxprof [^`]+)`", SKILL)
    assert len(named) > 10
    for line in named:
        words = shlex.split(line)[1:]
        with click.Context(cli, info_name="jaxprof") as context:
            name, command, rest = cli.resolve_command(context, words)
            assert command is not None
            command.make_context(name, list(rest))
    assert tuple(FOLDERS) == agent.NAMES
    assert SKILL.startswith("---\nname: jaxprof\ndescription: ")


def test_a_link_in_its_place_is_replaced_and_a_pipe_not_waited_for(caller: Caller, tmp_path: Path) -> None:
    for name in ("claude", "codex"):
        (tmp_path / f".{name}" / "skills" / "jaxprof").mkdir(parents=True)
    linked, piped = (tmp_path / f".{name}" / "skills" / "jaxprof" / "SKILL.md" for name in ("claude", "codex"))
    (tmp_path / "mine").write_text("precious")
    linked.symlink_to(tmp_path / "mine")
    os.mkfifo(piped)
    assert caller("agent", "install", "--dir", tmp_path, "--yes").code == 2
    assert caller("agent", "install", "--dir", tmp_path, "--for", "claude", "--yes").code == 0
    assert (linked.read_text(), (tmp_path / "mine").read_text()) == (SKILL, "precious")
