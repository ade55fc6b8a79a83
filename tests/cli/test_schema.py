"""Answers in JSON: those of every kind are as their schemas say (`cli.calling` looks at those of every other test),
and a recorded program leaves stdout to them."""

import json
import re
import runpy
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import jaxprof
import program_events
from answer_schemas import hold, problems, schema_of
from cli.compiled import compiled
from folding import fold, written
from golden import commands
from jaxprof import events as e
from jaxprof.analysis.runs.ab import ab_results
from jaxprof.cli import answer_schemas as kinds
from jaxprof.cli.main import wants_json
from jaxprof.facts import recorder
from jaxprof.facts.comparisons import ab_json
from jaxprof.facts.devices import DEVICES, list_devices
from jaxprof.facts.gate import GATE, read_limits
from jaxprof.findings.compare.gate import GateBase, GateResult, judge_times
from jaxprof.report.envelope import answer_pieces
from job_folders import captures, job, loop, process
from report import sessions, test_sides
from report.test_device_list import CPU_READING, GPU_READING, joined
from tables import rows

TWO_MODES = [
    sessions.plan("r1", "numpy", "numpy"),
    e.WorkerStarted(run="r1", pid=100, python="/usr/bin/python3"),
    e.RevisionRead(run="r1", repository="/home/me/work", commit="19789fa", dirty=None),
    e.PhaseEnded(run="r1", phase="first_run", seconds=0.1, note="a note"),
    e.SamplesTaken(
        run="r1", series="run", seconds=[(1 + number % 2) * 1e-3 * (1 + 1e-4 * number) for number in range(100)]
    ),
    e.RunFinished(run="r1", status="ok"),
]
ROW = {
    "made_at": program_events.at(70),
    "factory": "make_step",
    "closure": [e.ClosureChange(name="rate", before="0.1", now="0.2")],
    "cleared_at": program_events.at(71),
    "signature": [
        program_events.leaf("x", "f32[4]", weak_type=True, sharding="data"),
        program_events.leaf("n", "3", static=True),
        program_events.leaf("y", "f32[4]", bytes=16, replaced=True),
        program_events.leaf("z", "f32[4]", bytes=16, zero_copy=True),
    ],
    "unused_donations": [e.ProgramArray(name="p", type="f32[4]", bytes=16)],
    "constants": [e.ProgramArray(type="f32[300]", bytes=1200)],
    "thread": "loader",
    "cache": "hit",
    "saved_seconds": 1.5,
}
"""What few compilations have."""
REMADE = [
    e.ProgramStarted(run=program_events.RUN, argv=["train.py"], how="script", options={"function": "step"}),
    program_events.compiled("step", "closure", **ROW),
    e.ProgramStopped(run=program_events.RUN, began_seconds=program_events.BEGAN + 3, seconds=1.0, found_by="state"),
]
CHANGED = sessions.HLO.replace("exponential", "tanh")
CUT_OFF = sessions.HLO[: sessions.HLO.index("ROOT %fusion")] + "what is this\n"
EARLY = "HloModule m\n\nENTRY e {\n  p = f32[8]{0} parameter(0)\n  ROOT r = f32[8]{0} add(p, p)\n}\n"
"""Before XLA's passes."""
COSTS = """HloModule m, is_scheduled=true

ENTRY e {
  x = f32[8] parameter(0)
  y = f32[512] parameter(1)
  small = f32[8] sine(x)
  large = f32[512] add(y, y)
  heavy = f32[512] divide(large, y)
  lib = f32[512] custom-call(heavy), custom_call_target="opaque"
  ROOT t = (f32[8], f32[512]) tuple(small, lib)
}
"""
APART = """HloModule m, is_scheduled=true

ENTRY %%main (x: f32[8]) -> (f32[8], f32[8]) {
  %%x = f32[8]{0} parameter(0)
  %%k = f32[8]{0} negate(%%x), backend_config={"num_warps":"%s"}
  %%c = f32[8]{0} custom-call(%%k), custom_call_target="tpu_custom_call", backend_config={"body":"%s"}
%s
%s
  ROOT %%t = (f32[8]{0}, f32[8]{0}) tuple(%%a, %%b)
}
"""
"""The same computed in another way: warps, the code of a custom kernel, two lines in either order."""
ORDER = ("  %a = f32[8]{0} sine(%c)", "  %b = f32[8]{0} cosine(%c)")
DOCUMENT = Path(__file__).parents[2] / "docs" / "json.md"
_SUM = """HloModule jit_step, is_scheduled=true

ENTRY main {{
  x = f32[{flops}]{{0}} parameter(0)
  ROOT sum = f32[{flops}]{{0}} add(x, x)
}}
"""


