"""`jaxprof agent`: `install` writes a skill, one file that tells a coding agent what to ask jaxprof, in which order,
and what not to conclude; `mcp` serves sessions, HLO and documents as tools of the Model Context Protocol.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from jaxprof.cli.agent import ORDER
from jaxprof.cli.options import LocalFile, refuse, yes_option
from jaxprof.cli.output import ExitCode, confirmed, note, notes, print_text, written_whole
from jaxprof.errors import FileRefusedError, UsageError
from jaxprof.files import read_whole
from jaxprof.units import counted
from jaxprof.version import __version__

_COMMANDS: Final = """\
## Commands

| question | command |
|---|---|
| What takes a program's time, what is compiled again? | `jaxprof script train.py --epochs 1`, then `jaxprof explain` |
| How fast is this function, phase by phase? | `jaxprof run model.py:step --arg "f32[1024,1024]"` |
| What should be changed first? | `jaxprof explain last --format json` |
| Which process of a job is late? | `jaxprof script -n 4 train.py` (or `srun`), then `jaxprof explain train.jaxprof.d` |
| What does this code mean? | `jaxprof explain --code host-sync` |
| Which of two is faster? | `jaxprof compare old.py:step new.py:step`, or `jaxprof compare model.py:step --git HEAD~1` |
| What did XLA make of it? | `jaxprof hlo last --kernels`, `--findings`, `--barriers` |
| What would it be on another device? | `jaxprof hlo model.py:step --arg "f32[64,256]" --for h100` |
| Any figure, of one or hundreds of sessions | `jaxprof query last "SELECT ..."`; `jaxprof query --schema` |
| Did anything grow, in a pull request? | `jaxprof gate model.py:step --base HEAD~1 --fail-on kernels` |

Every command takes `--format json`: one line, at most 50 rows of a list; `truncated` says what was left out, `next`
names commands that go on, and an error is an answer, too. Exit code 0 is success, 1 a failed run, 2 wrong usage.

`jaxprof agent mcp` has the same as tools over the Model Context Protocol (the extra `mcp`).

## After a change

Run the `verify` command of the finding. A time is better only if `compare` says `faster`; `same` and
`inconclusive` are not. Check that it found the same results.
"""

SKILL: Final = f"""\
---
name: jaxprof
description: Profile JAX programs with jaxprof. Use for slow JAX code, recompilation, XLA kernels and fusion, memory, \
comparing two versions, and questions about recorded sessions (*.jaxprof) or profiles.
---

# jaxprof

{ORDER}

{_COMMANDS}
Written by jaxprof {__version__}; `jaxprof agent install` writes it again.
"""

NAMES: Final = ("claude", "codex", "cursor", "gemini", "agents")
"""Names of agents. The folder of each, in the user's home or in a project, is its name after a dot (`.claude`)."""


@dataclass(frozen=True, slots=True)
class SkillPlace:
    """A file in which a skill is, or would be, written."""

    agent: str
    path: Path

    @property
    def state(self) -> str:
        """`new`: nothing is there; `same`: this text is there; `other`: another text is there."""
        try:
            return "same" if read_whole(self.path) == SKILL.encode() else "other"
        except FileNotFoundError:
            return "new"
        except (OSError, FileRefusedError):
            return "other"


def skill_places(base: Path, agents: tuple[str, ...] = ()) -> list[SkillPlace]:
    """Return the places of these agents under `base`; if none are given, of the agents that have a folder there."""
    return [
        SkillPlace(name, base / f".{name}" / "skills/jaxprof/SKILL.md")
        for name in NAMES
        if name in agents or (not agents and (base / f".{name}").is_dir())
    ]


@click.group("agent")
def command() -> None:
    """Tell coding agents what to ask jaxprof, and in which order; serve sessions to them as tools."""


@command.command("install")
@click.option("--for", "agents", type=click.Choice(NAMES), multiple=True, help="For this one; default: those in use.")
@click.option("--project", is_flag=True, help="In the present folder, instead of your home.")
@click.option("--dir", "folder", type=LocalFile(), metavar="DIR", help="In this folder, instead.")
@yes_option("-y")
def install(agents: tuple[str, ...], project: bool, folder: Path | None, yes: bool) -> int:
    """Write a skill file, after showing what and where. Nothing else is written or changed."""
    if folder is not None:
        refuse(("project",), "names the present folder, and --dir another one", "Give only one of them.")
    base = folder if folder is not None else Path.cwd() if project else Path.home()
    places = skill_places(base, agents)
    if not places:
        raise UsageError(f"no coding agent has a folder in {base}", f"Name one: --for {NAMES[0]}.")
    print_text(SKILL)
    words = {"new": "new", "same": "there already, and the same", "other": "replaces the text that is there"}
    states = {place.path: place.state for place in places}
    notes(f"{place.path} ({place.agent}): {words[states[place.path]]}" for place in places)
    to_write = [place for place in places if states[place.path] != "same"]
    if not to_write:
        note("Nothing to write.")
        return ExitCode.OK
    if not confirmed(f"Write {counted(len(to_write), 'file')}?", yes=yes):
        return ExitCode.OK
    for place in to_write:
        place.path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(place.path, force=True, only_regular=True) as partial:
            partial.write_text(SKILL, "utf-8")
    note(f"Written: {', '.join(str(place.path) for place in to_write)}.")
    return ExitCode.OK


@command.command()
@click.option("--allow-run", is_flag=True, help="Also offer tools that run code: run, ab, and hlo of your functions.")
@click.option("--allow-urls", is_flag=True, help="Let tools fetch what is named by URL.")
def mcp(allow_run: bool, allow_urls: bool) -> None:
    """Serve tools for a coding agent over stdin and stdout.

    The tools (explain, show, query, compare, hlo, docs) speak the Model Context Protocol. They read what was recorded
    and change nothing. A client starts this command itself; its configuration names the command `jaxprof` with the
    arguments `agent mcp`.
    """
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        hint = f"{sys.executable} -m pip install 'mcp>=2.3,<3'"
        raise UsageError("`mcp` needs the mcp package, which is not installed", hint)
    if sys.stdin.isatty():
        what = "`mcp` talks to a client over stdin, and this is a terminal"
        raise UsageError(what, "Let a client start it: jaxprof agent mcp.")
    from jaxprof.cli.agent.server import make_server

    make_server(allow_run=allow_run, allow_urls=allow_urls).run("stdio")
