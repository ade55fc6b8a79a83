"""Every kind of answer in JSON: the facts of its data, and the JSON schema that is made of them.

python -m jaxprof.cli.answer_schemas KIND       prints the schema (draft 2020-12) of the answers of a kind
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from jaxprof.cli.options import VIEWS
from jaxprof.facts import Fact, Facts, json_schema, listed
from jaxprof.facts.explanations import ENTRY, EXPLANATION
from jaxprof.facts.units import ANY, BYTES, LIST, ROWS, TEXT, TRUTH
from jaxprof.facts.views import facts_of_view

if TYPE_CHECKING:
    from jaxprof.base.config import Config


def _ab() -> Facts[Any]:
    from jaxprof.facts.comparisons import AB

    return (Fact("path", TEXT, "Where the comparison is kept"), *AB)


def _comparison() -> Facts[Any]:
    from jaxprof.facts.comparisons import DIFFERENCE

    return (Fact("comparisons", ROWS, "One for each session after the first", inside=DIFFERENCE),)


def _devices() -> Facts[Any]:
    from jaxprof.facts.devices import DEVICES

    return (Fact("devices", ROWS, "The devices of this machine", inside=DEVICES),)


def _gate() -> Facts[Any]:
    from jaxprof.facts.gate import GATE

    return GATE


def _hlo(view: str | None = None) -> Facts[Any]:
    from jaxprof.facts.hlo import facts_of_program

    return (Fact("programs", ROWS, "The programs of the target", inside=facts_of_program(view)),)


def _hlo_difference() -> Facts[Any]:
    from jaxprof.facts.comparisons import HLO_DIFFERENCE

    return HLO_DIFFERENCE


def _hlo_stage() -> Facts[Any]:
    from jaxprof.facts.hlo import STAGE

    return (Fact("programs", ROWS, "The programs of the target", inside=STAGE),)


def _job() -> Facts[Any]:
    from jaxprof.facts.jobs import JOB

    return JOB


def _tables() -> Facts[Any]:
    from jaxprof.facts.tables import DESCRIBED

    return (Fact("tables", ROWS, "The tables of SQL", inside=DESCRIBED),)


def _session() -> Facts[Any]:
    from jaxprof.facts.session_tree import SESSION

    path: Fact[Any] = Fact("path", TEXT, "Where it is; null if it could not be kept")
    return tuple(replace(fact, inside=(*fact.inside, path)) if fact.key == "session" else fact for fact in SESSION)


def _targets() -> Facts[Any]:
    from jaxprof.facts.devices import TARGETS

    return (Fact("targets", ROWS, "Devices to compile for", inside=TARGETS),)


def _config_facts() -> Facts[Any]:
    """Return the facts of the settings in force, of a `Config`."""
    from jaxprof.base.config import KEYS, SETTINGS, config_path
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


_FOLDER: Fact[Any] = Fact("folder", TEXT, "Where they are")
_UNREADABLE: Fact[Any] = Fact("notices", LIST, "What could not be read")
KINDS: Mapping[str, Callable[[], Facts[Any]]] = {
    "ab": _ab,
    "catalogue": lambda: (Fact("findings", ROWS, "Every code", inside=ENTRY[:3]),),
    "comparison": _comparison,
    "config": _config_facts,
    "devices": _devices,
    "explanation": lambda: EXPLANATION,
    "finding": lambda: ENTRY,
    "gate": _gate,
    "hlo": _hlo,
    **{f"hlo-{view}": partial(_hlo, view) for view in ("kernels", "findings", "barriers", "memory")},
    "hlo-diff": _hlo_difference,
    "hlo-stage": _hlo_stage,
    "job": _job,
    "query": lambda: (Fact("rows", ROWS, "The rows, with the names of the columns of the SELECT"), _UNREADABLE),
    "query-schema": _tables,
    "rollup": lambda: (_FOLDER, _UNREADABLE,
                       Fact("processes", ROWS, "The processes of the job", inside=listed.ROLL_UP)),
    "session": _session,
    **{f"session-{view}": partial(facts_of_view, view) for view in VIEWS},
    "sessions": lambda: (_FOLDER, Fact("size_bytes", BYTES, "Size of all of them"),
                         Fact("sessions", ROWS, "The sessions, the newest first", inside=listed.ENTRY)),
    "targets": _targets,
    **dict.fromkeys(("workload", "workloads"),
                    lambda: (Fact("workloads", ROWS, "What can be run", inside=listed.WORKLOAD),)),
}  # fmt: skip
"""Kind of answer → function that imports and returns the facts of its `data`."""
_ERROR: Facts[Any] = (
    Fact("code", TEXT, "usage, missing_file, file_refused, not_hlo, storage, worker, does_not_fit, interrupted, ..."),
    Fact("message", TEXT, "Why there is no answer"),
    Fact("hint", TEXT, "What to do"),
)
_COUNTS = {
    "type": "object",
    "additionalProperties": {"type": "integer"},
    "description": "What was left out of data: path of a key, and how many rows of it",
}
_NEXT = {"type": "array", "items": {"type": "string"}, "description": "Commands that say more"}


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
    from jaxprof.base.text import json_text
    from jaxprof.cli.output import print_text

    names = sorted([*KINDS, "error"])
    if len(sys.argv) != 2 or sys.argv[1] not in names:
        sys.exit(f"python -m jaxprof.cli.answer_schemas KIND: one of {', '.join(names)}")
    print_text(json_text(answer_schema(sys.argv[1])))
