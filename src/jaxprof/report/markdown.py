"""A session as Markdown, for a pull request or a page of notes: one table a workload, warnings under it."""

from __future__ import annotations

from collections.abc import Iterator

from jaxprof.report.escape import markdown
from jaxprof.report.groups import Group, environment, groups, parameters_text
from jaxprof.report.outcome import outcome
from jaxprof.report.recording.markdown import program_markdown
from jaxprof.report.text import break_even_text, check_text, interval_text, speedup_text
from jaxprof.results import RunResult
from jaxprof.results.programs.derive import programs
from jaxprof.session import Session
from jaxprof.units import seconds


def to_markdown(session: Session, *, live: bool = False) -> str:
    """The report, without a line break at its end."""
    header = session.header
    found = environment(session)
    versions = f", jax {found.jax}, NumPy {found.numpy}" if found else ""
    lines = [markdown(f"jaxprof session {header.session}, {header.created}, {header.host}{versions}")]
    for run in programs(session):
        lines += ["", *program_markdown(session, run, live=live)]
    for group in groups(session):
        lines += ["", *_group(session, group, live)]
    return "\n".join(lines)


def _group(session: Session, group: Group, live: bool) -> Iterator[str]:
    parameters = parameters_text(group.parameters)
    yield f"### {markdown(group.workload)}{' (' + markdown(parameters) + ')' if parameters else ''}"
    yield ""
    yield "| variant | device | compile | first run | median | 95 % | speed-up | pays off after | check |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|---|"
    for one in group.runs:
        yield "| " + " | ".join(markdown(cell) for cell in _cells(session, one, live)) + " |"
    notes = dict.fromkeys(
        f"- {markdown(group.label(one.run))}: {markdown(warning.message)} {markdown(warning.advice)}".rstrip()
        for one in group.runs
        for warning in one.warnings
    )
    if notes:
        yield ""
        yield from notes


def _cells(session: Session, found: RunResult, live: bool) -> tuple[str, ...]:
    plan, ended = found.run.plan, outcome(session, found.run, live=live)
    if ended.status != "ok" and found.summary is None:
        reason = f"{ended.status}: {ended.error}"
        return (plan.variant, plan.device, *("-",) * 6, reason)
    return (
        plan.variant,
        plan.device,
        seconds(found.phase_seconds.get("compile")),
        seconds(found.phase_seconds.get("first_run")),
        seconds(found.summary.median if found.summary else None),
        interval_text(found),
        speedup_text(found),
        break_even_text(found),
        check_text(found),
    )
