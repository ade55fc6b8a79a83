"""`jaxprof compare A B...`: what can be run is measured in turns, sessions are compared with the first, run by run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jaxprof.analysis.target import Kind, Target, resolve, wrong_kind
from jaxprof.base.errors import UsageError, not_found, unknown_name
from jaxprof.cli import options
from jaxprof.cli.answers import (
    Outcome,
    command_line,
    measure,
    measure_group,
    print_conclusion,
    print_facts,
    side_options,
)
from jaxprof.cli.options import refuse, refuse_others, refuse_without
from jaxprof.cli.output import (
    combine_options,
    format_option,
    no_form,
    note,
    print_json,
    print_lines,
    print_report,
    print_text,
    start_question,
)
from jaxprof.cli.recorded import Recorded, open_recorded
from jaxprof.session.files import lasting_name
from jaxprof.workloads import names

if TYPE_CHECKING:
    from jaxprof.events.finding import Finding
    from jaxprof.findings.compare.session_difference import SessionDifference
    from jaxprof.runner.planning import PlannedRun

_COMPILED = ("for_devices", "axes", "shard", "arguments", "settings", "python")
_PRECISIONS = click.Choice(("default", "high", "highest", "bfloat16", "tensorfloat32", "float32"))


def _side_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that all sides take, or B in their place: `--env`, `--env-b`..."""
    for suffix, whose in (("-b", "B"), ("", "all sides")):
        name = suffix.replace("-", "_")
        whom = f" of {whose}."
        for word, parameter, more in (
            ("precision", "precision", {"type": _PRECISIONS, "metavar": "P", "help": f"Matrix precision{whom}"}),
            ("set", "settings", {"multiple": True, "metavar": "n=4000", "help": f"A parameter{whom} May be repeated."}),
            ("python", "python", {"metavar": "PATH", "help": f"Interpreter or environment{whom}"}),
            ("env", "environment", {"multiple": True, "metavar": "K=V",
                                    "help": f"A variable in the environment{whom} May be repeated."}),
        ):  # fmt: skip
            command = click.option(f"--{word}{suffix}", f"{parameter}{name}", **more)(command)
    return command


_measured_options = combine_options(
    click.option("--git", "revision", metavar="REV", help="A is the target at this revision, B the one on disk."),
    _side_options,
    options.variant(
        default="jit",
        show_default=True,
        metavar="V",
        help="Variant of all sides; for one side, write it after its name (selu:numpy selu:jit).",
    ),
    options.device(),
    options.preset(),
    click.option(
        "--margin",
        type=options.share,
        default="2%",
        show_default=True,
        metavar="M",
        help="Smaller differences count as the same.",
    ),
    options.measuring(),
    click.option("--capture", is_flag=True, help="Capture kernel times, in a pass of their own."),
)


