"""JSON, CSV and SQL of a session have the same rows with the same figures under the same keys, and a key is one thing
everywhere."""

import csv
import io
import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

from cli.test_schema import files, made  # noqa: F401
from folding import written
from jaxprof import events as e
from jaxprof.cli.answer_schemas import KINDS
from jaxprof.cli.options import VIEWS
from jaxprof.events import SAMPLED_PHASES, STARTUP_PHASES
from jaxprof.facts import SessionFile
from jaxprof.facts.answers import OF_PROGRAMS, facts_of_answer, view_of
from jaxprof.facts.kernels import KERNELS
from jaxprof.facts.runs import RUNS
from jaxprof.facts.tables import TABLES
from jaxprof.session import Session, load
from report.sessions import HEADER

OBJECTS = ("launch",)
"""Objects in the rows of views: each of their keys is a column."""
COLUMNS_OF_HLO = [fact.key for fact in KERNELS if fact.when is None]
"""Of kernels, those that a program has that was not measured."""
PHASE_KEYS = {"bytes", "zero_copy", "note"}
"""Keys of phases in JSON and SQL, beside those of their times."""
NAMES_IN_SQL = {"compile": "passes", "timeline": "states"}
"""By view, its table if that has another name."""


def sessions():
    return sorted(path.name for path in Path().glob("*.jaxprof"))


def figure(cell):
    """What a cell of any form holds: lists and objects as such, unknown as None, numbers as numbers."""
    if isinstance(cell, str):
        try:
            return json.loads(cell.removeprefix("'"))
        except ValueError:
            return cell.removeprefix("'") or None
    return cell


def figures(row):
    return {key: figure(cell) for key, cell in row.items()}


def of_json(row):
    """The row with a key for each column."""
    inner = {f"{name}_{key}": cell for name in OBJECTS if row.get(name) for key, cell in row[name].items()}
    return figures({key: cell for key, cell in row.items() if key not in OBJECTS} | inner)


def of_csv(text):
    return [figures(row) for row in csv.DictReader(io.StringIO(text, newline=""))]


def of_sql(name, table):
    pytest.importorskip("pyarrow")
    from jaxprof.query.columnar import arrow_table

    file = SessionFile(Path(name), load(Path(name), Session))
    return [figures(row) for row in arrow_table(TABLES[table], file).to_pylist()]


def agree(what, rows, others, columns=None):
    """Fails unless both have the same rows in the same order: in these columns, by default in those of `others`."""
    assert len(rows) == len(others), what
    for row, other in zip(rows, others, strict=True):
        unlike = {key: (row.get(key), other[key]) for key in columns or other if row.get(key) != other[key]}
        assert not unlike, (what, unlike)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.usefixtures("files")
def test_a_view(call, view):
    for name in sessions():
        data = call("open", name, f"--{view}", "--format", "json", "--full").data
        if view in OF_PROGRAMS:
            rows = data[view]
        elif view == "memory":
            rows = [{"run": run["run"], **row} for run in data["runs"] for row in run[view]["buffers"]]
        else:
            rows = [{"run": run["run"], **row} for run in data["runs"] for row in run[view]]
        rows = [of_json(row) for row in rows]
        agree((name, view, "CSV"), rows, of_csv(call("open", name, f"--{view}", "--format", "csv").out))
        table = of_sql(name, NAMES_IN_SQL.get(view, view))
        if view == "findings":
            table = [row for row in table if row["source"] == "program"]
        if view == "kernels":  # SQL has also those that were not measured, and the order of execution
            table = [row for row in table if row["executions"] is not None]
            rows, table = (sorted(each, key=lambda row: (row["run"], row["name"])) for each in (rows, table))
        agree((name, view, "SQL"), table, rows)


