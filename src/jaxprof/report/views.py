"""One view of a session alone (kernels, compile, steps, memory, trust), as text, JSON or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from jaxprof.report.captures import measured_rows, trust_json
from jaxprof.report.csv import safe_cell
from jaxprof.report.memory import memory_json, memory_lines
from jaxprof.report.table import table, wrap
from jaxprof.results.measured import MeasuredKernel, measured, whole_profile
from jaxprof.safe_text import safe
from jaxprof.session import Run, Session
from jaxprof.units import UNKNOWN, bytes_, integer, percent, ratio, scaled, seconds

WIDTH = 100
_DEEPEST = 12
_LEAST_SHARE = 0.0001
_HEADING = (
    "share", "self", "times", "median", "least", "most", "threads", "FLOP/s", "of peak", "B/s", "of peak", "devices",
    "kernel", "program",
)  # fmt: skip
_WORTH_SHOWING = 0.005
"""Nodes of the compile tree with a smaller share of it are left out of the text."""
_PARTS = ("kernels", "transfers", "collectives_exposed", "launch_gaps", "idle")
_STEPS_SHOWN = 40
_NO_CAPTURE = {
    "kernels": "no capture of its kernels",
    "compile": "no capture of a compile",
    "steps": "no steps",
    "trust": "no capture",
    "memory": "no program whose memory is known",
}
VIEWS = tuple(_NO_CAPTURE)


def view_json(session: Session, view: str) -> dict[str, Any]:
    """The view of every run that has it."""
    return {
        "runs": [
            {"run": run.id, "label": run.label, view: data}
            for run in session.runs.values()
            if (data := _data(session, run, view)) is not None
        ]
    }


def view_text(session: Session, view: str) -> str:
    """The view for people, of every run that has it; the kernels of a profile's programs as one table."""
    if view == "kernels" and len(kernels := whole_profile(session)) and is_profile(session):
        whole = next(iter(session.runs.values()))
        return "\n".join([safe(whole.label), *kernels_lines(kernels, programs=True), *_kernels(session, whole)])
    parts = [
        "\n".join([safe(f"{run.id} {run.label}"), *found])
        for run in session.runs.values()
        if (found := list(_TEXTS[view](session, run)))
    ]
    return "\n\n".join(parts) if parts else f"This session has {_NO_CAPTURE[view]}."


def is_profile(session: Session) -> bool:
    """Whether the session was made of a profile that was recorded elsewhere, and holds nothing else."""
    return bool(session.runs) and all(run.plan.how == "imported" for run in session.runs.values())


def profile_text(session: Session) -> str:
    """What is in a profile at a glance: its kernels, where the steps went, and every doubt."""
    whole = next(iter(session.runs.values()))
    lines = [view_text(session, "kernels") if whole_profile(session) else safe(f"{whole.label}: no kernels")]
    if whole.steps is not None and whole.steps.steps:
        lines += [
            "",
            f"{len(whole.steps.steps)} steps, found by {whole.steps.found_by}",
            _parts_line(whole.steps.steps),
        ]
    doubts = [row for row in trust_json(whole) if row.get("verdict") != "good"]
    if doubts:
        lines += ["", "what to know of this profile"]
        lines += [line for row in doubts for line in _trust_row(row)]
    return "\n".join(lines)


def view_csv(session: Session, view: str) -> str:
    """A row for each kernel, pass, step or row of trust."""
    rows = [{"run": run.id, **row} for run in session.runs.values() for row in _flat(view, _data(session, run, view))]
    target = io.StringIO()
    columns = list(dict.fromkeys(name for row in rows for name in row)) or ["run"]
    writer = csv.DictWriter(target, columns, lineterminator="\n", restval="")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: safe_cell(value) for name, value in row.items()})
    return target.getvalue()


def _data(session: Session, run: Run, view: str) -> Any:
    if view == "kernels":
        found = measured(session, run.id)
        return None if found is None or not found.kernels else measured_rows(found)
    if view == "compile":
        return None if run.compile_passes is None else run.compile_passes.tree
    if view == "steps":
        return None if run.steps is None else list(run.steps.steps)
    if view == "memory":
        return memory_json(session, run)
    return trust_json(run) or None


def _flat(view: str, data: Any) -> Iterator[dict[str, Any]]:
    if data is None:
        return
    if view == "compile":
        yield from _flat_tree(data, "")
        return
    for row in data["buffers"] if view == "memory" else data:
        flat: dict[str, Any] = {}
        for name, value in row.items():
            if isinstance(value, dict):
                flat |= {f"{name}_{inner}": _joined(one) for inner, one in value.items()}
            else:
                flat[name] = _joined(value)
        yield flat


def _joined(value: Any) -> Any:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else value


def _flat_tree(node: dict[str, Any], path: str) -> Iterator[dict[str, Any]]:
    here = f"{path}/{node['name']}" if path else str(node["name"])
    yield {"path": here, **{name: node[name] for name in ("stage", "seconds", "self_seconds", "count")}}
    for child in node["children"]:
        yield from _flat_tree(child, here)