@click.command("compare")
@click.argument("files", metavar="[A] [B]...", nargs=-1, shell_complete=options.complete_with("target"))
@options.target("Compile A, B... for h100, tpu-v5e...: exact facts, without the device.")
@options.arguments(help="An argument of your functions: f32[1024,1024].")
@_measured_options
@click.option(
    "--try",
    "tried",
    is_flag=False,
    flag_value="",
    metavar="[CODE]",
    help="Try what the findings of A propose, or this finding: each change as a side, in a process of its own.",
)
@options.yes(help="With --try of a session: run what it names without a question.")
@click.option("--no-run", is_flag=True, help="Run nothing: A and B are sessions, whatever their names are.")
@format_option("text", "json", "markdown")
def command(files: tuple[str, ...], form: str, no_run: bool, tried: str | None, **words: Any) -> int | None:
    """Compare A with B: what can be run is measured, what was recorded is compared as it is.

    Functions of yours (path/to/file.py:function), workloads (selu, selu:jit), or two settings of one: which is faster,
    and do they compute the same? A and B are measured in turns, in fresh processes, on the same inputs. Exits with 0
    whatever the verdict is, and with 1 if a side failed. With --for, each is compiled for a device that need not be
    here.

    Sessions B, C... with the session A: environments, times, exact facts, kernels. Each is a path, the name of a kept
    session, a part of it, or `last`; a profile that was recorded elsewhere works too. Runs of the same workload,
    variant, kind of device and parameters belong together. A:r2 B:r5 compares these two runs, whatever they are; A:r1
    A:r2 two runs of one session.

    With --try, A alone is a function, a workload, or a session whose call is measured again. What its findings propose
    is tried on it (a setting, lax.map in place of vmap at that line...), and no file is changed.
    """
    targets = [resolve(word, note, code=not no_run, runs=True) for word in files]
    if tried is not None:
        return _measure(targets, form, words, tried)
    refuse_without("tried", ("yes",))
    if words["for_devices"]:
        refuse_others("does not apply to programs that are only compiled", "files", "form", *_COMPILED)
        _refuse_alone(targets)
        # Compile the targets, and compare each with the first, on each device.
        compiling = {name: words[name] for name in _COMPILED}
        from jaxprof.analysis.kernels.hlo_program import CompileOptions
        from jaxprof.cli.modules import compile_programs
        from jaxprof.findings.compare.gate import pair_programs
        from jaxprof.findings.compare.session_difference import session_difference

        first, *others = (compile_programs(target, CompileOptions(**compiling)) for target in targets)
        differences: list[SessionDifference] = []
        for target, other in zip(targets[1:], others, strict=True):
            pairs = [(ours, theirs) for ours, theirs in pair_programs(first, other) if ours and theirs]
            if not pairs:
                has = "; ".join(", ".join(run.plan.device for _, run in side) for side in (first, other))
                raise UsageError(f"{targets[0].word} and {target.word} have no device in common", f"{has}.")
            for (session_a, run_a), (session_b, run_b) in pairs:
                differences.append(session_difference(session_a, session_b, run_before=run_a.id, run_after=run_b.id))
        _print_differences(differences, form)
        return None
    refuse_without("for_devices", ("axes", "shard"))
    # Functions and workloads are run, sessions are not: a mixture cannot be compared.
    run = [target.word for target in targets if target.is_code]
    if run and len(run) < len(targets):
        kept = next(target for target in targets if not target.is_code)
        if kept.kind not in (Kind.SESSION, Kind.PROFILE):
            raise wrong_kind(kept, f"something to run, such as {run[0]},") or not_found(
                "workload, function or session", kept.word, names()
            )
        raise UsageError(
            f"{run[0]} is run, and {kept.word} is {kept.kind.value}", "Compare two that are run, or two sessions."
        )
    if run:
        return _measure(targets, form, words)
    refuse_others("does not apply to sessions, which are compared as they are", "files", "form", "no_run")
    _refuse_alone(targets)
    _compare_sessions(targets, form)
    return None


def _measure(targets: Sequence[Target], form: str, words: dict[str, Any], tried: str | None = None) -> int:
    """Measure the sides in turns, print which is faster, or that it is unknown, and return the exit code. `words`:
    parameter name → value. `tried`: the sides are changes of the one target, as `--try` takes it."""
    if form not in ("text", "json"):
        raise no_form("a comparison that is measured", form, "text", "json")
    from jaxprof.analysis.runs.ab import ab_results
    from jaxprof.base.operating_system import raise_on_signals, refuse_to_run
    from jaxprof.base.reaper import TemporaryFolder
    from jaxprof.facts.comparisons import ab_json
    from jaxprof.report.comparison import ab_lines
    from jaxprof.runner.device_choice import choose
    from jaxprof.runner.sides import read_sides

    refuse_to_run("jaxprof compare")
    with raise_on_signals(), TemporaryFolder("ab") as folder, ExitStack() as stack:
        if tried is not None:
            measured = _try_changes(targets, tried, folder, words)
        else:
            read = stack.enter_context(read_sides(targets, words))
            first = read[0][0]
            device, *_ = choose(
                [words["device"]] if words["device"] else [], first.interpreter, note, first.environment
            )
            measured = measure(read, folder, words, device=device)
    (result,) = ab_results(measured.session)
    if form == "json":
        path = str(measured.path) if measured.path is not None else None
        next_commands = [command_line("open", path, "--full")] if path is not None else []
        print_json("ab", {"path": path, **ab_json(result)}, next_commands)
    else:
        print_lines(ab_lines(result))
        print_conclusion(measured.session, measured.path, print_text)
    return measured.exit_code


