"""The documents say what is so: their commands parse, their links lead somewhere, their keys are the JSON's."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from jaxprof.cli.main import cli
from jaxprof.report.json import to_dict
from report import sessions

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
_FENCE = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]+)")


def commands() -> list[str]:
    found = []
    for document in DOCUMENTS:
        for block in _FENCE.findall(document.read_text()):
            for line in block.splitlines():
                command = re.split(r"\s#\s|\s\|\s|\s>\s", line)[0].strip()
                if command.startswith("jaxprof"):
                    found.append(command)
    return sorted(set(found))


@pytest.mark.parametrize("line", commands())
def test_a_command_that_is_documented_is_understood(line: str) -> None:
    words = shlex.split(line)[1:]
    if not words or words[0].startswith("-"):
        cli.make_context("jaxprof", words)
        return
    with click.Context(cli, info_name="jaxprof") as context:
        name, command, rest = cli.resolve_command(context, words)
        assert command is not None
        command.make_context(name, list(rest))


def test_there_are_such_commands() -> None:
    assert len(commands()) > 10


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in _LINK.findall(document.read_text()):
        if not target.startswith(("http", "mailto")):
            assert (document.parent / target).exists(), target


def test_the_readmes_test_command_is_what_ci_runs() -> None:
    (command,) = re.findall(r"^python3 -m venv .*pytest$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert command in (ROOT / ".ci" / "run").read_text()


def test_every_key_of_the_json_is_documented() -> None:
    text = (ROOT / "docs" / "json.md").read_text()
    known = set(re.findall(r"[a-z_0-9]+", " ".join(re.findall(r"`([^`\n]+)`", text))))
    data = to_dict(sessions.whole())
    keys = set(data) | set(data["session"]) | set(data["environment"])
    for run in data["runs"]:
        keys |= set(run) | set(run["phases"])
        for name in ("check", "versus", "memory"):
            keys |= set(run.get(name) or {})
        for kernel in run.get("kernels") or []:
            keys |= set(kernel)
        for phase in run["phases"].values():
            keys |= set(phase)
    assert keys - known == set()
