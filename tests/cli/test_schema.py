"""Answers of every kind are as their schemas say; `cli.calling` looks at those of every other test."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import kept_histories
import program_events
from answer_schemas import hold, problems, schema_of
from cli.test_baseline import keep
from folding import fold, written
from jaxprof import events as e
from jaxprof.analysis.ab import ab_results
from jaxprof.analysis.gate import GateBase, GateResult, judged_times, read_limits
from jaxprof.cli import kinds
from jaxprof.report.comparison_report import ab_json
from jaxprof.report.device_list import devices_report
from jaxprof.report.envelope import answer_pieces
from jaxprof.report.gate import gate_json
from job_folders import captures, job, loop, process
from report import sessions, test_sides
from report.test_device_list import CPU_READING, GPU_READING, joined
from tui import profiles

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
ROW: dict[str, Any] = {
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
KINDS = sorted((*kinds.KINDS, "error"))
DOCUMENT = Path(__file__).parents[2] / "docs" / "json.md"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a session of each sort, HLO, a baseline and a history."""
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
        "traced": profiles.captured().events,
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
    job(tmp_path / "slower.jaxprof.d", *(loop(host=0.2) for _ in range(4)))
    process(tmp_path / "run.jaxprof.d", 3, 4, program_events.compiled(), exit_code=1)
    damaged = job(tmp_path / "damaged.jaxprof.d", loop(), loop(), loop())
    process(damaged, 2, 3, *loop())
    (damaged / "process-00001.jaxprof").write_text("no session\n")
    with (damaged / "process-00000.jaxprof").open("a") as file:
        file.write("no event\n")
    keep(tmp_path / "before.jaxprof")
    keep(tmp_path / "after.jaxprof", 120)
    for number, median in enumerate(kept_histories.medians((0.010, 9), (0.0125, 8))):
        version = "0.10.2" if number < 9 else "0.11.0"
        kept_histories.keep(tmp_path / "history", number, kept_histories.run("r1", median, jax=version))
    return tmp_path


