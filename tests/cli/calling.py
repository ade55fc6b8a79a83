"""Calling the command line as a user does: in this process where only words matter, as a process where signals do."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import click
import pytest

from answer_schemas import hold
from jaxprof.cli.main import cli, main
from waiting import SLOWER

SOURCE = Path(__file__).parents[2] / "src"


@dataclass(frozen=True, slots=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)["data"]


class Caller:
    """`call("open", "x")` is `jaxprof open x`. An answer in JSON has to be one line, and what its schema says; the
    commands with which it would go on have to be understood."""

    def __init__(self, capsys):
        self._capsys = capsys

    def __call__(self, *words):
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        captured = self._capsys.readouterr()
        if captured.out.startswith('{"schema":"3.0","kind":'):
            answer = json.loads(captured.out)
            hold(answer)
            assert captured.out.count("\n") == 1
            for line in answer.get("next", ()):
                assert line != shlex.join(["jaxprof", *map(str, words)]), "it was just asked"
                for command in line.split(" && "):
                    understood(command)
        return Said(int(ended.value.code or 0), captured.out, captured.err)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(SOURCE)}


def run(*words: str | Path, cwd: Path | None = None, **more: str) -> Said:
    """How a command of a process of its own ended, with `more` variables in its environment."""
    given = [sys.executable, "-P", "-m", "jaxprof", *map(str, words)]
    variables = environment() | more
    done = subprocess.run(
        given, cwd=cwd, env=variables, stdin=DEVNULL, capture_output=True, text=True, timeout=120 * SLOWER
    )
    return Said(done.returncode, done.stdout, done.stderr)


def git(folder: Path, *words: str) -> None:
    """Runs git in the folder; skips the test where there is none."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    named = {f"GIT_{who}_{what}": "x@y.z" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True, env={**os.environ, **named})


def commit_all(folder: Path, message: str) -> None:
    """What is in the folder, in its repository, which is made if there is none."""
    if not (folder / ".git").exists():
        git(folder, "init", "-q")
        git(folder, "symbolic-ref", "HEAD", "refs/heads/main")  # `init -b` needs git 2.28
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)


def understood(line: str) -> None:
    """Fails if a command line that begins with `jaxprof` could not be read."""
    words = shlex.split(line)[1:]
    if not words or words[0].startswith("-"):
        cli.make_context("jaxprof", words)
        return
    with click.Context(cli, info_name="jaxprof") as context:
        name, command, rest = cli.resolve_command(context, words)
        command.make_context(name, list(rest))