def _try_changes(targets: Sequence[Target], code: str, folder: Path, words: dict[str, Any]) -> Outcome:
    """Measure the one target and the trials of its findings; with `code`, those of this finding alone."""
    from jaxprof.findings.catalogue import find_entry
    from jaxprof.findings.trials import AT_A_LINE, MOST_TRIALS, PROPOSED, propose_trials
    from jaxprof.runner.sides import plan_trials

    differing = ("revision", "environment_b", "settings_b", "precision_b", "python_b", *_COMPILED[:3], "no_run")
    refuse(differing, "does not apply to what --try changes", "Leave it out.")
    if len(targets) != 1:
        raise UsageError("--try changes one target", "jaxprof compare TARGET --try, or --try CODE behind the target.")
    if code and (code := find_entry(code, PROPOSED).code) not in PROPOSED:
        raise UsageError(f"nothing can be tried of {code}", f"--try takes {', '.join(sorted(PROPOSED))}.")
    (target,) = targets
    if target.is_code:
        # A program whose compile does not end shows nothing; what changes the whole program can be tried all the same.
        needs_findings = not code or any(name in AT_A_LINE for name in PROPOSED[code])
        original, findings = compile_run(target, folder, words, needs_findings=needs_findings)
    else:
        original, findings = plan_recorded(target, words)
    trials = propose_trials(findings, code)
    if not trials:
        shown = ", ".join(sorted({finding.code for finding in findings})) or "none"
        hint = f"Its findings: {shown}. --try CODE tries one of {', '.join(sorted(PROPOSED))} all the same."
        raise UsageError(f"no finding of {target.word} has a change that can be tried", hint)
    for trial in trials[MOST_TRIALS:]:
        note(f"note: left out, because {MOST_TRIALS} changes are tried at a time: {trial.title}")
    of_sides = side_options(words, folder, device=original.spec.device)
    assert original.interpreter is not None
    return measure_group(plan_trials(original, trials[:MOST_TRIALS], of_sides), original.interpreter, words)


def _refuse_alone(targets: Sequence[Target]) -> None:
    if len(targets) < 2:
        hint = "jaxprof compare old.py:step new.py:step measures; jaxprof sessions lists the sessions that are kept."
        raise UsageError("compare needs two sessions, or two that can be run", hint)


def _compare_sessions(targets: Sequence[Target], form: str) -> None:
    """Compare the sessions, or the runs that the targets name, with the first. Raises JaxprofError, also for one that
    is given twice, and for a run beside whole sessions."""
    from jaxprof.findings.compare.session_difference import session_difference

    with ExitStack() as stack:
        sides: list[Recorded] = []
        seen: dict[tuple[Path, str | None], str] = {}
        for target in targets:
            side = stack.enter_context(open_recorded(target, ("kernels", "memory", "compile", "steps", "trust")))
            if side.run is not None and side.run not in side.session.runs:
                raise unknown_name("run", side.run, side.session.runs)
            word = f"{target.word}:{side.run}" if side.run else target.word
            if same := seen.get((side.given.resolve(), side.run)):
                raise UsageError(
                    f"{same} and {word} are the same {'run' if side.run else 'session'}",
                    "Name two different ones; FILE:r1 FILE:r2 compares two runs of one session.",
                )
            seen[side.given.resolve(), side.run] = word
            sides.append(side)
        if len({side.run is None for side in sides}) > 1:
            raise UsageError("a run cannot be compared with a whole session", "Name a run of each: A:r1 B:r1.")
        first = sides[0]
        # Two runs of one file get the same session: only then can they have taken turns.
        sessions = {first.given.resolve(): first.session}
        differences = []
        for side in sides[1:]:
            other = sessions.get(side.given.resolve(), side.session)
            differences.append(session_difference(first.session, other, run_before=first.run, run_after=side.run))
        next_commands = [command_line("open", path) for path in dict.fromkeys(side.given for side in sides)]
        _print_differences(differences, form, next_commands)
        if form == "text":
            from jaxprof.report.conclusion import conclusion_lines, difference_conclusion

            name = lasting_name(sides[-1].given)
            print_lines(["", *conclusion_lines(difference_conclusion(differences[-1], name))])


