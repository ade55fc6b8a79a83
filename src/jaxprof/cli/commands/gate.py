"""`jaxprof gate TARGET --base BASE --fail-on FACT[:N%]`: whether the exact facts and times of a program are within
limits. It compiles the program and its base, and measures both for times."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import click

from jaxprof.analysis.kernels.hlo_program import CompileOptions
from jaxprof.analysis.runs.ab import AbResult, ab_results
from jaxprof.analysis.target import Kind, Target, resolve
from jaxprof.analysis.target import command as shell_line
from jaxprof.base.errors import JaxprofError, UsageError
from jaxprof.base.operating_system import raise_on_signals
from jaxprof.base.reaper import TemporaryFolder
from jaxprof.base.values import frozen
from jaxprof.cli import options
from jaxprof.cli.answers import Outcome, command_line, measure, print_facts
from jaxprof.cli.modules import compile_programs, with_local_device
from jaxprof.cli.options import refuse, words_given
from jaxprof.cli.output import ExitCode, format_option, print_lines, print_report
from jaxprof.cli.recorded import session_of
from jaxprof.facts.gate import read_limits
from jaxprof.findings.compare.gate import (
    GateBase,
    GateLimit,
    GateResult,
    GateRow,
    Program,
    judge_programs,
    judge_times,
    label_of,
)
from jaxprof.report import WIDE, report_lines
from jaxprof.report.comparison import gate_report
from jaxprof.report.conclusion import conclusion_lines, gate_conclusion
from jaxprof.runner.repository import Revision, check_out, repository_of
from jaxprof.runner.sides import HALF_WIDTH, sides_of

_COMPILING = {"for_devices", "axes", "shard", "variant", "arguments", "settings", "device", "python"}
"""Parameters that say what is compiled; `hlo` and `compare` have them, too."""
TIMED = ("launches", "budget_seconds", "max_seconds", "max_silence_seconds", "seed", "out", "force")
"""Parameters of a command that say how the times of sides are measured, and where they are kept."""

_HEAD = "HEAD"


@click.command("gate")
@click.argument("target", metavar="TARGET", shell_complete=options.complete_with("target"))
@click.option(
    "--base",
    metavar="BASE",
    shell_complete=options.complete_with("session"),
    help="What TARGET is compared with; by default HEAD, where it has changes that are not committed.",
)
@click.option(
    "--fail-on",
    "limits",
    multiple=True,
    metavar="FACT[:N%]",
    help="Fail if it grows (by more than N %): kernels, flops, peak_bytes, collectives... or a time: run:5%, "
    "compile:20%. May be repeated.",
)
@click.option("--strict", is_flag=True, help="Exit with 4 where a limit is undecided.")
@options.target("Compile for h100, tpu-v5e... that need not be here.")
@options.variant()
@options.arguments(help="For your own function: f32[1024,1024].")
@options.settings()
@options.python()
@options.device(help="The device to compile for and to run on, in place of the one that JAX uses.")
@options.measuring("For times: ")
@format_option("text", "markdown", "json")
def command(target: str, base: str | None, limits: tuple[str, ...], strict: bool, form: str, **words: Any) -> int:
    """Fail if an exact fact of TARGET, or a time, has grown since BASE.

    TARGET is a function of yours (path/to/file.py:function), a workload, or a session (of `run`, or of `hlo --out`).
    BASE is one of these, or a git revision of the repository that holds TARGET.

    For facts both are compiled, and nothing is run: kernels, kernel_launches, flops, accessed_bytes, transcendentals,
    product_bytes, peak_bytes, argument_bytes, output_bytes, temporary_bytes, constant_bytes, alias_bytes (must not
    shrink), generated_code_bytes, collectives, collective_bytes, compiles. Times are measured in turns: run:5% (a
    call), first_run, trace, lower, compile. Exit codes: 0 within, 1 a side failed, 3 a limit was exceeded, 4 undecided
    (--strict).
    """
    program = resolve(target, code=True, runs=True)
    if not limits:
        session_of(program)  # a missing target is the first thing to report
        more = [*([] if base or program.is_own else ["--base", "OTHER"]), "--fail-on", "kernels"]
        line = shell_line("gate", *map(str, words_given(without=())), *more)
        raise UsageError("no --fail-on says what must not grow", f"Limit an exact fact, or a time: {line}")
    parsed_limits = read_limits(limits)
    timed = any(limit.is_time for limit in parsed_limits)
    if timed and words["for_devices"]:
        limit = next(limit for limit in parsed_limits if limit.is_time)
        raise UsageError(
            f"--fail-on {limit.text} is a time, and --for compiles for devices that are not here",
            "With --for, limit exact facts: kernels, flops, accessed_bytes, peak_bytes.",
        )
    if not timed:
        refuse(TIMED, "applies to limits on times only, and none was given", "Limit a time: --fail-on run:5%.")
    timing = {name: words.pop(name) for name in TIMED}
    result, measured = _compare(program, base, parsed_limits, CompileOptions(**words), timing)
    path = measured.path if measured is not None else None
    if form == "json":
        print_facts("gate", result, [command_line("open", path)] if path is not None else [])
    else:
        print_report(report_lines(gate_report(result), WIDE), form)
        if form == "text":
            print_lines(["", *conclusion_lines(gate_conclusion(result, _details(result.base, program)), WIDE)])
    return _exit_code(result, measured, strict=strict)


def _exit_code(result: GateResult, measured: Outcome | None, *, strict: bool) -> int:
    if measured is not None and measured.exit_code:
        return measured.exit_code
    if result.outcome == "exceeded":
        return ExitCode.LIMIT_PASSED
    return ExitCode.UNDECIDED if strict and result.outcome == "undecided" else ExitCode.OK


def _compare(
    target: Target, base: str | None, limits: Sequence[GateLimit], compiling: CompileOptions, timing: Mapping[str, Any]
) -> tuple[GateResult, Outcome | None]:
    """Judge each limit. Return the result, and what was measured for limits on times, with the parameters `timing`: A
    is the base and B the target. Raises UsageError for sides that do not fit."""
    rows: list[GateRow] = []
    notes: list[str] = []
    measured: Outcome | None = None
    compared: AbResult | None = None
    timed = [limit for limit in limits if limit.is_time]
    with raise_on_signals(), find_base(target, base) as found:
        if not (target.is_code or found.target.is_code):
            hint = "Sessions are compared as they are: leave it out."
            refuse(sorted(_COMPILING), "applies to what is compiled now", hint)
        compiling = with_local_device(compiling, target, found.target)
        # a session was measured at another time, so that its times are not compared with new ones
        measures_both = bool(timed) and target.is_code and found.about.reading in ("target", "revision")
        unmeasured = [limit for limit in limits if not (measures_both and limit.is_time)]
        if unmeasured:
            try:
                before = _programs(found.target, compiling, found.variables)
            except JaxprofError as error:
                raise found.as_base_error(error) from error
            rows, notes = judge_programs(found.about, before, _programs(target, compiling), unmeasured)
        if measures_both:
            revision = found.revision
            sides = (target if revision else found.target, target)
            chosen = {each for each in (*(side.variant for side in sides), compiling.variant) if each}
            if len(chosen) > 1:
                words = " and ".join(sorted(chosen))
                raise UsageError(f"both sides are measured as one variant, not as {words}", "Name one.")
            of_sides = {
                "revision": found.about.name if revision is not None else None,
                "arguments": compiling.arguments,
                "settings": compiling.settings,
                "python": str(compiling.python) if compiling.python else None,
            }
            read = sides_of(sides, of_sides, revision)
            with TemporaryFolder("gate") as folder:
                measured = measure(
                    read,
                    folder,
                    timing,
                    device=compiling.device,
                    variant=next(iter(chosen), "jit"),
                    preset=compiling.preset,
                    arguments=compiling.arguments,
                    half_width=HALF_WIDTH if all(limit.fact == "run" for limit in timed) else None,
                )
            (compared,) = ab_results(measured.session)
            rows += judge_times(label_of(compared.versus[0].run), compared, timed)
    return GateResult(found.about, tuple(rows), tuple(notes), compared), measured


@frozen
class FoundBase:
    """The base of a target, with what is needed to compile it."""

    about: GateBase
    target: Target
    """What is compiled or read; for a revision, the function in its files."""
    revision: Revision | None = None

    @property
    def variables(self) -> dict[str, str]:
        """Variables that are laid over the environment of the base's processes."""
        return self.revision.variables() if self.revision is not None else {}

    def as_base_error(self, error: JaxprofError) -> JaxprofError:
        """Return the error as one of the base, with a revision's files as git writes them: `HEAD~1:train.py`."""
        what, hint = error.what, error.hint
        if self.revision is not None:
            tree = f"{self.revision.tree}{os.sep}"
            what, hint = (text.replace(tree, f"{self.about.name}:") for text in (what, hint))
        return type(error)(f"the base, {self.about.name}: {what}", hint)


