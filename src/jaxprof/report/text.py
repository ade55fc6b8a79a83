"""A session as plain text, 80 columns wide: what `print(session)`, `jaxprof show` and `jaxprof run` give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxprof.report.groups import Group, environment, groups, parameters_text, published
from jaxprof.report.outcome import outcome
from jaxprof.report.recording.text import program_lines
from jaxprof.report.sweep_text import sweep_lines
from jaxprof.report.table import table, wrap
from jaxprof.results import RunResult, SweepGroup, sweep_groups
from jaxprof.results.measured import whole_profile
from jaxprof.results.programs.derive import programs
from jaxprof.safe_text import safe
from jaxprof.session import Session
from jaxprof.units import UNKNOWN, bytes_, integer, percent, ratio, scaled, seconds
from jaxprof.workloads.model import Published

WIDTH = 80
KERNELS_SHOWN = 10
"""Of a capture window."""
Notes = dict[str, dict[str, list[str]]]
"""Advice → message → the runs that it is about."""
_PHASE_TITLES = (
    ("trace", "trace"),
    ("lower", "lower"),
    ("compile", "compile"),
    ("transfer_in", "to device"),
    ("first_run", "first run"),
    ("transfer_out", "to host"),
)
"""Of the phases table; the steady run is in the table above it."""


def to_text(session: Session, *, live: bool = False) -> str:
    """The whole report, without a line break at its end. `live`: the file is being written now."""
    lines = list(_heading(session, live))
    for run in programs(session):
        lines += ["", *program_lines(session, run, live=live)]
    sweeps = {sweep.workload: sweep for sweep in sweep_groups(session)}
    for group in groups(session):
        if group.workload not in sweeps:
            lines += ["", *_group(session, group, live)]
    for sweep in sweeps.values():
        lines += ["", *_sweep(session, sweep, live)]
    lines += _captured(session)
    if not session.runs:
        lines += ["", "No run was recorded."]
    return "\n".join(lines)


def speedup_text(found: RunResult) -> str:
    """`6.9× (6.8-7.0)`; `1×` for a baseline."""
    if not found.run.plan.baseline:
        return "1×" if found.summary is not None else UNKNOWN
    if found.versus is None:
        return UNKNOWN
    speedup = found.versus.speedup
    if speedup.low is None or speedup.high is None:
        return ratio(speedup.ratio)
    return f"{ratio(speedup.ratio)} ({ratio(speedup.low).rstrip('×')}-{ratio(speedup.high).rstrip('×')})"


def break_even_text(found: RunResult) -> str:
    """After how many calls it has paid off: `12 calls`, `1st call`, `never`; a dash for the baseline."""
    versus = found.versus
    if versus is None or found.once_seconds is None:
        return UNKNOWN
    if versus.break_even_calls is None:
        return "never"
    return "1st call" if versus.break_even_calls == 1 else f"{integer(versus.break_even_calls)} calls"


def interval_text(found: RunResult) -> str:
    """`± 0.9 %`, of the median."""
    half = found.summary.relative_halfwidth if found.summary is not None else None
    return UNKNOWN if half is None else f"± {percent(half)}"


def check_text(found: RunResult) -> str:
    """`ok, 1.2e-07`, `WRONG, 0.3`, `not checked`; a dash for the baseline, and where nothing was said."""
    check = found.run.check
    if check is None or (check.passed is None and not found.run.plan.baseline):
        return UNKNOWN
    if check.passed is None:
        return "not checked"
    word = "ok" if check.passed else "WRONG"
    return word if check.max_relative_error is None else f"{word}, {check.max_relative_error:.1e}"


def _heading(session: Session, live: bool) -> Iterator[str]:
    header = session.header
    state = "being written" if live else "complete" if session.complete else "cut off"
    if session.closed is not None and session.closed.reason != "finished":
        state = session.closed.reason
    yield safe(f"session {header.session}  ·  {header.created}  ·  {header.host}  ·  {state}")
    found = environment(session)
    if found is not None:
        versions = [
            f"{name} {value}"
            for name, value in (
                ("jax", found.jax),
                ("jaxlib", found.jaxlib),
                ("numpy", found.numpy),
                ("python", found.python),
            )
            if value
        ]
        yield safe("  ·  ".join(versions))
        devices = [f"{device.get('id')} {device.get('kind') or ''}".strip() for device in found.devices]
        if devices:
            yield safe("  ·  ".join(devices))
    for notice in session.notices:
        yield from wrap(notice, width=WIDTH, indent="  ", first="note: ")


def _captured(session: Session) -> Iterator[str]:
    """The kernels that took most in the capture windows of a program, all their programs together."""
    kernels = whole_profile(session)
    if not kernels:
        return
    title = "capture window: what the device ran"
    yield from ("", title, "─" * len(title))
    rows = [("share", "self", "times", "median", "kernel", "program")]
    rows += [
        (
            percent(kernel.share),
            seconds(kernel.self_seconds),
            integer(kernel.count),
            seconds(kernel.median_seconds),
            kernel.name + (" (?)" if kernel.uncertain else ""),
            kernel.module,
        )
        for kernel in kernels[:KERNELS_SHOWN]
    ]
    yield from table(rows, right=(0, 1, 2, 3), widest=(0, 0, 0, 0, 30, 20))
    rest = len(kernels) - KERNELS_SHOWN
    if rest > 0:
        yield f"  and {integer(rest)} more: show --kernels lists them all"


def _group(session: Session, group: Group, live: bool) -> Iterator[str]:
    device = group.devices[0] if len(group.devices) == 1 else ""
    parts = [group.workload, parameters_text(group.parameters), group.preset, device]
    title = wrap("  ·  ".join(part for part in parts if part), width=WIDTH, indent="  ", first="")
    yield from title
    yield "─" * max(map(len, title))
    yield from _speed_table(group)
    yield from _phase_table(group)
    yield from _rate_table(group)
    yield from _problems(session, [(group.label(one.run), one) for one in group.runs], live)
    yield from _published(group)


def _speed_table(group: Group) -> list[str]:
    baseline = next((one.run.plan.variant for one in group.runs if not one.run.plan.baseline), "baseline")
    rows = [("", "median", "95 %", f"vs {baseline}", "pays off", "check")]
    rows += [
        (
            group.label(one.run),
            seconds(one.summary.median if one.summary else None),
            interval_text(one),
            speedup_text(one),
            break_even_text(one),
            check_text(one),
        )
        for one in group.runs
    ]
    measured = any(one.summary is not None for one in group.runs)
    return table(rows, right=(1, 2, 4), width=WIDTH) if measured else []


def _phase_table(group: Group) -> list[str]:
    rows = [("phases", *(title for _, title in _PHASE_TITLES))]
    rows += [
        (group.label(one.run), *(_phase_cell(one, name) for name, _ in _PHASE_TITLES))
        for one in group.runs
        if any(name in one.phase_seconds for name, _ in _PHASE_TITLES)
    ]
    return ["", *table(rows, right=range(1, 7), width=WIDTH)] if len(rows) > 1 else []


def _phase_cell(found: RunResult, name: str) -> str:
    recorded = found.run.phases.get(name)
    if recorded is not None and recorded.zero_copy:
        return "0-copy"
    return seconds(found.phase_seconds.get(name))


def _rate_table(group: Group) -> list[str]:
    rows = [("one call", "dispatch", "pipelined", "FLOP/s", "traffic", "XLA's peak", "transfer in")]
    for one in group.runs:
        memory, moved = one.run.memory, one.run.phases.get("transfer_in")
        took = one.phase_seconds.get("transfer_in")
        rate = moved.bytes / took if moved and moved.bytes and took and not moved.zero_copy else None
        rows.append(
            (
                group.label(one.run),
                seconds(one.dispatch_median_seconds),
                seconds(one.pipelined_median_seconds),
                scaled(one.flops_per_second),
                scaled(one.bytes_per_second, "B/s"),
                bytes_(memory.peak_bytes if memory else None),
                scaled(rate, "B/s"),
            )
        )
    useful = [rows[0], *(row for row in rows[1:] if any(cell != UNKNOWN for cell in row[1:]))]
    return ["", *table(useful, right=range(1, 7), width=WIDTH)] if len(useful) > 1 else []


def _problems(session: Session, labelled: Sequence[tuple[str, RunResult]], live: bool) -> list[str]:
    """What failed, and the warnings, under an empty line; what several runs share is said once."""
    faults: Notes = {}
    said: Notes = {}
    for label, one in labelled:
        ended = outcome(session, one.run, live=live)
        if ended.status != "ok":
            word = ended.status if ended.error in ("", ended.status) else f"{ended.status}: {ended.error}"
            faults.setdefault(ended.advice, {}).setdefault(word, []).append(label)
        for warning in one.warnings:
            said.setdefault(warning.advice, {}).setdefault(warning.message, []).append(label)
    lines = [*_notes("✗", faults), *_notes("!", said)]
    return ["", *lines] if lines else []


def _notes(mark: str, notes: Notes) -> Iterator[str]:
    """The messages that have one advice, then the advice."""
    for advice, messages in notes.items():
        for message, labels in messages.items():
            yield from wrap(f"{_together(labels)}: {message}", width=WIDTH, indent="    ", first=f"  {mark} ")
        yield from wrap(advice, width=WIDTH, indent="    ")


def _together(labels: list[str]) -> str:
    kept = list(dict.fromkeys(labels))
    return ", ".join(kept) if len(kept) <= 4 else f"{', '.join(kept[:3])} and {len(kept) - 3} more"


def _published(group: Group) -> Iterator[str]:
    """The figures of each source; those that are given in words, and the caveats, under them."""
    by_source: dict[str, list[Published]] = {}
    for figure in published(group.workload, [one.run.plan.variant for one in group.runs]):
        by_source.setdefault(figure.source, []).append(figure)
    for source, figures in by_source.items():
        caveats = dict.fromkeys(figure.caveat for figure in figures if figure.caveat)
        numbers = {caveat: f"[{at}]" for at, caveat in enumerate(caveats, start=1)}
        rows = [("", "", "", "", "", "")]
        rows += [
            (
                figure.variant,
                figure.phase.replace("_", " "),
                seconds(figure.seconds),
                figure.hardware,
                _other_parameters(figure, group),
                numbers.get(figure.caveat, ""),
            )
            for figure in figures
            if figure.seconds is not None
        ]
        yield ""
        yield from wrap(f"published in {source}", width=WIDTH, indent="    ", first="  ")
        yield from table(rows, right=(2,), width=WIDTH, gives_way=3)[1:]
        for figure in figures:
            if figure.seconds is None:
                where = ", ".join(part for part in (figure.hardware, _other_parameters(figure, group)) if part)
                words = f"{figure.variant} on {where}: {figure.text} {numbers.get(figure.caveat, '')}"
                yield from wrap(words, width=WIDTH, indent="    ", first="  ")
        for caveat, number in numbers.items():
            yield from wrap(caveat, width=WIDTH, indent="      ", first=f"  {number} ")


def _other_parameters(figure: Published, group: Group) -> str:
    """The parameters of a published figure that differ from those that were run here."""
    return parameters_text(
        {name: value for name, value in figure.parameters.items() if group.parameters.get(name) != value}
    )


def _sweep(session: Session, sweep: SweepGroup, live: bool) -> Iterator[str]:
    yield from sweep_lines(sweep, width=WIDTH)
    labelled = [
        (f"{group.label(one.run)} at {parameters_text({sweep.parameter: group.parameters[sweep.parameter]})}", one)
        for group in groups(session)
        if group.workload == sweep.workload
        for one in group.runs
    ]
    yield from _problems(session, labelled, live)