def keep(path, flops=100):
    donated = e.MemoryReported(run="r1", alias_bytes=64)
    events = compiled(_SUM.format(flops=flops), sessions.environment("r1", "0.10.2"), donated)
    return written(path, [*events, e.RunFinished(run="r1", status="ok"), e.SessionClosed()], sessions.HEADER)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a session of each sort, HLO and a kept session."""
    tmp_path = tmp_path_factory.mktemp("made")
    with_other_hlo = [
        replace(event, text=CHANGED) if isinstance(event, e.TextRecorded) and event.name == "hlo" else event
        for event in sessions.captured_events()
    ]
    single = [
        replace(event, seconds=event.seconds[:1]) if isinstance(event, e.SamplesTaken) else event
        for event in sessions.events()
    ]
    for name, events in {
        "empty": [e.SessionClosed()],
        "single": single,
        "runs": sessions.events(),
        "captured": sessions.captured_events(),
        "sides": sides(),
        "swept": sessions.swept_events(),
        "planned": sessions.torn_events(),
        "again": with_other_hlo,
        "modes": TWO_MODES,
        "torn": sessions.events(),
    }.items():
        written(tmp_path / f"{name}.jaxprof", events, sessions.HEADER)
    for name, events in {
        "program": program_events.training_events(),
        "cut_off": program_events.cut_off_events(),
        "without_jax": program_events.without_jax_events(),
        "remade": program_events.program(*REMADE, *program_events.shaped(3)),
    }.items():
        written(tmp_path / f"{name}.jaxprof", events, program_events.HEADER)
    (tmp_path / "changed.hlo").write_text(CHANGED)
    (tmp_path / "apart.hlo").write_text(APART % ("4", "A" * 300, *ORDER))
    (tmp_path / "tiled.hlo").write_text(APART % ("8", "B" * 300, *reversed(ORDER)))
    with (tmp_path / "torn.jaxprof").open("a") as file:
        file.write("no event\n")
    (tmp_path / "cut.hlo").write_text(CUT_OFF)
    (tmp_path / "early.hlo").write_text(EARLY)
    (tmp_path / "costs.hlo").write_text(COSTS)
    (tmp_path / "large.hlo").write_text(sessions.TRANSPOSES)
    (tmp_path / "small.hlo").write_text(sessions.HLO)
    taken = captures(3, late=0)
    loops = [loop(), loop(data=0.3), loop()]
    job(tmp_path / "run.jaxprof.d", *([*inside, *captured] for inside, captured in zip(loops, taken, strict=True)))
    job(tmp_path / "plain.jaxprof.d", loop(), loop())
    process(tmp_path / "run.jaxprof.d", 3, 4, program_events.compiled(), exit_code=1)
    damaged = job(tmp_path / "damaged.jaxprof.d", loop(), loop(), loop())
    process(damaged, 2, 3, *loop())
    (damaged / "process-00001.jaxprof").write_text("no session\n")
    with (damaged / "process-00000.jaxprof").open("a") as file:
        file.write("no event\n")
    keep(tmp_path / "before.jaxprof")
    keep(tmp_path / "after.jaxprof", 120)
    (tmp_path / "sessions").mkdir()
    keep(tmp_path / "sessions" / "kept.jaxprof")
    return tmp_path


@pytest.fixture
def files(made, tmp_path, state_home, monkeypatch):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    (tmp_path / "sessions").rename(state_home / "sessions")
    monkeypatch.chdir(tmp_path)


ASKED = """
open modes.jaxprof
open remade.jaxprof
open torn.jaxprof
open remade.jaxprof --compiles
open remade.jaxprof --findings
open remade.jaxprof --transfers
open remade.jaxprof --timeline
compare runs.jaxprof captured.jaxprof
compare program.jaxprof sides.jaxprof
compare sides.jaxprof torn.jaxprof
open run.jaxprof.d
open plain.jaxprof.d
gate after.jaxprof --base before.jaxprof --fail-on flops --fail-on kernels
gate after.jaxprof --base before.jaxprof --fail-on flops
hlo small.hlo
hlo cut.hlo
hlo captured.jaxprof
hlo cut.hlo --kernels
hlo cut.hlo --findings
hlo captured.jaxprof --findings
hlo cut.hlo --barriers
hlo captured.jaxprof --barriers
hlo cut.hlo --memory
hlo small.hlo --stage hlo
hlo small.hlo --diff changed.hlo
hlo apart.hlo --diff tiled.hlo
sessions
run --describe
run --describe selu
devices target list
config
query runs.jaxprof 'SELECT workload FROM runs'
query --schema
sessions rollup damaged.jaxprof.d --all --workers 1
""".strip().splitlines()
"""Commands whose answers in JSON `tests/net` does not have, and that have more to say with `--full`."""
ASKED_ONCE = """
explain captured.jaxprof
explain sides.jaxprof
explain modes.jaxprof
explain remade.jaxprof
explain torn.jaxprof
explain --code host-sync
explain --code cache-off
explain --code all
open nothing
""".strip().splitlines()


def sides():
    programs = {"r1": sessions.HLO, "r2": CHANGED}
    texts = [e.TextRecorded(run=run, name="hlo", text=text) for run, text in programs.items()]
    warning = e.WarningRaised(run="r2", code="noise", message="noisy", advice="Close other programs.")
    more = (test_sides.AGREE, *texts, warning, sessions.environment("r2", "0.11.0"))
    found = []
    for event in test_sides.events_with(0.5e-3, test_sides.PLAN, *more):
        found.append(event)
        if isinstance(event, e.WorkerStarted):
            found.append(e.PhaseEnded(run=event.run, phase="compile", seconds=0.02))
    return found


def gate_of_times():
    measured = ab_results(fold(sessions.HEADER, sides()))[0]
    base = GateBase("HEAD", "revision", "/home/me/work", commit="19789fa", dirty=True)
    rows = judge_times("train.py:step", measured, read_limits(["run:5%"]))
    return recorder(GATE)(GateResult(base=base, rows=tuple(rows), notes=("a note",), measured=measured))


MADE = {
    "ab": lambda: {"path": "s.jaxprof", **ab_json(ab_results(fold(sessions.HEADER, sides()))[0])},
    "gate": gate_of_times,
    "devices": lambda: {"devices": list(map(recorder(DEVICES), list_devices(joined(), [GPU_READING, CPU_READING])))},
}
"""What only a measurement, other hardware or a download would print; `hold` looks at what real ones do."""


@pytest.mark.process
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.usefixtures("files")
def test_an_answer_is_short_and_as_its_schema_says(call, full):
    pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    call("config", "set", "keys.results.compare", "s")
    held = [line.removesuffix(" --format json") for lines in commands().values() for line in lines if "json" in line]
    found = set()
    if full:
        held = [line for line in held if not line.startswith("explain")]
    for line in (*held, *ASKED, *(() if full else ASKED_ONCE)):
        said = call(*shlex.split(line), "--format", "json", *(("--full",) if full else ())).out
        answer = json.loads(said)
        assert answer["kind"] != "error" or "nothing" in line, answer
        assert full or "--full" in line or len(said) < 32_000
        found.add(answer["kind"])
    assert full or found | set(MADE) == {*kinds.KINDS, "error"}


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("limit", [0, None])
def test_an_answer_of_a_measurement_is_as_its_schema_says(kind, limit):
    hold(json.loads("".join(answer_pieces(kind, MADE[kind](), ["jaxprof"], limit))))


def test_every_kind_is_in_the_documents():
    words = " ".join(re.findall(r"`([^`\n]+)`", DOCUMENT.read_text()))
    assert [kind for kind in kinds.KINDS if kind not in words and f"-{kind.partition('-')[2]}" not in words] == []


def test_the_documents_name_no_other_kinds():
    (table,) = re.findall(r"^\| kind \| printed by \|\n\|---\|---\|\n((?:\|.*\n)+)", DOCUMENT.read_text(), re.MULTILINE)
    named = [re.findall(r"`([^`]+)`", row.split("|")[1]) for row in table.splitlines()]
    told = [f"{row[0].partition('-')[0]}{kind}" if kind.startswith("-") else kind for row in named for kind in row]
    assert sorted(told) == sorted(kinds.KINDS)


def test_every_code_of_an_error_is_in_the_documents():
    source = Path(kinds.__file__).parents[1]
    written = (source / "base" / "errors.py").read_text() + (source / "cli" / "agent_server.py").read_text()
    codes = re.findall(r"(?:^    code(?:: ClassVar\[str\])? = |error_text\(\s*)\"(\w+)", written, re.MULTILINE)
    assert {"usage", "failed", "not_allowed", "too_long"} <= set(codes)
    (sentence,) = re.findall(r"^`code` is .*?\n\n", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    assert [code for code in dict.fromkeys(codes) if f"`{code}`" not in sentence] == []


def test_of_a_kind_that_is_not_there_the_others_are_named(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["kinds", "target-install"])
    with pytest.raises(SystemExit, match=r"one of ab, catalogue, .*targets"):
        runpy.run_path(kinds.__file__, run_name="__main__")


def test_what_a_schema_does_not_have_is_found():
    schema = schema_of("error")
    answer = {"schema": "1.0", "kind": "error", "error": {"code": "usage", "message": "m", "hint": None}}
    assert list(problems(answer, schema)) == []
    for error, wrong in (
        ({"code": 1, "message": "m", "hint": None}, "/error/code is of type integer"),
        ({**answer["error"], "more": 1}, "/error/more is not in the schema"),
        ({"code": "usage", "hint": None}, "/error has no message"),
    ):
        assert list(problems(answer | {"error": error}, schema)) == [wrong]
    assert list(problems(answer | {"kind": "other"}, schema)) == ["/kind is 'other'"]


def test_all_of_a_session_is_what_the_api_has(call, kept):
    data = call("open", kept, "--format", "json", "--full").data
    assert data["session"].pop("path") == str(kept)
    assert data == json.loads(json.dumps(jaxprof.load(kept).to_dict()))


def test_json_is_requested_by_words_that_do_not_parse():
    for line, wanted in rows("""
        open last --format json           yes
        open last --format=json           yes
        open last --format text           no
        open json --format                no
        open last -- --format json        no
        script --format json train.py     yes
        script train.py --format json     no
        script -m package --format=json   no
    """):
        assert wants_json(line.split()) is (wanted == "yes"), line
