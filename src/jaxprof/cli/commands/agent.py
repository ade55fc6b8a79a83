"""`jaxprof agent install`: tell coding agents what to ask jaxprof, in the folders that they read."""

from __future__ import annotations

from pathlib import Path

import click

from jaxprof.cli.exit_codes import ExitCode
from jaxprof.cli.options import LocalFile, refuse, yes_option
from jaxprof.cli.output import confirmed, note, notes, print_text
from jaxprof.errors import UsageError
from jaxprof.units import counted

NAMES = ("claude", "codex", "cursor", "gemini", "agents")


@click.group("agent")
def command() -> None:
    """Tell coding agents what to ask jaxprof, and in which order."""


@command.command("install")
@click.option("--for", "agents", type=click.Choice(NAMES), multiple=True, help="For this one; default: those in use.")
@click.option("--project", is_flag=True, help="In the present folder, instead of your home.")
@click.option("--dir", "folder", type=LocalFile(), metavar="DIR", help="In this folder, instead.")
@yes_option("-y")
def install(agents: tuple[str, ...], project: bool, folder: Path | None, yes: bool) -> int:
    """Write a skill file, after showing what and where. Nothing else is written or changed."""
    from jaxprof.cli.agent.skill import SKILL, skill_places, write_skill

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
    wanted = [place for place in places if states[place.path] != "same"]
    if not wanted:
        note("Nothing to write.")
        return ExitCode.OK
    refusal = UsageError("installing asks first, and stdin is not a terminal", "Add --yes.")
    if not confirmed(f"Write {counted(len(wanted), 'file')}?", refusal, yes=yes):
        return ExitCode.OK
    for place in wanted:
        write_skill(place)
    note(f"Written: {', '.join(str(place.path) for place in wanted)}.")
    return ExitCode.OK
