"""A skill is written where it was shown, after it was shown, and only if that was wanted."""

import os
import re

from cli.calling import understood
from jaxprof.cli.commands.agent import SKILL


def test_it_is_written_for_the_agents_in_use(call, tmp_path):
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".other").mkdir()
    said = call("agent", "install", "--dir", tmp_path, "--yes")
    written = tmp_path / ".claude" / "skills" / "jaxprof" / "SKILL.md"
    assert said.code == 0
    assert said.out.strip() == SKILL.strip(), "what is written is shown"
    assert [(path, path.read_text()) for path in tmp_path.rglob("*") if path.is_file()] == [(written, SKILL)]
    again = call("agent", "install", "--dir", tmp_path)
    assert (again.code, "Nothing to write." in again.err) == (0, True)


def test_another_text_is_named_before_it_is_replaced(call, tmp_path):
    said = call("agent", "install", "--dir", tmp_path, "--yes")
    assert (said.code, list(tmp_path.iterdir())) == (2, []), "no coding agent has a folder here"
    written = tmp_path / ".codex" / "skills" / "jaxprof" / "SKILL.md"
    written.parent.mkdir(parents=True)
    written.write_text("mine")
    said = call("agent", "install", "--dir", tmp_path)
    assert said.code == 2, "stdin is no terminal, and nobody said yes"
    assert "replaces the text that is there" in said.err
    assert written.read_text() == "mine"
    assert call("agent", "install", "--dir", tmp_path, "--yes").code == 0
    assert written.read_text() == SKILL


def test_the_commands_of_the_skill_are_understood():
    named = re.findall(r"`(jaxprof [^`]+)`", SKILL)
    assert len(named) > 10
    for line in named:
        understood(line)
    assert SKILL.startswith("---\nname: jaxprof\ndescription: ")


def test_a_link_in_its_place_is_replaced_and_a_pipe_not_waited_for(call, tmp_path):
    linked, piped = (tmp_path / f".{name}" / "skills" / "jaxprof" / "SKILL.md" for name in ("claude", "codex"))
    for path in (linked, piped):
        path.parent.mkdir(parents=True)
    (tmp_path / "mine").write_text("precious")
    linked.symlink_to(tmp_path / "mine")
    os.mkfifo(piped)
    assert call("agent", "install", "--dir", tmp_path, "--yes").code == 2
    assert call("agent", "install", "--dir", tmp_path, "--for", "claude", "--yes").code == 0
    assert (linked.read_text(), (tmp_path / "mine").read_text()) == (SKILL, "precious")
