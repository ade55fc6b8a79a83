"""Facts of the `data` of every kind of answer in JSON, and of an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from jaxprof.base.config import KEYS, SETTINGS, config_path
from jaxprof.base.values import frozen
from jaxprof.facts import Fact, Facts, listed
from jaxprof.facts.units import ANY, BYTES, LIST, ROWS, TEXT, TRUTH
from jaxprof.facts.views import facts_of_view

if TYPE_CHECKING:
    from jaxprof.base.config import Config


@frozen
class SettingsInForce:
    """The user's settings, and the keys of theirs that collide."""

    config: Config
    clashes: Sequence[Any]


_SETTINGS: Facts[SettingsInForce] = (
    Fact("file", TEXT, "The file of the settings", lambda row: str(config_path())),
    Fact("exists", TRUTH, "Whether it is there", lambda row: config_path().exists()),
    Fact("entries", ROWS, "Each setting", lambda row: [
        (each.name, row.config.values.get(each.name), row.config.sources.get(each.name), each.variable, each.means)
        for each in SETTINGS
    ], inside=(
        Fact("name", TEXT, "Its name in the file", itemgetter(0)),
        Fact("value", ANY, "What it is; null if nobody has set it", itemgetter(1)),
        Fact("source", TEXT, "The file or the variable that it is from", itemgetter(2)),
        Fact("variable", TEXT, "The variable of the environment that sets it", itemgetter(3)),
        Fact("means", TEXT, "What it is for", itemgetter(4)),
    )),
    Fact("keys", ROWS, "The user's keys",
         lambda row: [(*pair, row.config.sources[f"{KEYS}.{pair[0]}"]) for pair in row.config.keys.items()], inside=(
             Fact("action", TEXT, "Id of an action of the app", itemgetter(0)),
             Fact("key", TEXT, "The key, as Textual names it", itemgetter(1)),
             Fact("source", TEXT, "The file that it is from", itemgetter(2)),
         )),
    Fact("clashes", ROWS, "Keys that two actions of one place have", inside=(
        Fact("key", TEXT, "The key, as people write it"),
        Fact("actions", LIST, "The two actions"),
    )),
)  # fmt: skip
ERROR: Facts[Any] = (
    Fact("code", TEXT, "usage, missing_file, file_refused, not_hlo, storage, worker, does_not_fit, interrupted, ..."),
    Fact("message", TEXT, "Why there is no answer"),
    Fact("hint", TEXT, "What to do"),
)
_FOLDER: Fact[Any] = Fact("folder", TEXT, "Where they are")
_UNREADABLE: Fact[Any] = Fact("notices", LIST, "What could not be read")
_WORKLOADS: Facts[Any] = (Fact("workloads", ROWS, "What can be run", inside=listed.WORKLOAD),)
_LISTED: dict[str, Facts[Any]] = {
    "config": _SETTINGS,
    "query": (Fact("rows", ROWS, "The rows, with the names of the columns of the SELECT"), _UNREADABLE),
    "rollup": (_FOLDER, _UNREADABLE, Fact("processes", ROWS, "The processes of the job", inside=listed.ROLL_UP)),
    "sessions": (_FOLDER, Fact("size_bytes", BYTES, "Size of all of them"),
                 Fact("sessions", ROWS, "The sessions, the newest first", inside=listed.ENTRY)),
    "workload": _WORKLOADS,
    "workloads": _WORKLOADS,
}  # fmt: skip


def facts_of_answer(kind: str) -> Facts[Any]:
    """Return the facts of an answer, and import only what they are read with. Raises KeyError for an unknown kind."""
    name, _, part = kind.partition("-")
    if name == "session" and part:
        return facts_of_view(part)
    if kind == "session":
        from jaxprof.facts.session_tree import SESSION

        path: Fact[Any] = Fact("path", TEXT, "Where it is; null if it could not be kept")
        return tuple(replace(fact, inside=(*fact.inside, path)) if fact.key == "session" else fact for fact in SESSION)
    if kind in ("ab", "comparison", "hlo-diff"):
        from jaxprof.facts.comparisons import AB, DIFFERENCE, HLO_DIFFERENCE

        if kind == "comparison":
            return (Fact("comparisons", ROWS, "One for each session after the first", inside=DIFFERENCE),)
        return (Fact("path", TEXT, "Where the comparison is kept"), *AB) if kind == "ab" else HLO_DIFFERENCE
    if name == "hlo":
        from jaxprof.facts.hlo import STAGE, facts_of_program

        inside = STAGE if part == "stage" else facts_of_program(part or None)
        return (Fact("programs", ROWS, "The programs of the target", inside=inside),)
    if kind in ("devices", "targets"):
        from jaxprof.facts.devices import DEVICES, TARGETS

        if kind == "devices":
            return (Fact("devices", ROWS, "The devices of this machine", inside=DEVICES),)
        return (Fact("targets", ROWS, "Devices to compile for", inside=TARGETS),)
    if kind in ("catalogue", "explanation", "finding"):
        from jaxprof.facts.explanations import ENTRY, EXPLANATION

        if kind == "catalogue":
            return (Fact("findings", ROWS, "Every code", inside=ENTRY[:3]),)
        return EXPLANATION if kind == "explanation" else ENTRY
    if kind == "gate":
        from jaxprof.facts.gate import GATE

        return GATE
    if kind == "job":
        from jaxprof.facts.jobs import JOB

        return JOB
    if kind == "query-schema":
        from jaxprof.facts.tables import DESCRIBED

        return (Fact("tables", ROWS, "The tables of SQL", inside=DESCRIBED),)
    return _LISTED[kind]