@pytest.fixture
def files(made: Path, tmp_path: Path, state_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of that, which is the current folder."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    (tmp_path / "history").rename(state_home / "sessions")
    monkeypatch.chdir(tmp_path)


_SESSIONS = ("runs", "captured", "program", "sides", "modes", "remade", "torn")
_ONCE = {"error", "export", "explanation", "finding", "catalogue", "sessions-rename", "baseline-delete"}
"""What has no `--full`, or cannot be done twice."""
_COMMANDS: dict[str, Sequence[str]] = {
    "session": [f"show {name}.jaxprof" for name in _SESSIONS],
    **{
        f"session-{view}": [f"show captured.jaxprof --{view}"]
        for view in ("kernels", "compile", "steps", "memory", "trust")
    },
    **{
        f"session-{view}": [f"show program.jaxprof --{view}", f"show remade.jaxprof --{view}"]
        for view in ("compiles", "findings", "transfers", "timeline")
    },
    "session-lanes": ["show traced.jaxprof --lanes --from 2ms --to 4ms"],
    "session-flame": ["show captured.jaxprof --flame", "show program.jaxprof --flame"],
    "comparison": ["compare runs.jaxprof captured.jaxprof", "compare program.jaxprof sides.jaxprof",
                   "compare captured.jaxprof again.jaxprof", "compare sides.jaxprof:r1 sides.jaxprof:r2",
                   "compare program.jaxprof remade.jaxprof", "compare sides.jaxprof torn.jaxprof"],
    "history": ["history"],
    "job-comparison": ["compare run.jaxprof.d plain.jaxprof.d", "compare run.jaxprof.d slower.jaxprof.d"],
    "job": ["show run.jaxprof.d", "show plain.jaxprof.d"],
    "rollup": ["rollup damaged.jaxprof.d --all --workers 1"],
    "gate": ["gate after.jaxprof --base before.jaxprof --fail-on flops --fail-on kernels",
             "gate after.jaxprof --base main --fail-on flops"],
    "hlo": ["hlo small.hlo", "hlo cut.hlo", "hlo large.hlo", "hlo captured.jaxprof"],
    "hlo-kernels": ["hlo cut.hlo --kernels", "hlo captured.jaxprof --kernels"],
    "hlo-findings": ["hlo cut.hlo --findings", "hlo large.hlo --findings", "hlo captured.jaxprof --findings"],
    "hlo-barriers": ["hlo cut.hlo --barriers", "hlo large.hlo --barriers", "hlo captured.jaxprof --barriers"],
    "hlo-flame": ["hlo cut.hlo --flame", "hlo large.hlo --flame", "hlo captured.jaxprof --flame"],
    "hlo-memory": ["hlo cut.hlo --memory", "hlo large.hlo --memory", "hlo captured.jaxprof --memory"],
    "hlo-stage": ["hlo small.hlo --stage hlo"],
    "hlo-diff": ["hlo small.hlo --diff large.hlo", "hlo small.hlo --diff changed.hlo",
                 "hlo apart.hlo --diff tiled.hlo"],
    "sessions": ["sessions"],
    "workloads": ["workloads"],
    "workload": ["workloads selu"],
    "targets": ["target list"],
    "target-remove": ["target remove tpu"],
    "explanation": [*(f"explain {name}.jaxprof" for name in _SESSIONS), "explain run.jaxprof.d"],
    "finding": ["explain --code host-sync", "explain --code cache-off"],
    "catalogue": ["explain --code all"],
    "baselines": ["baseline list"],
    "baseline": ["baseline show main"],
    "query": ["query runs.jaxprof 'SELECT workload FROM runs'"],
    "query-schema": ["query --schema"],
    "sessions-path": ["sessions path"],
    "config": ["config"],
    "sessions-rename": ["sessions rename session-001 renamed"],
    "sessions-scrub": ["sessions scrub runs.jaxprof -o scrubbed.jaxprof --force"],
    "sessions-delete": ["sessions prune --keep 99 --yes"],
    "baseline-save": ["baseline save main before.jaxprof --force"],
    "baseline-delete": ["baseline delete main --yes"],
    "error": ["show nothing"],
}  # fmt: skip


def sides() -> list[e.Event]:
    """Sides whose programs are known."""
    programs = {"r1": sessions.HLO, "r2": CHANGED}
    texts = [e.TextRecorded(run=run, name="hlo", text=text) for run, text in programs.items()]
    warning = e.WarningRaised(run="r2", code="noise", message="noisy", advice="Close other programs.")
    more = (test_sides.AGREE, *texts, warning, sessions.environment("r2", "0.11.0"))
    found: list[e.Event] = []
    for event in test_sides.events_with(0.5e-3, test_sides.PLAN, *more):
        found.append(event)
        if isinstance(event, e.WorkerStarted):
            found.append(e.PhaseEnded(run=event.run, phase="compile", seconds=0.02))
    return found


def gate_of_times() -> dict[str, Any]:
    measured = ab_results(fold(sessions.HEADER, sides()))[0]
    base = GateBase("HEAD", "revision", "/home/me/work", commit="19789fa", dirty=True)
    rows = judged_times("train.py:step", measured, read_limits(["run:5%"]))
    return gate_json(GateResult(base=base, rows=tuple(rows), notes=("a note",), measured=measured))


_MADE: dict[str, Callable[[], dict[str, Any]]] = {
    "ab": lambda: {"session": "s.jaxprof", **ab_json(ab_results(fold(sessions.HEADER, sides()))[0])},
    "gate": gate_of_times,
    "devices": lambda: devices_report(joined(), [GPU_READING, CPU_READING]),
    "target-install": lambda: {"vendor": "nvidia", "path": "/home/me", "was_installed": False},
}
"""What only a measurement, other hardware or a download would print; `hold` looks at what real ones do."""


@pytest.mark.process
@pytest.mark.parametrize("kind", sorted({*_COMMANDS, *_MADE}))
@pytest.mark.usefixtures("files")
def test_an_answer_is_short_and_as_its_schema_says(call, kind):
    """`call` looks at each."""
    if kind.startswith("query") or kind == "rollup":
        pytest.importorskip("duckdb")
        pytest.importorskip("pyarrow")
    call("config", "set", "keys.results.compare", "s")
    call("baseline", "save", "main", "before.jaxprof")
    call("gate", "after.jaxprof", "--base", "main", "--fail-on", "flops", "--accept", "it may")
    printed = []
    for line in _COMMANDS.get(kind, ()):
        words = [*shlex.split(line), *(() if kind == "export" else ("--format", "json"))]
        printed.append(call(*words).out)
        assert len(printed[-1]) < 32_000
        if kind not in _ONCE:
            printed.append(call(*words, "--full").out)
    if kind in _MADE:
        printed += ["".join(answer_pieces(kind, _MADE[kind](), ["jaxprof"], limit)) for limit in (0, None)]
    for answer in map(json.loads, printed):
        assert answer["kind"] == kind, answer
        hold(answer)


def test_every_kind_is_printed_and_in_the_documents():
    assert set(KINDS) == {*_COMMANDS, *_MADE}
    words = " ".join(re.findall(r"`([^`\n]+)`", DOCUMENT.read_text()))
    assert [kind for kind in KINDS if kind not in words and f"-{kind.partition('-')[2]}" not in words] == []


def test_what_a_schema_does_not_have_is_found():
    schema = schema_of("error")
    answer = {"schema": "3.0", "kind": "error", "error": {"code": "usage", "message": "m", "hint": None}}
    assert list(problems(answer, schema)) == []
    for error, wrong in (
        ({"code": 1, "message": "m", "hint": None}, "/error/code is of type integer"),
        ({**answer["error"], "more": 1}, "/error/more is not in the schema"),
        ({"code": "usage", "hint": None}, "/error has no message"),
    ):
        assert list(problems(answer | {"error": error}, schema)) == [wrong]
    assert list(problems(answer | {"kind": "other"}, schema)) == ["/kind is 'other'"]
