"""Render an explanation: as text, and as JSON that fits a prompt.

It includes how much of the device's peak the runs reach.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jaxprof.analysis.kernels.measured import device_count, longest_kernel, whole_profile
from jaxprof.base.text import columns, json_text, safe, shorten
from jaxprof.base.units import bytes_, counted, percent, scaled, seconds
from jaxprof.events.finding import Finding
from jaxprof.facts import recorder
from jaxprof.findings import Explanation
from jaxprof.report import WIDTH, wrap
from jaxprof.session import Session

if TYPE_CHECKING:
    from jaxprof.analysis.runs.ceilings import Utilisation


def utilisation_text(use: Utilisation) -> str:
    """Return `MFU 41 % of the vendor's bf16 peak (HFU 52 %), 63 % of its device's roofline`, without what is unknown;
    an empty text if both are."""
    parts = []
    if use.mfu is not None:
        whose = "peak measured on this machine" if use.peak_is_measured else f"vendor's {'/'.join(use.rates)} peak"
        hfu = f" (HFU {percent(use.hfu)})" if use.recomputed_flops else ""
        parts.append(f"MFU {'at least ' if use.at_least else ''}{percent(use.mfu)} of the {whose}{hfu}")
    if use.roofline is not None:
        parts.append(f"{percent(use.roofline)} of its device's roofline")
    return ", ".join(parts)


_SENTENCE_LIMITS = (300, 200, 120, 70)
"""Most characters of a sentence in JSON. The first limit with which the whole explanation fits is taken."""
_MOST_CHARACTERS = 5_400
"""Upper limit for the JSON, without line breaks and indentation: some 1 500 tokens."""
_ANSWERS = 3
_SCOPES = {
    "program": "of the wall time",
    "call": "of a call",
    "compile": "of the compile",
    "profile": "of the profile",
    "kernels": "of the kernels' time",
    "steps": "of the steps",
    "module": "of a call",
}


def answers(explanation: Explanation) -> list[str]:
    """Return what is known of the whole, one line each: how it ended, what costs most, how sure that is."""
    session = explanation.session
    if explanation.job is not None:
        from jaxprof.report.hosts import answer_lines

        lines = answer_lines(explanation.job)
    else:
        assert session is not None
        lines = list(_session_lines(session, explanation))[:_ANSWERS]
    unseen = session.unseen if session is not None and session.deserted else ()
    lines = [*(f"note: {text}" for text in unseen), *lines]
    if explanation.subject in ("nothing", "message"):
        return lines
    from jaxprof.report.conclusion import cost_and_certainty

    cost, certainty = cost_and_certainty(explanation)
    return [*lines, *f"costs most: {cost}".split("\n"), f"how sure: {certainty}"]


def _session_lines(session: Session, explanation: Explanation) -> Iterator[str]:
    if explanation.subject == "program":
        from jaxprof.findings.program_result import program_result
        from jaxprof.report.program_words import title as program_title

        for run in session.programs:
            yield program_title(program_result(session, run.id))
        yield from _longest_kernel_line(session)
    elif explanation.subject == "profile":
        kernels = whole_profile(session)
        if not kernels:
            yield "no kernels were recorded"
            return
        devices = device_count(kernels)
        took = seconds(sum(kernel.self_seconds for kernel in kernels) / devices)
        of = f", the mean of {devices} devices, as is each time that names no device" if devices > 1 else ""
        yield f"{counted(len(kernels), 'kernel')} took {took}{of}"
        yield from _longest_kernel_line(session)
        from jaxprof.analysis.runs.ceilings import utilisations

        for step in utilisations(session):
            yield f"a step of {seconds(step.seconds)}: {utilisation_text(step) or f'MFU unknown: {step.reason}'}"
    elif explanation.subject == "message":
        yield "a message of XLA: it ran out of memory"
    elif explanation.subject != "comparison":
        from jaxprof.analysis.runs.ceilings import of_call
        from jaxprof.analysis.runs.run_result import results
        from jaxprof.facts.runs import interval_beside
        from jaxprof.report.runs import versus_sentence

        for result in results(session):
            run = result.run
            if result.summary is not None:
                baseline = session.runs.get(run.plan.baseline)
                versus = versus_sentence(result, baseline.as_baseline) if baseline is not None else ""
                speedup = f", {versus}" if versus else ""
                interval = interval_beside(result)
                use = of_call(session, run)
                reached = f"; {words}" if use is not None and (words := utilisation_text(use)) else ""
                yield f"{run.id} {run.label}: {seconds(result.summary.median)}{interval} a call{speedup}{reached}"
            elif run.plan.how == "compile" and run.status == "ok":
                yield f"{run.id} {run.label}: compiled, and not run"
        if not session.runs:
            yield "no run was recorded"


def _longest_kernel_line(session: Session) -> Iterator[str]:
    longest = longest_kernel(session)
    if longest is not None:
        run, kernel = longest
        source = kernel.kernel.source if kernel.kernel is not None else None
        details = (
            kernel.kernel.kind if kernel.kernel is not None else "",
            source.short if source is not None else "",
            scaled(kernel.flops_per_second, "FLOP/s") if kernel.flops_per_second else "",
            scaled(kernel.bytes_per_second, "B/s") if kernel.bytes_per_second else "",
        )
        about = f" ({', '.join(filter(None, details))})" if any(details) else ""
        yield f"longest kernel: {run} {kernel.name}{about}, {percent(kernel.share)} of the time of all kernels"


def cost_text(finding: Finding) -> str:
    """Return `about 6.0 s (5.6 s to 6.4 s), 30 % of the wall time`, with what is saved if clearly less."""
    if finding.seconds is None:
        of_what = "of memory" if finding.held else "a call"
        return f"{bytes_(finding.bytes)} {of_what}" if finding.bytes else "cost unknown"
    word = "about " if finding.estimate else ""
    if finding.at_most:
        word = "up to "
    ends = [seconds(end, 2) for end in (finding.low, finding.high) if end is not None]
    between = f" ({ends[0]} to {ends[1]})" if len({*ends}) == 2 else ""
    share = f", {percent(finding.share)} {_SCOPES[finding.scope]}" if finding.share is not None else ""
    if finding.saves_part is not None:
        word = f"saves about {seconds(finding.saves_part, 2)} of {'up to ' if finding.at_most else ''}"
    return f"{word}{seconds(finding.seconds, 2)}{between}{share}"


def location_or_kernel(finding: Finding) -> str:
    """Return `train.py:91`, or the kernel with the most weight if no line is known; an empty text without either."""
    if finding.where is not None:
        return finding.where.short(finding.directory)
    return finding.kernels[0] if finding.kernels else ""


def explanation_lines(explanation: Explanation, *, width: int = WIDTH) -> Iterator[str]:
    for line in answers(explanation):
        yield from wrap(line, first="", hang=4, width=width)
    leading = explanation.leading
    if leading is not None:
        yield from _abstention_lines(explanation, 0, width)
    elif not explanation.findings:
        yield explanation.nothing_found
    commands = list(dict.fromkeys(finding.verify for finding in explanation.findings if finding.verify))
    # The command of a job shows a process, and verifies nothing.
    label = "look at:" if explanation.subject == "job" else f"verify{from_file_text(explanation, ' with a command ')}:"
    for number, finding in enumerate(explanation.findings, start=1):
        head = f"{number}. {finding.code}  {cost_text(finding)}"
        named = finding.where is not None or explanation.subject == "program"  # the only one, by its title
        head += "" if named or not finding.run else f"  {finding.run}"
        source = "  ".join(part for part in (location_or_kernel(finding), safe(finding.code_line)) if part)
        if columns(head) + 2 + columns(source) <= width:
            yield safe(f"{head}  {source}".rstrip())
        else:
            yield from wrap(head, first="", hang=3, width=width)
            yield from wrap(source, first="   ", hang=2, width=width)
        yield from wrap(finding.message, first="   ", width=width)
        yield from wrap(finding.fix, first="   → ", width=width)
        if len(commands) > 1 and finding.verify:
            yield from wrap(f"{label} {finding.verify}", first="   ", hang=2, width=width)
    if explanation.left_out:
        yield f"   and {explanation.left_out} more: --full has them"
    if len(commands) == 1:
        yield from wrap(f"{label} {commands[0]}", first="", hang=8, width=width)
    for number in range(leading is not None, len(explanation.abstentions)):
        yield from _abstention_lines(explanation, number, width)


def _abstention_lines(explanation: Explanation, number: int, width: int) -> Iterator[str]:
    """Yield what is unknown, and the command that would show it, unless the same one follows."""
    abstention, *following = explanation.abstentions[number:]
    yield from wrap(abstention.reason, first="? ", hang=1, width=width)
    if abstention.command and all(abstention.command != each.command for each in following[:1]):
        of_file = from_file_text(explanation)
        yield from wrap(f"{of_file}{': ' if of_file else ''}{abstention.command}", first="   ", hang=2, width=width)


def from_file_text(explanation: Explanation, before: str = "") -> str:
    """Return `from the file`, after `before`, if the commands of an explanation have words of a file."""
    return f"{before}from the file" if explanation.from_file and explanation.subject != "job" else ""


_SENTENCES = {"findings": ("message", "fix"), "unknown": ("reason",)}


def explanation_json(explanation: Explanation, *, whole: bool = False) -> dict[str, Any]:
    """Return the documented form (docs/json.md), sentences cut and numbers rounded, unless it is wanted `whole`; no row
    is left out."""
    from jaxprof.facts.explanations import EXPLANATION, ExplainedRow
    from jaxprof.report.envelope import Bounds

    data: dict[str, Any] = recorder(EXPLANATION)(ExplainedRow(explanation, answers(explanation)))
    if whole:
        return data
    data = Bounds("explanation", sys.maxsize).cut(data)
    for longest in _SENTENCE_LIMITS:
        cut = {
            key: [row | {name: row[name] and shorten(row[name], longest) for name in names} for row in data[key]]
            for key, names in _SENTENCES.items()
        }
        if len(json_text(data | cut)) <= _MOST_CHARACTERS:
            break
    return data | cut
