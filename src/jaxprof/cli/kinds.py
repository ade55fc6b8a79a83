"""Every kind of answer in JSON: the facts of its data, and the JSON schema that is made of them.

python -m jaxprof.cli.kinds KIND       prints the schema (draft 2020-12) of the answers of a kind
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from jaxprof.facts import Fact, Relation, at, json_schema
from jaxprof.facts.units import (
    ANY,
    BY_NAME,
    BYTES,
    COUNT,
    INDEX,
    LIST,
    NUMBER,
    NUMBERS,
    OBJECT,
    ROWS,
    SECONDS,
    TEXT,
    TRUTH,
)

if TYPE_CHECKING:
    from jaxprof.config import Config
    from jaxprof.rollup.making import RollUpReport
    from jaxprof.session.log import Entry
    from jaxprof.workloads.model import WorkloadInfo

Facts = tuple[Fact[Any], ...]
ENTRY: Final[tuple[Fact[Entry], ...]] = (
    Fact("name", TEXT, "Its name, as commands take it", title="session", widest=34),
    Fact("path", TEXT, "Its file", lambda entry: str(entry.path)),
    Fact("size_bytes", BYTES, "Size on disk", title="size"),
    Fact("id", TEXT, "Identity of the session", at("header.session")),
    Fact("created", TEXT, "When it was begun, in UTC", at("header.created")),
    Fact("process_index", INDEX, "Which process of a job it was, from 0"),
    Fact("process_count", COUNT, "Processes of that job", lambda entry: entry.process_count or None),
    Fact("complete", TRUTH, "Whether its writer closed it properly"),
    Fact("live", TRUTH, "Whether a process is writing it now"),
    Fact("problem", TEXT, "Why it cannot be read"),
    Fact("workloads", LIST, "What was run"),
    Fact("job_summary", OBJECT, "Of the folder of a job; null for a session", at("job"), inside=(
        Fact("recorded_processes", COUNT, "Processes with a session here", lambda job: len(job.processes)),
        Fact("process_count", COUNT, "Processes of the job; null where it is not known", at("count")),
        Fact("missing_processes", COUNT, "Processes without a session",
             lambda job: job.missing if job.count is not None else None),
        Fact("hosts", LIST, "The machines that they ran on"),
        Fact("by_status", ROWS, "Processes by how they ended, the most frequent first",
             lambda job: list(job.by_status.items()), inside=(
                 Fact("status", TEXT, "ok, failed, crashed, cancelled, running, interrupted, unreadable",
                      lambda pair: pair[0]),
                 Fact("count", COUNT, "Processes that ended in this way", lambda pair: pair[1]),
             )),
    )),
    Fact("runs", ROWS, "Runs that have ended", at("closed"), inside=(
        Fact("id", TEXT, "Id of the run", at("run")),
        Fact("workload", TEXT, "Name of the workload, the function or the program"),
        Fact("variant", TEXT, "numpy, jax, jit, or a name of the user's"),
        Fact("device", TEXT, "Where it ran"),
        Fact("status", TEXT, "How it ended"),
        Fact("median_seconds", SECONDS, "Median time of a call"),
        Fact("ci95_seconds", NUMBERS, "Its 95 % interval, [low, high]"),
    )),
)  # fmt: skip
"""The facts of a session in a list."""
WORKLOAD: Final[tuple[Fact[WorkloadInfo], ...]] = (
    Fact("name", TEXT, "Its name", title="name"),
    Fact("title", TEXT, "What it computes, in a line", title="computes", widest=44),
    Fact("description", TEXT, "What it is"),
    Fact("parameters", ROWS, "What can be set", inside=(
        Fact("name", TEXT, "Its name", title="parameter"),
        Fact("description", TEXT, "What it is", title=""),
        Fact("kind", TEXT, "int, float or choice"),
        Fact("minimum", NUMBER, "The smallest value"),
        Fact("maximum", NUMBER, "The largest value"),
        Fact("choices", LIST, "The words to choose from"),
    )),
    Fact("presets", BY_NAME, "Parameters by the name of a preset"),
    Fact("variants", ROWS, "What can be run of it", inside=(
        Fact("name", TEXT, "Its name"),
        Fact("how", TEXT, "numpy, eager (op by op), jit", title="how"),
        Fact("description", TEXT, "What it is", title=""),
        Fact("inputs", TEXT, "Where its inputs are: device or host"),
        Fact("precision", TEXT, "Precision of its matrix products"),
        Fact("source", TEXT, "Its code"),
    )),
    Fact("baseline", TEXT, "The variant that the others are compared with"),
    Fact("published", ROWS, "Figures that others published"),
    Fact("has_dots", TRUTH, "Whether it has matrix products"),
    Fact("origin", TEXT, "built in, or the target"),
    Fact("inputs_from", TEXT, "Where the inputs come from"),
)  # fmt: skip
ROLL_UP: Final[tuple[Fact[RollUpReport], ...]] = (
    Fact("process", INDEX, "Index of the process in its job"),
    Fact("session", TEXT, "Name of its session's file"),
    Fact("rollup_bytes", BYTES, "Size of its roll-up; null if there is none", at("bytes")),
    Fact("session_bytes", BYTES, "Size of the session that was read"),
    Fact("error", TEXT, "Why there is no roll-up"),
    Fact("notices", LIST, "What of the session could not be read"),
)


def _rows(key: str, meaning: str, inside: Facts) -> Fact[Any]:
    return Fact(key, ROWS, meaning, inside=inside)


def _report_facts(module: str, name: str) -> Facts:
    facts: Facts = getattr(import_module(f"jaxprof.report.{module}"), name)
    return facts


def _view(view: str) -> Facts:
    from jaxprof.report.views import facts_of_view

    return facts_of_view(view)


def _hlo(view: str | None = None) -> Facts:
    from jaxprof.report.modules import facts_of_program

    return (_rows("programs", "The programs of the target", facts_of_program(view)),)


def _session_facts() -> Facts:
    from dataclasses import replace

    path: Fact[Any] = Fact("path", TEXT, "Where it is; null if it could not be kept")
    return tuple(
        replace(fact, inside=(*fact.inside, path)) if fact.key == "session" else fact
        for fact in _report_facts("json", "SESSION")
    )


def workload_facts() -> Facts:
    """Return the facts of a workload, as JSON has them."""
    from dataclasses import replace

    return tuple(
        replace(fact, inside=_report_facts("json", "PUBLISHED")) if fact.key == "published" else fact
        for fact in WORKLOAD
    )


def target_facts() -> Facts:
    """Return the facts of a device to compile for."""
    from jaxprof.hlo.analysis.cost.peaks import device
    from jaxprof.units import counted

    return (
        Fact("name", TEXT, "Its name, as --for takes it", title="device"),
        Fact("device_kind", TEXT, "Kind of the device, as JAX names it", title="as JAX names it"),
        Fact("memory_bytes", BYTES, "Its memory",
             lambda chip: chip.config.get("device_memory_size") or device(chip.name).memory_bytes, "memory"),
        Fact("devices", COUNT, "Devices of a chip", title="a chip", show=lambda count: counted(count, "device"),
             right=False),
        Fact("vendor", TEXT, "Whose compiler it needs", title="needs",
             show=lambda vendor: f"jaxprof devices target install {vendor}", right=False),
    )  # fmt: skip


def config_facts() -> Facts:
    """Return the facts of the settings in force, of a `Config`."""
    from jaxprof.config import KEYS, SETTINGS, config_path
    from jaxprof.tui.keys import checked, clashes

    def entries(config: Config) -> list[tuple[Any, ...]]:
        known = ((each, config.values.get(each.name), config.sources.get(each.name)) for each in SETTINGS)
        return [(each.name, value, source, each.variable, each.means) for each, value, source in known]

    return (
        Fact("file", TEXT, "The file of the settings", lambda config: str(config_path())),
        Fact("exists", TRUTH, "Whether it is there", lambda config: config_path().exists()),
        Fact("entries", ROWS, "Each setting", entries, inside=(
            Fact("name", TEXT, "Its name in the file", itemgetter(0)),
            Fact("value", ANY, "What it is; null if nobody has set it", itemgetter(1)),
            Fact("source", TEXT, "The file or the variable that it is from", itemgetter(2)),
            Fact("variable", TEXT, "The variable of the environment that sets it", itemgetter(3)),
            Fact("means", TEXT, "What it is for", itemgetter(4)),
        )),
        Fact("keys", ROWS, "The user's keys",
             lambda config: [(*pair, config.sources[f"{KEYS}.{pair[0]}"]) for pair in config.keys.items()], inside=(
                 Fact("action", TEXT, "Id of an action of the app", itemgetter(0)),
                 Fact("key", TEXT, "The key, as Textual names it", itemgetter(1)),
                 Fact("source", TEXT, "The file that it is from", itemgetter(2)),
             )),
        Fact("clashes", ROWS, "Keys that two actions of one place have",
             lambda config: clashes(checked(config.keys)), inside=(
                 Fact("key", TEXT, "The key, as people write it"),
                 Fact("actions", LIST, "The two actions"),
             )),
    )  # fmt: skip


COLUMN: Final[tuple[Fact[Fact[Any]], ...]] = (
    Fact("name", TEXT, "Name of the column", at("key"), "column"),
    Fact("type", TEXT, "Its type in SQL", at("unit.sql"), "type"),
    Fact("meaning", TEXT, "What it holds", title="meaning"),
)


def columns_of(table: Relation) -> Facts:
    """Return the columns that a table has in SQL."""
    from jaxprof.query.tables import SESSION

    return (SESSION, *table.facts)


DESCRIBED: Final[tuple[Fact[Relation], ...]] = (
    Fact("table", TEXT, "Name of the table", at("name")),
    Fact("meaning", TEXT, "What its rows are"),
    Fact("columns", ROWS, "Its columns", columns_of, inside=COLUMN),
)
_STAGE: Final[Facts] = (
    Fact("label", TEXT, "Name of the program"),
    Fact("stage", TEXT, "Which of its texts"),
    Fact("lines", LIST, "Lines of the text"),
)


def _in_folder(key: str, meaning: str, inside: Facts, *more: Fact[Any]) -> Facts:
    return (Fact("folder", TEXT, "Where they are"), *more, _rows(key, meaning, inside))


KINDS: Final[Mapping[str, Callable[[], Facts]]] = {
    "ab": lambda: (Fact("session", TEXT, "Where the comparison is kept"), *_report_facts("comparison", "AB")),
    "catalogue": lambda: (_rows("findings", "Every code", _report_facts("explain", "ENTRY")[:3]),),
    "comparison": lambda: (
        _rows("comparisons", "One for each session after the first", _report_facts("comparison", "DIFFERENCE")),
    ),
    "config": config_facts,
    "devices": lambda: (_rows("devices", "The devices of this machine", _report_facts("device_list", "DEVICES")),),
    "explanation": lambda: import_module("jaxprof.report.explain").facts_of_explanation(),
    "finding": partial(_report_facts, "explain", "ENTRY"),
    "gate": partial(_report_facts, "gate", "GATE"),
    "history": partial(_report_facts, "history", "HISTORY"),
    "hlo": _hlo,
    **{f"hlo-{view}": partial(_hlo, view) for view in ("kernels", "findings", "barriers", "memory")},
    "hlo-diff": partial(_report_facts, "hlo_difference", "HLO_DIFFERENCE"),
    "hlo-stage": lambda: (_rows("programs", "The programs of the target", _STAGE),),
    "job": partial(_report_facts, "hosts", "JOB"),
    "query": lambda: (
        Fact("rows", ROWS, "The rows, with the names of the columns of the SELECT"),
        Fact("notices", LIST, "What could not be read"),
    ),
    "query-schema": lambda: (_rows("tables", "The tables of SQL", DESCRIBED),),
    "rollup": lambda: _in_folder(
        "processes", "The processes of the job", ROLL_UP, Fact("notices", LIST, "What could not be read")
    ),
    "session": _session_facts,
    **{
        f"session-{view}": partial(_view, view)
        for view in (
            "kernels",
            "compile",
            "steps",
            "memory",
            "trust",
            "compiles",
            "findings",
            "transfers",
            "timeline",
        )
    },
    "sessions": lambda: _in_folder(
        "sessions", "The sessions, the newest first", ENTRY, Fact("size_bytes", BYTES, "Size of all of them")
    ),
    "targets": lambda: (_rows("targets", "Devices to compile for", target_facts()),),
    **dict.fromkeys(("workload", "workloads"), lambda: (_rows("workloads", "What can be run", workload_facts()),)),
}
"""Kind of answer → function that imports and returns the facts of its `data`."""
_ERROR: Final[Facts] = (
    Fact("code", TEXT, "usage, missing_file, file_refused, not_hlo, storage, worker, does_not_fit, interrupted, ..."),
    Fact("message", TEXT, "Why there is no answer"),
    Fact("hint", TEXT, "What to do"),
)
_COUNTS: Final = {
    "type": "object",
    "additionalProperties": {"type": "integer"},
    "description": "What was left out of data: path of a key, and how many rows of it",
}
_NEXT: Final = {"type": "array", "items": {"type": "string"}, "description": "Commands that say more"}


def answer_schema(kind: str) -> dict[str, Any]:
    """Return the JSON schema of the answers of a kind. Raises KeyError for an unknown kind."""
    from jaxprof.report.envelope import SCHEMA, may_lack

    error = kind == "error"
    data = json_schema(_ERROR if error else KINDS[kind]())
    if not error:
        may_lack(kind, data)
    properties: dict[str, Any] = {
        "schema": {"const": SCHEMA, "description": "Version of the envelope and of the keys in data"},
        "kind": {"const": kind, "description": "Which keys data has"},
        **({"error": data} if error else {"data": data, "truncated": _COUNTS, "next": _NEXT}),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"jaxprof: {kind}",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": list(properties),
    }


if __name__ == "__main__":
    from jaxprof.cli.output import print_text
    from jaxprof.text import json_text

    names = sorted([*KINDS, "error"])
    if len(sys.argv) != 2 or sys.argv[1] not in names:
        sys.exit(f"python -m jaxprof.cli.kinds KIND: one of {', '.join(names)}")
    print_text(json_text(answer_schema(sys.argv[1])))
