"""The preview beside the list of Start: a session or job in a few lines, or a workload down to its source code.

No session is folded for this, but that of a program under the cursor, in a thread: what it costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING

from textual.content import Content

from jaxprof.base import units
from jaxprof.base.text import safe
from jaxprof.events.base import with_failures
from jaxprof.facts import Facts, column
from jaxprof.report import Table
from jaxprof.report.runs import parameters_text
from jaxprof.session import Session
from jaxprof.tui.kit.drawing import cell, hang, mark, wrap_content
from jaxprof.tui.kit.format import moment
from jaxprof.tui.kit.python_source import highlight_python
from jaxprof.tui.kit.table_columns import table_lines

if TYPE_CHECKING:
    from jaxprof.events import RunPlanned
    from jaxprof.session import Entry
    from jaxprof.tui.home.plan_options import HomeOptions
    from jaxprof.workloads.model import WorkloadInfo

_NAME = 12
"""Columns of the names of the facts."""
_MOST_FOLDED_BYTES = 16 << 20
"""Largest session that is folded for a preview: about two seconds in a thread."""


# -- sessions -------------------------------------------------------------------------------------------------


def cost_of(entry: Entry) -> str:
    """Return what costs most in a recorded program. For threads: folds the session. Raises FileRefusedError."""
    from jaxprof.report.conclusion import longest_program_cost
    from jaxprof.session import load

    return longest_program_cost(load(entry.path, Session))[0]


def has_cost(entry: Entry) -> bool:
    """Return whether a session is that of a program, and short enough to be folded for a preview."""
    recorded = any(plan.spec.how == "program" for plan in entry.planned)
    return recorded and entry.job is None and not entry.running and entry.size_bytes <= _MOST_FOLDED_BYTES


def session_summary(entry: Entry, open_path: Path | None, width: int, cost: str = "") -> list[Content]:
    """Return the summary of `entry`; `open_path` is the session that is open, `cost` what costs most, if known."""
    lines = wrap_content(Content.styled(safe(entry.name), "bold"), width)
    if entry.problem:
        return [
            *lines,
            *wrap_content(Content.styled(safe(entry.problem), "$warning"), width),
            *_fact("file", str(entry.path), width, "$text-muted"),
        ]
    header = entry.header
    if header is not None:
        host = header.host if entry.job is None else ", ".join(entry.job.hosts)
        if entry.process_count > 1 and entry.job is None:
            host += f", process {entry.process_index} of {entry.process_count}"
        recorded = f"{moment(header.wall_seconds)} on {host}, jaxprof {header.jaxprof}"
        lines += _fact("recorded", recorded, width, "$text-muted")
        lines += _fact("command", " ".join(header.command), width, "$text-muted")
    lines += _fact("file", f"{entry.path} · {units.bytes_(entry.size_bytes)}", width, "$text-muted")
    words = []
    if entry.path == open_path:
        words.append("open now")
    if entry.live:
        words.append("being written")
    elif entry.complete:
        how = with_failures(entry.state, (run.status for run in entry.closed))
        words.append(how if entry.job is None else "every session in this folder is complete")
    else:
        who = "its writer" if entry.job is None else "the writer of a session"
        words.append(f"interrupted: {who} did not close it; the data written until then is readable")
    lines += _fact("state", ", ".join(words), width, "$text-muted")
    lines += _fact("costs most", cost, width)
    lines.append(Content(""))
    if (job := entry.job) is not None:
        ended = ", ".join(f"{count} {status}" for status, count in job.by_status.items())
        missing = f"; {job.missing} of {job.count} have no session in this folder" if job.missing else ""
        lines += _fact("processes", f"{len(job.processes)}: {ended}{missing}", width, "$text-muted")
        return [
            *lines,
            *wrap_content(Content.styled("Enter shows its processes beside each other.", "$text-muted"), width),
        ]
    lines += _runs(entry, width)
    if not entry.planned:
        lines.append(Content.styled("This session contains no runs.", "$text-muted"))
    return lines


def _runs(entry: Entry, width: int) -> Iterator[Content]:
    closed = {event.run: event for event in entry.closed}

    def status(plan: RunPlanned) -> str:
        return closed[plan.run].status if plan.run in closed else "running" if entry.live else units.UNKNOWN

    columns: Facts[RunPlanned] = (
        column("workload", lambda plan: plan.spec.workload if len(entry.workloads) > 1 else ""),
        column("variant", lambda plan: plan.spec.variant),
        column("device", lambda plan: plan.spec.device),
        column("median", lambda plan: closed[plan.run].median_seconds if plan.run in closed else None, units.seconds),
        column("status", status),
        column("parameters", lambda plan: parameters_text(plan.spec.parameters), gives_way=True),
    )
    if runs := [plan for plan in entry.planned if plan.spec.how != "program"]:
        yield from table_lines(Table(columns, runs), width)
    for error in dict.fromkeys(event.error for event in entry.closed if event.error):
        yield from hang(Content("   "), error, width, "$error")


# -- workloads -----------------------------------------------------------------------------------------------


def last_medians(
    workload: str, parameters: Mapping[str, object], entries: Iterable[Entry], host: str
) -> dict[str, str]:
    """Return the newest median of each variant with these parameters on this `host`; `entries` come newest first."""
    last: dict[str, str] = {}
    for entry in entries:
        planned = {plan.run: plan.spec for plan in entry.planned}
        for closed in reversed(entry.closed):
            spec = planned.get(closed.run)
            if spec is None or closed.median_seconds is None or entry.header is None or entry.header.host != host:
                continue
            if (spec.workload, spec.parameters) == (workload, parameters):
                where = "" if spec.device == "cpu:0" else spec.device
                last.setdefault(spec.variant, f"last {units.seconds(closed.median_seconds)} {where}".rstrip())
    return last


def description(info: WorkloadInfo, choices: HomeOptions, entries: Sequence[Entry], width: int) -> Iterator[Content]:
    """Yield what a workload is and how it would run; `entries` are the kept sessions, the newest first."""
    last = last_medians(info.name, choices.parameters(info), entries, gethostname())
    yield from (*hang(Content(""), info.title, width, "bold"), Content(""))
    none = "" if info.parameters else "none"
    yield Content.assemble(_title(f"{'Parameters':<{_NAME}}"), (none, "$text-muted"))
    values = choices.parameters(info)
    by_hand = choices.of(info.name).settings
    for parameter in info.parameters:
        style = "bold $accent" if parameter.name in by_hand else "bold"
        head = Content.assemble(
            (f"  {safe(parameter.name)} = ", "$text-muted"),
            (safe(units.value_text(values.get(parameter.name))), style),
            "  ",
        )
        yield from hang(head, parameter.description, width, "$text-muted")
    chosen = choices.of(info.name)
    yield from _fact("Sweep", chosen.sweep, width, "bold $accent")
    yield from _fact("Arguments", ", ".join(chosen.arguments), width)
    yield from (Content(""), _title("Variants"))
    name_width = min(24, max(8, *(len(variant.name) for variant in info.variants)))
    included = choices.variants_of(info)
    for variant in info.variants:
        words = [variant.description or variant.how, "the baseline" if variant.name == info.baseline else ""]
        line = Content.assemble("  ", mark(variant in included), " ", cell(variant.name, name_width), "  ")
        tail = Content.styled(f" {safe(last[variant.name])} ", "$success") if variant.name in last else Content("")
        room = width - line.cell_length - tail.cell_length
        yield line + (cell(" · ".join(filter(None, words)), room, "$text-muted") if room > 4 else "") + tail
    yield Content("")
    yield from _fact("Yours", info.origin if info.origin != "built in" else "", width)
    yield from hang(Content(""), " ".join(info.description.split()), width)
    for variant in info.variants:
        yield from (Content(""), _title(f"Source of {safe(variant.name)}"))
        yield from highlight_python(variant.source or "# not available here").split("\n", allow_blank=True)


def _title(words: str) -> Content:
    return Content.styled(words, "bold $primary")


def _fact(name: str, text: str, width: int, style: str = "") -> list[Content]:
    return hang(_title(f"{name:<{_NAME}}"), safe(text), width, style) if text else []
