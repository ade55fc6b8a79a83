"""What stands on the page, in this order: what to do first, the figures that it rests on, then the texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from jaxprof.analysis.explain.derive import explanation
from jaxprof.analysis.explain.model import RankedFinding
from jaxprof.facts.sessions import environment
from jaxprof.report.explain import answers, cost_text, place_text
from jaxprof.report.page.elements import Charts, Section, command, facts, folded, heading, listed, paragraph
from jaxprof.report.page.of_captures import (
    compile_section,
    kernels_section,
    memory_section,
    steps_section,
    trust_section,
)
from jaxprof.report.page.of_programs import programs_section
from jaxprof.report.page.of_runs import runs_section
from jaxprof.session import Session

_TEXTS: Final = ("hlo", "stablehlo", "jaxpr")
"""Texts that are folded at the end of the page, by their names in a run."""
_TEXTS_KEPT: Final = 12


def sections(session: Session, charts: Charts, name: str, *, live: bool = False) -> Iterator[Section]:
    """The sections that have something to say."""
    yield _answer(session, name)
    yield from programs_section(session, charts, live=live)
    yield from runs_section(session, charts, live=live)
    yield from kernels_section(session, charts)
    yield from steps_section(session, charts)
    yield from compile_section(session, charts)
    yield from memory_section(session, charts)
    yield from trust_section(session)
    yield Section("environment", "Environment", list(_environment(session)))
    yield from _texts(session)


def _answer(session: Session, name: str) -> Section:
    """What to do first, as `jaxprof explain` says it. `name` is what its commands call the session."""
    explained = explanation(session, name)
    content = [paragraph(line, "lead") for line in answers(explained)]
    content += [html for finding in explained.findings for html in _finding(finding)]
    if explained.left_out:
        content.append(paragraph(f"and {explained.left_out} more findings of less cost", "note"))
    if session.runs and not explained.findings:
        content.append(paragraph("No finding above its threshold."))
    if explained.abstentions:
        content.append(heading("What is not known"))
        for abstention in explained.abstentions:
            content.append(paragraph(abstention.reason))
            content += command(abstention.command)
    return Section("answer", "What to do first", content)


def _finding(finding: RankedFinding) -> Iterator[str]:
    place = " ".join(part for part in (place_text(finding), finding.code_line) if part)
    yield '<div class="finding">'
    yield heading(f"{finding.code}: {cost_text(finding.cost)}", 4)
    yield paragraph(place, "place") if place else ""
    yield paragraph(finding.message)
    yield paragraph(f"→ {finding.fix}")
    yield from command(finding.verify)
    yield "</div>"


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
