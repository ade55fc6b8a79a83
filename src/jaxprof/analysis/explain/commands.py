"""The commands that verify a fix, and those that fill a gap, as they are typed in a shell."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

from jaxprof.analysis.ceilings import device_elsewhere
from jaxprof.redaction import REDACTED
from jaxprof.session.log.state import with_urls

if TYPE_CHECKING:
    from jaxprof.analysis.programs.derive import ProgramResult
    from jaxprof.session import Run

_STARTED: Final = ("script", "module")
"""Programs that jaxprof started itself, and can start again."""


def command(*words: str) -> str:
    """`jaxprof` and these words, each quoted where a shell would not take it as it is; empty where a word was not
    kept, because nobody could type it."""
    if any(REDACTED in word for word in words):
        return ""
    return shlex.join(("jaxprof", *(with_urls(word) for word in words)))


def record_again(program: ProgramResult, *options: str) -> str:
    """Records the program once more, with these options; empty for a program that records itself."""
    if program.how not in _STARTED or not program.argv:
        return ""
    return command("script", "--plain", *options, *program.argv)


def program_verified(name: str, program: ProgramResult) -> str:
    """Records the changed program, and compares it with this session."""
    again = record_again(program)
    compared = command("compare", name, "last")
    return f"{again} && {compared}" if again else compared


def run_verified(name: str, run: Run) -> str:
    """Measures a changed function beside the committed one where there is a repository, else the run once more."""
    plan = run.plan
    if plan.how == "compile":
        elsewhere = ("--for", plan.device) if device_elsewhere(run) is not None else ()
        variant = () if plan.target else ("--variant", plan.variant)
        return command("hlo", plan.target or plan.workload, *variant, *_given(run), *elsewhere, "--findings")
    if not plan.side and _is_committed(plan.target):
        device = ("--device", plan.device) if plan.device != "cpu:0" else ()
        return command("ab", "--git", "HEAD", *_given(run), *device, plan.target)
    again = command("run", "--from", name if plan.side else f"{name}:{run.id}")
    return f"{again} && {command('compare', name, 'last')}"


def _given(run: Run) -> tuple[str, ...]:
    return tuple(word for argument in run.plan.arguments for word in ("--arg", argument))


def _is_committed(target: str) -> bool:
    """Whether a function stands in a file of a git repository."""
    file, colon, _ = target.rpartition(":")
    return bool(colon) and file.endswith(".py") and any((folder / ".git").exists() for folder in Path(file).parents)