def _print_differences(differences: list[SessionDifference], form: str, next_commands: Sequence[str] = ()) -> None:
    from jaxprof.report import WIDE, report_lines
    from jaxprof.report import comparison as report

    if form == "json":
        print_facts("comparison", {"comparisons": differences}, next_commands)
    else:
        pieces = (
            ("", *report.comparison_head(difference), *report.comparison_body(difference)) for difference in differences
        )
        print_report(islice(report_lines(chain.from_iterable(pieces), WIDE), 1, None), form)


# -- the run that `--try` changes, with the findings that propose the changes ------------------------------------------

_MOST_FINDINGS = 100


def compile_run(
    target: Target, folder: Path, words: Mapping[str, Any], *, needs_findings: bool
) -> tuple[PlannedRun, Iterable[Finding]]:
    """Return the run of a function or a workload, and what its compiled program shows; nothing, and without compiling
    it, unless that is needed. Raises JaxprofError."""
    from jaxprof.runner.device_choice import choose
    from jaxprof.runner.sides import plan_sides, sides_of

    sides, _ = sides_of([target], words, None)
    side = sides[0]
    device, *_ = choose([words["device"]] if words["device"] else [], side.interpreter, note, side.environment)
    (original,) = plan_sides(sides, side_options(words, folder, device=device))
    if not needs_findings:
        return original, ()
    from jaxprof.analysis.kernels.hlo_program import CompileOptions
    from jaxprof.cli.modules import compile_programs
    from jaxprof.findings.derive import explanation

    how = CompileOptions(
        variant=original.spec.variant,
        preset=words["preset"],
        settings=words["settings"],
        arguments=words["arguments"],
        device=device,
        python=Path(side.interpreter.path),
    )
    session, _ = compile_programs(target, how, original.environment)[-1]
    return original, explanation(session, target.word, most=_MOST_FINDINGS).findings


def plan_recorded(target: Target, words: Mapping[str, Any]) -> tuple[PlannedRun, Iterable[Finding]]:
    """Return the run that a session has, planned again, and what the session shows. Asks before anything starts that
    the session names. Raises JaxprofError."""
    from jaxprof.findings.derive import explanation
    from jaxprof.findings.trials import changeable_runs
    from jaxprof.runner.interpreter import find_interpreter
    from jaxprof.runner.rerun import choose_runs, list_starts, plan_again, refuse_fetched
    from jaxprof.session import Session, load

    fixed = ("variant", "preset", "settings", "arguments", "precision", "environment", "seed")
    refuse(fixed, "is fixed by the session", "Name the function in place of the session.")
    refuse_fetched(target.file)
    session = load(target.file, Session)
    runs = changeable_runs(choose_runs(session, target.run))
    if len(runs) != 1:
        named = ", ".join(f"{target.word}:{run.id}" for run in runs)
        raise UsageError(
            f"{target.word} has {len(runs)} compiled runs that can be changed",
            f"Name one: {named}." if runs else "jaxprof script --function NAME keeps a call; jaxprof run measures one.",
        )
    run = runs[0]
    *_, planned = plan_again(session, run.id)
    start_question(target.word, yes=words["yes"])(list_starts(session, run))
    interpreter = find_interpreter(Path(words["python"]) if words["python"] else None)
    spec = replace(planned.spec, device=words["device"] or planned.spec.device)
    # A program and its captures include the call; another run that was measured is another function.
    about = {run.id, *(each.id for each in session.runs.values() if not each.samples("run"))}
    found = explanation(session, target.word, most=_MOST_FINDINGS).findings
    return replace(planned, spec=spec, baseline=None, interpreter=interpreter), [
        finding for finding in found if about & {finding.run, *finding.also}
    ]
