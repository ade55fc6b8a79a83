"""Plan runs of a kept session once more, from the session's records: for `jaxprof run --from` and for the app.

A session is a text file that anybody can edit, so nothing in it proves that it is the user's own: neither the host name
nor the folder in which it lies. What this process measured itself, and holds in memory, needs no question; everything
else that is started from a file is shown and confirmed first. A comparison is measured again by its own command.

Each run is planned beside a fresh measurement of its baseline, because a speed-up computed from times of different
hours means little. A user's function is found by its file or module, and its arguments are made from their specs in the
session. An error reports it if the session lacks these.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from jaxprof.base.errors import UsageError, unknown_name
from jaxprof.base.text import REDACTED
from jaxprof.findings import comparison_command
from jaxprof.runner.planning import PlannedRun
from jaxprof.session import Run, Session
from jaxprof.session.files import is_fetched
from jaxprof.workloads import names

NOT_AGAIN = {
    "program": ("is a program", "jaxprof script FILE ARGS records a program."),
    "imported": ("was read from a profile: there is nothing to run", "Run its program again to record another one."),
    "compile": ("was compiled and not run", "jaxprof hlo TARGET compiles it again."),
}
"""Runs that cannot be repeated from a session, by how they were made: what they are instead, and what to do."""


class NotAskedFor(UsageError):
    """Nobody confirmed what a file would start."""


Ask = Callable[[Sequence[str]], None]
"""Takes a line for each thing that would be started. Raises NotAskedFor if the answer is no."""


def refuse_fetched(*paths: str | Path) -> None:
    """Raise UsageError for a path in the folder of files fetched from a URL: a session, a program or its folder."""
    if any(is_fetched(Path(path)) for path in paths):
        raise UsageError(
            "files fetched from a URL are never run", "Read the file first, then copy it to a folder of your own."
        )


def plan_again(session: Session, wanted: str = "") -> list[PlannedRun]:
    """Plan all runs of `session` that can be repeated, or those that match `wanted` (a run's id, its workload, its
    function), each after its baseline. Raises UsageError if there is no such run, or if a named one (or every one)
    cannot be repeated."""
    made: dict[str, PlannedRun] = {}
    refused: list[UsageError] = []
    for run in choose_runs(session, wanted):
        try:
            # first what it is compared with; a baseline has none of its own: in a file two runs can name each other
            first = session.runs.get(run.plan.baseline)
            if first is not None and first.id not in made:
                made[first.id] = _plan_again(session, first, None)
            if run.id not in made:
                made[run.id] = _plan_again(session, run, made[first.id] if first is not None else None)
        except UsageError as error:
            refused.append(error)
    if refused and (wanted or not made):
        raise refused[0]
    return list(made.values())


def choose_runs(session: Session, wanted: str) -> list[Run]:
    """Return the runs that `wanted` names; all of them if it is empty. Raises UsageError if there is none."""
    chosen = [
        run
        for run in session.runs.values()
        if not wanted or wanted in (run.id, run.plan.workload, run.plan.workload.rpartition(":")[2])
    ]
    if not chosen:
        names = {name: None for run in session.runs.values() for name in (run.id, run.plan.workload)}
        raise unknown_name("run", wanted, names) if names else UsageError("the session has no runs")
    return chosen


def list_starts(session: Session, run: Run) -> list[str]:
    """Return what running `run` and its baseline again would start that is not part of jaxprof, a line each, from the
    records alone; nothing for a built-in workload. No line is repeated, and each says if the session was recorded
    elsewhere."""
    lines = []
    for each in (session.runs.get(run.plan.baseline), run):
        if each is not None and each.plan.target not in names():
            given = [word for argument in each.plan.arguments for word in ("--arg", argument)]
            call, argv = shlex.join([each.plan.target or each.plan.workload, *given]), _argv(session, each)
            with_argv = f" with sys.argv {shlex.join(argv)}" if argv else ""
            lines.append(f"{call}{with_argv}, in {os.getcwd()}{other_host(session)}")
    return list(dict.fromkeys(lines))


def other_host(session: Session) -> str:
    """Return `, not recorded on this machine (it names node1)`; empty for a session that was."""
    host = f" (it names {session.header.host})" if session.header.host else ""
    return f", not recorded on this machine{host}" if session.from_file else ""


def _plan_again(session: Session, run: Run, baseline: PlannedRun | None) -> PlannedRun:
    """Plan a run again as it was. Raises UsageError for one that cannot be repeated."""
    plan = run.plan
    if plan.side:
        again = comparison_command(session)
        hint = f"Its command does that: {again}" if again else "jaxprof compare A B does that."
        raise UsageError(f"{plan.workload} is side {plan.side} of a comparison, which is measured as a whole", hint)
    if plan.how in NOT_AGAIN:
        what, hint = NOT_AGAIN[plan.how]
        raise UsageError(f"{plan.workload} {what}", hint)
    is_built_in = plan.workload in names()
    if not is_built_in and not plan.target:
        messages = [warning.message for warning in run.warnings if warning.code == "cannot_repeat"]
        why = messages[0].partition(": ")[2] if messages else "its session does not say where the function is"
        raise UsageError(f"{plan.workload} cannot be run again: {why}", "Run it from its file: jaxprof run FILE:NAME.")
    if not is_built_in:
        location = plan.target.rpartition(":")[0]
        refuse_fetched(location)
        if location.endswith(".py") and not Path(location).is_file():
            raise UsageError(
                f"{plan.workload} cannot be run again, because there is no file {location}",
                "It was recorded on another machine, or the file was moved: jaxprof run FILE:NAME runs it from "
                "elsewhere.",
            )
    spec = replace(
        plan,
        target=plan.workload if is_built_in else plan.target,
        baseline="",
        inputs_from=baseline.spec.target if plan.inputs_from and baseline is not None else "",
        budget_seconds=plan.timing_seconds,
        argv=_argv(session, run),
        check=plan.check and (run.check is not None or run.status != "ok"),
    )
    return PlannedRun(spec=spec, baseline=baseline)


def _argv(session: Session, run: Run) -> tuple[str, ...]:
    """Return `sys.argv` for the run. Raises UsageError if the session redacted a part of it, or an argument, because
    `[redacted]` would be passed as an argument."""
    argv = run.plan.argv
    if not argv:  # those of the session's program, unless it is a notebook, whose arguments are its kernel's
        programs = [each.program.started for each in session.runs.values() if each.program is not None]
        argv = next((tuple(each.argv) for each in programs if each is not None and each.how != "cell"), ())
    values = (value for value in run.plan.parameters.values() if isinstance(value, str))
    if any(REDACTED in word for word in (*argv, *run.plan.arguments, *values)) and run.plan.target not in names():
        raise UsageError(
            f"{run.plan.workload} was started with a possible secret, which the session does not hold",
            "Start its program again with its arguments: jaxprof script FILE ARGS.",
        )
    return argv