@contextmanager
def find_base(target: Target, word: str | None) -> Iterator[FoundBase]:
    """Yield what the word after `--base` means for `target`, as `resolve` decides; a revision is checked out until the
    end. Without a word, the base is HEAD, if `target` is a function with changes that are not committed. Raises
    UsageError if `target` does not exist, or naming what was tried."""
    session_of(target)  # nothing at all, or a job, is refused before it has no base
    problem: UsageError | None = None

    def is_revision(name: str | None) -> bool:
        nonlocal problem
        problem = _no_revision(target, name)
        return problem is None

    if word is None:
        base = Target(_HEAD, Kind.REVISION if is_revision(None) else Kind.NOTHING)
    else:
        base = resolve(word, code=True, runs=True, is_revision=is_revision)
    if base.kind is Kind.REVISION:
        with check_out(target.word, base.word) as revision:
            about = GateBase(base.word, "revision", str(revision.repository), revision.commit, revision.dirty)
            yield FoundBase(about, replace(target, word=revision.target(target.word)), revision)
        return
    if base.kind is Kind.NOTHING and problem is not None:
        raise problem
    reading: Literal["path", "target", "session"] = "session" if base.kind is Kind.SESSION else "path"
    if base.is_code:
        reading = "target"
    name = f"{base.word}:{base.run}" if base.run else base.word
    yield FoundBase(GateBase(name, reading, base.word if base.is_code else str(base.path)), base)


