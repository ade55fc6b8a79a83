"""Put the page together in one file: its sections (what to do first, the figures it rests on, then the texts), the data
of the charts, the style and the script, under a strict policy.

The Content-Security-Policy allows this style and this script by their hashes, and nothing else. Even if a name in a
session got through as markup by mistake, it could neither run nor fetch anything.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import PurePath
from typing import Any

from jaxprof.findings.derive import explanation
from jaxprof.report.envelope import encode_json
from jaxprof.report.explain import answers, cost_text, location_or_kernel
from jaxprof.report.page.elements import Section, command, details_element, facts, heading, paragraph, section, text
from jaxprof.report.page.sections import capture_sections, programs_section, runs_section
from jaxprof.session import Session

_TEXTS = ("hlo", "stablehlo", "jaxpr")


def sections(session: Session, name: str) -> Iterator[Section]:
    """Yield the sections of the page, without empty ones. `name`: what commands call the session."""
    yield _answer(session, name)
    yield from programs_section(session)
    yield from runs_section(session)
    yield from capture_sections(session)
    header, reported = session.header, session.environment
    pairs = {
        "jaxprof": header.jaxprof,
        "recorded": header.created,
        "host": header.host,
        "command": " ".join(header.command),
    }
    if reported is not None:
        pairs |= {name: getattr(reported, name) or "" for name in ("jax", "jaxlib", "numpy", "python")}
        for device in reported.devices:
            pairs[str(device.get("id"))] = str(device.get("kind") or device.get("platform") or "")
    content = [*facts((name, value) for name, value in pairs.items() if value)]
    if reported is not None and reported.settings:
        content += [heading("Settings"), *facts((name, str(value)) for name, value in reported.settings.items())]
    if header.environment:
        content += [heading("Machine"), *facts((name, str(value)) for name, value in header.environment.items())]
    content += map(paragraph, session.notices)
    yield Section("environment", "Environment", content)
    texts = [(run, name) for name in _TEXTS for run in session.runs.values() if name in run.texts]
    shown = [
        details_element(f"{run.id} {run.label}: {name}", session.text(run.id, name) or "") for run, name in texts[:12]
    ]
    if len(texts) > len(shown):
        shown.append(paragraph(f"and {len(texts) - len(shown)} more texts: jaxprof hlo prints them"))
    yield from section("hlo", "HLO", shown)


def _answer(session: Session, name: str) -> Section:
    explained = explanation(session, name)
    content = [paragraph(line, "lead") for line in answers(explained)]
    if explained.leading is not None:
        content += [
            paragraph(explained.leading.reason),
            *command(explained.leading.command, from_file=explained.leading.from_file),
        ]
    for finding in explained.findings:
        source = " ".join(part for part in (location_or_kernel(finding), finding.code_line) if part)
        content += [
            '<div class="finding">',
            heading(f"{finding.code}: {cost_text(finding)}", 4),
            paragraph(source, "place") if source else "",
            paragraph(finding.message),
            paragraph(f"→ {finding.fix}"),
            *command(finding.verify, from_file=finding.from_file),
            "</div>",
        ]
    if explained.left_out:
        content.append(paragraph(f"and {explained.left_out} more findings of less cost", "note"))
    if session.runs and not explained.findings and explained.leading is None:
        content.append(paragraph("No finding above its threshold."))
    if unknown := explained.abstentions[explained.leading is not None :]:
        content.append(heading("What is not known"))
        for abstention in unknown:
            content.append(paragraph(abstention.reason))
            content += command(abstention.command, from_file=abstention.from_file)
    if explained.from_file:
        content.append(paragraph("This page was made from a file that this machine did not record itself.", "note"))
    return Section("answer", "What to do first", content)


_STYLES = ("uPlot.min.css", "page.css")
_SCRIPTS = ("uPlot.iife.min.js", "units.js", "tables.js", "plots.js", "viewport.js", "icicle.js", "page.js")
"""Files that are joined into one script, in this order: each uses those before it."""


def to_page(session: Session, name: str) -> str:
    """Return the whole file. `name`: what commands call the session."""
    charts: list[dict[str, Any]] = []
    shown = list(sections(session, name))
    style, script = _asset_text(*_STYLES), _asset_text(*_SCRIPTS)
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    title = " ".join(dict.fromkeys(run.plan.workload for run in session.runs.values()))
    heading = f"{title[:80] or 'jaxprof'} · {session.header.session[:8]}"
    header, reported = session.header, session.environment
    details = [header.created, header.host, session.state_words]
    details += [f"jax {reported.jax}"] if reported is not None and reported.jax else []
    links = "".join(f'<a href="#{each.anchor}">{text(each.title)}</a>' for each in shown)
    subtitle = text(" · ".join(filter(None, details)))
    program, *words = header.command or ["jaxprof"]
    command = text(" ".join([PurePath(program).name, *words]))
    return "".join(
        (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n',
            '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n',
            f'<link rel="icon" href="data:,">\n<title>{text(heading)}</title>\n<style>{style}</style>\n</head>\n',
            "<body>\n",
            f"<header><h1>{command}</h1><p>session {text(header.session)} · {subtitle}</p></header>\n"
            f'<nav aria-label="Sections">{links}</nav>\n',
            '<noscript><p class="note">The tables have every figure; the charts need JavaScript.</p></noscript>\n',
            "<main>\n",
            *(each.html(charts) for each in shown),
            f'</main>\n<script type="application/json" id="charts">{json_in_page(charts)}</script>\n',
            f"<script>{script}</script>\n</body>\n</html>\n",
        )
    )


def json_in_page(data: Any) -> str:
    """Return `data` as JSON that an HTML parser leaves alone inside a script element: `<`, `>` and `&` are escaped, and
    so is every character that a terminal or JavaScript (U+2028) would act on. NaN and infinity are null."""
    return encode_json(data).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _asset_text(*names: str) -> str:
    folder = files("jaxprof.report") / "html_assets"
    return "\n".join((folder / name).read_text(encoding="utf-8").strip() for name in names)


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
