"""What stands on the page, in this order: what to do first, the figures that it rests on, then the texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from jaxprof.analysis.ab import ab_results
from jaxprof.analysis.programs.derive import program_result, programs
from jaxprof.report.page.elements import Charts, Section, facts, folded, heading, listed, paragraph, text
from jaxprof.report.page.of_captures import (
    compile_section,
    kernels_section,
    memory_section,
    steps_section,
    trust_section,
)
from jaxprof.report.page.of_programs import programs_section
from jaxprof.report.page.of_runs import runs_section
from jaxprof.report.recording.words import remark, saving, verdict
from jaxprof.report.runs import environment, failed, groups, outcome, rows_of_group, verdicts_text
from jaxprof.report.sides import verdict_line
from jaxprof.session import Session

_TEXTS: Final = ("hlo", "stablehlo", "jaxpr")
"""Texts that are folded at the end of the page, by their names in a run."""
_TEXTS_KEPT: Final = 12


def sections(session: Session, charts: Charts, *, live: bool = False) -> Iterator[Section]:
    """The sections that have something to say."""
    yield _answer(session, live)
    yield from programs_section(session, charts, live=live)
    yield from runs_section(session, charts, live=live)
    yield from kernels_section(session, charts)
    yield from steps_section(session, charts)
    yield from compile_section(session, charts)
    yield from memory_section(session, charts)
    yield from trust_section(session)
    yield Section("environment", "Environment", list(_environment(session)))
    yield from _texts(session)


def _answer(session: Session, live: bool) -> Section:
    """What the session says, in sentences: failures, what bounds a program, verdicts, and what to change."""
    content: list[str] = []
    for run in failed(session, live=live):
        ended = outcome(session, run, live=live)
        if ended.status not in ("running", "queued"):
            content.append(paragraph(f"{run.label}: {ended.status}. {ended.error}. {ended.advice}".rstrip(". "), "bad"))
    for run in programs(session):
        program = program_result(session, run.id)
        content += [paragraph(bounds, "lead")] if (bounds := verdict(program)) else []
        content += [
            _finding(f"{remark(program, finding)}{f'; {saving(finding)}' if saving(finding) else ''}", finding.advice)
            for finding in program.findings
        ]
    compared = [verdict_line(versus) for comparison in ab_results(session) for versus in comparison.versus]
    content += [paragraph(line, "lead") for line in compared]
    for group in groups(session):
        if not group.comparison and (verdicts := verdicts_text(rows_of_group(session, group, live=live))):
            content.append(paragraph(f"{group.workload}: {verdicts}", "lead"))
    if not session.runs:
        content.append(paragraph("No run was recorded."))
    elif not content:
        content.append(paragraph("Nothing stands out. The figures follow."))
    return Section("answer", "What stands out", content)


def _finding(message: str, advice: str) -> str:
    return f'<div class="finding"><p>{text(message)}</p><p class="advice">{text(advice)}</p></div>'


def _environment(session: Session) -> Iterator[str]:
    header, reported = session.header, environment(session)
    pairs = [
        ("jaxprof", header.jaxprof),
        ("recorded", header.created),
        ("host", header.host),
        ("command", " ".join(header.command)),
    ]
    if reported is not None:
        pairs += [(name, getattr(reported, name) or "") for name in ("jax", "jaxlib", "numpy", "python")]
        pairs += [
            (str(device.get("id")), str(device.get("kind") or device.get("platform") or ""))
            for device in reported.devices
        ]
    yield from facts((name, value) for name, value in pairs if value)
    if reported is not None and reported.settings:
        yield heading("Settings")
        yield from facts((name, str(value)) for name, value in reported.settings.items())
    if header.environment:
        yield heading("Machine")
        yield from facts((name, str(value)) for name, value in header.environment.items())
    yield from listed(session.notices, "notes")


def _texts(session: Session) -> Iterator[Section]:
    found = [(run, name) for name in _TEXTS for run in session.runs.values() if name in run.texts]
    shown = [
        folded(f"{run.id} {run.label}: {name}", session.text(run.id, name) or "") for run, name in found[:_TEXTS_KEPT]
    ]
    if len(found) > len(shown):
        shown.append(paragraph(f"and {len(found) - len(shown)} more texts: jaxprof hlo prints them"))
    if shown:
        yield Section("hlo", "HLO", shown)