def _no_revision(target: Target, word: str | None) -> UsageError | None:
    """Return why `word` (None for HEAD) cannot be used as a base revision; None if it can."""
    unnamed = word is None
    tried = (
        f"{target.word} has no base" if unnamed else f"--base {word!r} is neither a path, a target nor a kept session"
    )
    try:
        if not target.is_own:
            raise UsageError("only a function of yours has revisions to compare with")
        repository = repository_of(target.word)
    except UsageError as error:
        example = "--base takes a revision (origin/main), a session, or another target."
        return UsageError(f"{tried}: {error.what}", example)
    if repository.commit(word or _HEAD) is None:
        return UsageError(f"{tried}; {repository.folder} has no revision {word or _HEAD}", repository.lack)
    in_a_hook = "GIT_INDEX_FILE" in os.environ  # of `git commit --amend`, which may change the message alone
    if unnamed and not repository.is_dirty() and not in_a_hook:
        return UsageError(
            f"{repository.folder} is as it was committed: without --base, the gate compares with {_HEAD}",
            "Name the base: --base origin/main, --base HEAD~1.",
        )
    return None


def _programs(target: Target, compiling: CompileOptions, variables: Mapping[str, str] | None = None) -> list[Program]:
    """Return the compiled programs of the target, or the recorded ones of a session. Raises JaxprofError."""
    session = session_of(target)
    if session is not None and (recorded := [run for run in session.runs.values() if run.is_program]):
        return [(session, run) for run in recorded if target.run in ("", run.id)]
    programs = compile_programs(target, compiling, variables)
    return [(session, run) for session, run in programs if "hlo" in run.texts] or programs


def _details(base: GateBase, target: Target) -> str:
    """Return the command that shows what differs from the base, with the options that say what is compiled; an empty
    text if the target is the base."""
    given = click.get_current_context().params
    compiled = [str(word) for word in words_given(without=given.keys() - _COMPILING)]
    word = f"{target.word}:{target.run}" if target.run else target.word
    if base.reading == "revision" and given["for_devices"]:
        return shell_line("hlo", word, *compiled, "--kernels")
    if base.reading == "revision":
        return shell_line("compare", "--git", base.name, *compiled, word)
    if target.path is not None and not target.is_code and target.path.resolve() == Path(base.location).resolve():
        return ""
    of_sessions = base.reading == "session" and session_of(target) is not None
    if base.reading == "target" or of_sessions or given["for_devices"]:
        return shell_line("compare", *compiled, base.name, word)
    return shell_line("hlo", word, *compiled, "--diff", base.name)