def run_columns(run, data):
    """The columns of a run: its keys, those of its objects and of its phase `run` without their names, and those of
    other phases after the name of the phase."""
    found = {f"{name}_{key}": cell for name, phase in run["phases"].items() for key, cell in phase.items()}
    found |= run["phases"].get("run", {})
    for name in ("memory", "versus", "revision", "check"):
        found |= run.get(name) or {}
    found["check_passed"] = found.get("passed")
    warned = [*run["warnings"], *(data["findings"] if run["how"] == "program" else ())]
    found["warning_codes"] = [warning["code"] for warning in warned]
    if run["how"] == "program":
        for stage in ("trace", "lower", "compile"):
            times = [row[f"{stage}_seconds"] for row in data["compiles"] if row[f"{stage}_seconds"] is not None]
            found[f"{stage}_seconds"] = sum(times) if times else None
    return found | {key: cell for key, cell in run.items() if key not in ("versus", "memory", "check", "revision")}


@pytest.mark.usefixtures("files")
def test_runs(call):
    for name in sessions():
        data = call("open", name, "--format", "json", "--full").data
        rows = [run_columns(run, data) for run in data["runs"]]
        table = of_sql(name, "runs")
        agree((name, "CSV"), table, of_csv(call("open", name, "--format", "csv").out))
        agree((name, "JSON"), rows, table, [fact.key for fact in RUNS.facts])


def cells(text):
    return {cell for line in text.splitlines() for cell in re.split(r"\s{2,}", line.strip())}


def shown(facts, row):
    """The figures of a row as people read them."""
    titled = [fact for fact in facts if fact.title and fact.unit.right]
    return {fact.shown(row[fact.key]) for fact in titled if row.get(fact.key) is not None}


@pytest.mark.parametrize("name", ["runs.jaxprof", "captured.jaxprof", "modes.jaxprof"])
@pytest.mark.usefixtures("files")
def test_text_has_the_figures_of_json(call, name):
    data = call("open", name, "--format", "json", "--full").data
    text = call("open", name, "--format", "text").out
    for run in data["runs"]:
        missing = shown(RUNS.facts, run_columns(run, data)) - cells(text)
        assert not missing, f"{run['run']}: a fact with a title, but no `pick` of `report/runs.py` shows {missing}"
    for view in ("kernels", "steps"):
        text = call("open", name, f"--{view}", "--format", "text").out
        for run in call("open", name, f"--{view}", "--format", "json", "--full").data["runs"]:
            for row in run[view]:
                assert not shown(view_of(view).facts, row) - cells(text), (view, row)


@pytest.mark.usefixtures("files")
def test_what_a_session_holds(call):
    for name in sessions():
        data = call("open", name, "--format", "json", "--full").data
        kernels = [{"run": run["run"], **of_json(row)} for run in data["runs"] for row in run.get("kernels") or ()]
        agree((name, "kernels"), kernels, of_sql(name, "kernels"))
        for table in ("copies", "device_steps", "trust"):
            rows = [{"run": run["run"], **figures(row)} for run in data["runs"] for row in run.get(table) or ()]
            agree((name, table), rows, of_sql(name, table))
        told = {**data["session"], **data["environment"], "jaxprof": data["jaxprof"]}
        (row,) = of_sql(name, "sessions")
        row |= {"created": f"{row['created']:%Y-%m-%dT%H:%M:%SZ}", "path": str(Path(name).absolute())}
        agree((name, "sessions"), [figures(told)], [row])
        samples = of_sql(name, "samples")
        for run in data["runs"]:
            disturbed = any(warning["code"] == "disturbed" for warning in run["warnings"])
            series = [row for row in samples if row["run"] == run["run"]]
            steady = [row["seconds"] for row in series if row["series"] == ("alone" if disturbed else "run")]
            assert steady == run["samples_seconds"], name


@pytest.mark.usefixtures("files")
def test_phases(call):
    """Those of a run with one launch; of more, SQL has each launch."""
    for name in sessions():
        data = call("open", name, "--format", "json", "--full").data
        rows = of_sql(name, "phases")
        for run in (run for run in data["runs"] if run["launches"] in (None, 1)):
            startup = run["phases"].pop("startup", {})
            phases = run["phases"] | {key: {"seconds": startup[key]} for key in STARTUP_PHASES if key in startup}
            of_run = {row["phase"]: row for row in rows if row["run"] == run["run"]}
            for phase, told in phases.items():
                found = of_run.pop(phase, {})
                keys = {"total_seconds" if phase in SAMPLED_PHASES else "seconds", *(told.keys() & PHASE_KEYS)}
                assert {key: told[key] for key in keys} == {key: found.get(key) for key in keys}, (name, phase)
            assert not of_run, name