def _kernels(session: Session, run: Run) -> Iterator[str]:
    found = measured(session, run.id)
    if found is None:
        return
    if found.kernels:
        yield from kernels_lines(found.kernels)
        unmatched = found.unmatched_share
        if unmatched is not None and unmatched >= _LEAST_SHARE:
            yield f"  {percent(unmatched)} of the time is of no kernel of the HLO"
    for row in found.transfers:
        moved, took = row.get("bytes"), row.get("total_seconds")
        rate = f", {scaled(moved / took, 'B/s')}" if moved and took else ""
        size = f", {bytes_(moved)}{rate}" if moved else ""
        where = f"{row.get('direction')} on {row.get('device')}"
        yield safe(f"  copies {where}: {integer(row.get('count'))} in {seconds(took)}{size}")
    for device, took in found.unattributed_seconds.items():
        if took > 0:
            yield safe(f"  {seconds(took)} on {device} belong to no HLO op")


def kernels_lines(kernels: Sequence[MeasuredKernel], *, programs: bool = False) -> list[str]:
    """The table of measured kernels; with the program of each, where they are of several."""
    several = any(len(kernel.devices) > 1 for kernel in kernels)
    rows = [_HEADING]
    for kernel in kernels:
        parallel, share = kernel.parallelism, kernel.share
        rows.append(
            (
                percent(share) if share is None or share >= _LEAST_SHARE else f"< {percent(_LEAST_SHARE, 1)}",
                seconds(kernel.self_seconds),
                integer(kernel.count),
                seconds(kernel.median_seconds),
                seconds(kernel.minimum_seconds),
                seconds(kernel.maximum_seconds),
                ratio(parallel) if parallel is not None and parallel > 1.005 and not several else UNKNOWN,
                scaled(kernel.flops_per_second),
                percent(kernel.of_peak),
                scaled(kernel.bytes_per_second),
                percent(kernel.of_bandwidth),
                str(len(kernel.devices)) if several else UNKNOWN,
                kernel.name + (" (?)" if kernel.uncertain else ""),
                kernel.module if programs else UNKNOWN,
            )
        )
    return table(rows, right=tuple(range(12)), widest=(*([0] * 12), 60, 40))


def _compile(session: Session, run: Run) -> Iterator[str]:
    if run.compile_passes is None:
        return
    tree = run.compile_passes.tree
    whole = float(tree["seconds"]) or 1.0
    stages: dict[str, float] = {}
    rows = [("share", "total", "self", "times", "stage", "phase or pass")]
    for depth, node in _walk(tree, 0):
        stages[node["stage"]] = stages.get(node["stage"], 0.0) + node["self_seconds"]
        if depth <= _DEEPEST and node["seconds"] >= _WORTH_SHOWING * whole:
            rows.append(
                (
                    percent(node["seconds"] / whole),
                    seconds(node["seconds"]),
                    seconds(node["self_seconds"]),
                    integer(node["count"]),
                    node["stage"],
                    "  " * depth + node["name"],
                )
            )
    yield from table(rows, right=(0, 1, 2, 3), width=WIDTH, gives_way=5)
    order = sorted(stages.items(), key=lambda item: -item[1])
    said = ", ".join(f"{stage} {seconds(took)}" for stage, took in order if took > 0)
    yield from wrap(f"self time by stage, over all threads: {said}", width=WIDTH, indent="  ")


def _walk(node: dict[str, Any], depth: int) -> Iterator[tuple[int, dict[str, Any]]]:
    yield depth, node
    for child in node["children"]:
        yield from _walk(child, depth + 1)


def _steps(session: Session, run: Run) -> Iterator[str]:
    if run.steps is None or not run.steps.steps:
        return
    steps = run.steps.steps
    rows = [("step", "device", "time", "kernels", "copies", "collectives", "overlapped", "gaps", "idle", "")]
    for step in steps[:_STEPS_SHOWN]:
        parts = step["parts"]
        rows.append(
            (
                step["name"],
                step["device"],
                seconds(step["seconds"]),
                *(seconds(parts[name]) for name in _PARTS[:3]),
                seconds(step["collectives_overlapped_seconds"]),
                *(seconds(parts[name]) for name in _PARTS[3:]),
                "" if step["complete"] else "incomplete",
            )
        )
    yield f"  found by: {run.steps.found_by}"
    yield from table(rows, right=tuple(range(2, 9)))
    if len(steps) > _STEPS_SHOWN:
        yield f"  and {len(steps) - _STEPS_SHOWN} more"
    yield _parts_line(steps)


def _parts_line(steps: Sequence[Mapping[str, Any]]) -> str:
    whole = sum(step["seconds"] for step in steps) or 1.0
    said = ", ".join(
        f"{name.replace('_', ' ')} {percent(sum(step['parts'][name] for step in steps) / whole)}" for name in _PARTS
    )
    return f"  of all steps: {said}"


def _trust(session: Session, run: Run) -> Iterator[str]:
    for kind, event in run.trust.items():
        yield safe(f"  capture: {kind}")
        for row in event.rows:
            yield from _trust_row(row)


def _trust_row(row: Mapping[str, Any]) -> Iterator[str]:
    verdict = f"{row.get('verdict', ''):<8}"
    yield from wrap(str(row.get("message", "")), width=WIDTH, indent=" " * 12, first=f"    {verdict}")
    if row.get("advice"):
        yield from wrap(str(row["advice"]), width=WIDTH, indent=" " * 12)


_TEXTS: dict[str, Callable[[Session, Run], Iterator[str]]] = {
    "kernels": _kernels,
    "compile": _compile,
    "steps": _steps,
    "trust": _trust,
    "memory": memory_lines,
}