@pytest.mark.usefixtures("files")
def test_a_program(call):
    for name in sessions():
        data = call("open", name, "--format", "json", "--full").data
        if "program" not in data:
            continue
        for table in ("lines", "loops"):
            agree((name, table), of_sql(name, table), [figures(row) for row in data["program"][table]])
        objects = [key for key, cell in data["program"].items() if isinstance(cell, dict)]
        columns = {f"{key}_{inner}": cell for key in objects for inner, cell in data["program"][key].items()}
        (row,) = of_sql(name, "programs")
        told = {key: cell for key, cell in (data["program"] | columns).items() if key in row}
        agree((name, "programs"), [row], [told])


@pytest.mark.usefixtures("files")
def test_exact_facts_of_a_comparison(call):
    names = {"before": "captured.jaxprof", "after": "again.jaxprof"}
    (found,) = call("compare", *names.values(), "--format", "json", "--full").data["comparisons"]
    for side, name in names.items():
        table = {row["run"]: row for row in of_sql(name, "runs")}
        for pair in found["runs"]:
            row = table[pair[side]["run"]]
            told = {fact["fact"]: fact[side] for fact in pair["facts"] if fact["fact"] in row}
            assert told == {key: row[key] for key in told}
            assert row["how"] != "jit" or {"flops", "peak_bytes", "argument_bytes"} <= set(told)


@pytest.mark.usefixtures("files")
def test_a_job(call):
    processes = call("open", "run.jaxprof.d", "--format", "json", "--full").data["processes"]
    agree("CSV", list(map(figures, processes)), of_csv(call("open", "run.jaxprof.d", "--format", "csv").out))
    for row in processes:
        (found,) = of_sql(row.pop("path"), "processes")
        agree("SQL", [found], [figures(row)])


@pytest.mark.usefixtures("files")
def test_kernels_of_hlo(call):
    for name in ("captured.jaxprof", "large.hlo", "costs.hlo", "early.hlo", "cut.hlo"):
        said = [call("hlo", name, "--kernels", "--format", *form) for form in (("json", "--full"), ("csv",))]
        rows = [
            {"label": program["label"], **row} for program in said[0].data["programs"] for row in program["kernels"]
        ]
        agree(name, list(map(figures, rows)), of_csv(said[1].out), ["label", *COLUMNS_OF_HLO])


EXCHANGE = """HloModule m, is_scheduled=true, num_partitions=8

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT sum = f32[] add(a, b)
}

ENTRY e {
  p = f32[1048576] parameter(0)
  ROOT all = f32[1048576] all-reduce(p), replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=add
}
"""


def test_a_collective_over_links(call, tmp_path):
    plan = e.RunPlanned(run="r1", spec=e.RunSpec(workload="f", variant="jit", how="compile", device="h100:8"))
    path = written(tmp_path / "s.jaxprof", [plan, e.TextRecorded(run="r1", name="hlo", text=EXCHANGE)], HEADER)
    (program,) = call("hlo", path, "--kernels", "--format", "json", "--full").data["programs"]
    assert program["kernels"][0]["bound"] == "links"
    columns = [key for key in COLUMNS_OF_HLO if key != "share"]  # of another whole
    agree("kernels", of_sql(path, "kernels"), list(map(figures, program["kernels"])), columns)


SCALARS = ("string", "number", "integer", "boolean")


def places(facts, place):
    for fact in facts:
        if fact.key:
            yield fact.key, fact.unit, f"{place}.{fact.key}"
            yield from places(fact.inside, f"{place}.{fact.key}")


def test_a_figure_has_one_unit():
    """Except for what two sides of a difference have, which are figures and texts."""
    found = defaultdict(lambda: defaultdict(list))
    ways = {kind: facts_of_answer(kind) for kind in KINDS} | {f"table {name}": TABLES[name].facts for name in TABLES}
    for way, facts in ways.items():
        for key, unit, place in places(facts, way):
            if unit.json in SCALARS:
                found[key][unit.sql, unit.json].append(place)
    assert {key: dict(units) for key, units in found.items() if len(units) > 1}.keys() == {"before", "after"}
