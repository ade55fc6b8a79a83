"""`jaxprof compare`: pairs whose truth is known, as text, JSON, Markdown and CSV; and what cannot be compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import program_events as made
from cli.calling import Caller
from folding import fold, written
from jaxprof import events as e
from jaxprof.analysis.opener import modules_of
from jaxprof.cli import hlo_target
from jaxprof.cli.hlo_target import TargetModule
from job_folders import job, loop
from report import sessions

pytestmark = pytest.mark.usefixtures("state_home")


def _write(path: Path, events: Iterable[e.Event], **header: Any) -> Path:
    written(path, events, replace(sessions.HEADER, session=path.stem, **header))
    return path


@pytest.fixture
def first(tmp_path: Path) -> Path:
    return _write(tmp_path / "first.jaxprof", sessions.events())


def test_more_than_two_are_each_compared_with_the_first(call: Caller, first: Path, tmp_path: Path) -> None:
    others = [_write(tmp_path / f"{name}.jaxprof", sessions.events()) for name in ("b", "c")]
    data = call("compare", first, *others, "--format", "json").data["comparisons"]
    assert [(one["before"]["session"], one["after"]["session"]) for one in data] == [("first", "b"), ("first", "c")]
    rows = call("compare", first, *others, "--format", "csv").out.splitlines()
    assert sum(row.startswith("run_before") for row in rows) == 1


def test_another_size_is_listed_and_not_compared(call: Caller, first: Path, tmp_path: Path) -> None:
    second = _write(tmp_path / "second.jaxprof", [*sessions.numpy_run("r1", n=7), e.SessionClosed()])
    said = call("compare", first, second)
    assert said.code == 0
    assert "only in the first session: r1 selu numpy cpu:0 (n = 1" in said.out
    assert "only in the second session: r1 selu numpy cpu:0 (n = 7)" in said.out
    named = call("compare", f"{first}:r1", f"{second}:r1")
    assert "not the same measurement: another n (1000000, 7)" in named.out
    assert "inconclusive: another n" in named.out


def test_one_session_alone_and_a_run_beside_a_session(call: Caller, first: Path, tmp_path: Path) -> None:
    assert "two sessions" in call("compare", first).err
    second = _write(tmp_path / "second.jaxprof", sessions.events())
    said = call("compare", f"{first}:r1", second)
    assert (said.code, "whole session" in said.err) == (2, True)
    unknown = call("compare", f"{first}:r9", f"{second}:r1")
    assert (unknown.code, "r9" in unknown.err) == (2, True)


def test_unfinished_empty_and_single_sample_sessions(call: Caller, first: Path, tmp_path: Path) -> None:
    cut = _write(tmp_path / "cut.jaxprof", [*sessions.numpy_run("r1")[:3]])
    text = cut.read_bytes()
    cut.write_bytes(text[: text.rindex(b"\n", 0, len(text) - 1) + 1])  # without what closes it
    said = call("compare", first, cut)
    assert said.code == 0
    assert "interrupted" in said.out
    assert "inconclusive" in said.out
    empty = _write(tmp_path / "empty.jaxprof", [e.SessionClosed()])
    said = call("compare", first, empty)
    assert (said.code, "the second has no runs" in said.out) == (0, True)
    single = [
        replace(one, seconds=one.seconds[:1]) if isinstance(one, e.SamplesTaken) else one for one in sessions.events()
    ]
    said = call("compare", first, _write(tmp_path / "single.jaxprof", single))
    assert (said.code, "inconclusive: not measured together" in said.out) == (0, True)


def _compiled_for(*devices: str, hlo: str = sessions.HLO) -> list[TargetModule]:
    events: list[e.Event] = []
    for number, device in enumerate(devices, 1):
        spec = e.RunSpec(workload="step", variant="jit", how="compile", device=device)
        events += [e.RunPlanned(run=f"r{number}", spec=spec), e.TextRecorded(run=f"r{number}", name="hlo", text=hlo)]
        events.append(e.RunFinished(run=f"r{number}", status="ok"))
    session = fold(sessions.HEADER, events)
    return [TargetModule(stages, session) for stages in modules_of(session)]


def test_programs_for_devices_that_are_not_here(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {
        "old.py:step": _compiled_for("h100", "tpu-v5e"),
        "new.py:step": _compiled_for("h100", "tpu-v5e", hlo=sessions.HLO.replace("f32", "bf16")),
        "other.py:step": _compiled_for("a100"),
    }
    monkeypatch.setattr(hlo_target, "find_modules", lambda name, *_, **__: known[name])
    words = ("compare", "--for", "h100,tpu-v5e", "old.py:step", "new.py:step")
    data = call(*words, "--format", "json").data["comparisons"]
    assert [one["runs"][0]["after"]["device"] for one in data] == ["h100", "tpu-v5e"]
    assert [one["runs"][0]["differs"] for one in data] == [True, True]
    assert call(*words).out.count("kernels: 1 changed") == 2
    said = call("compare", "--for", "h100", "old.py:step", "other.py:step")
    assert (said.code, "no device in common" in said.err) == (2, True)


def test_the_only_function_of_each_session_is_the_same_function(call: Caller, tmp_path: Path) -> None:
    def session(name: str, *functions: str) -> Path:
        events: list[e.Event] = []
        for number, function in enumerate(functions, 1):
            spec = e.RunSpec(
                workload=function, variant="jit", how="jit", device="cpu:0", target=f"/somewhere/{function}"
            )
            events += [e.RunPlanned(run=f"r{number}", spec=spec), e.RunFinished(run=f"r{number}", status="ok")]
        return _write(tmp_path / f"{name}.jaxprof", events)

    old, new, both = session("a", "old.py:step"), session("b", "new.py:step"), session("c", "new.py:step", "new.py:f")
    assert "old.py:step jit cpu:0 → new.py:step jit cpu:0" in call("compare", old, new).out
    assert "only in the first session: r1 old.py:step" in call("compare", old, both).out


def test_the_answer_about_two_programs_names_the_findings_that_only_one_has(call: Caller, tmp_path: Path) -> None:
    slow = made.program(*made.shaped(33, compile_seconds=0.1), wall=10.0)
    before = _write(tmp_path / "before.jaxprof", slow)
    after = _write(tmp_path / "after.jaxprof", made.program(*made.shaped(1, compile_seconds=0.1), wall=10.0))

    def answer(first: Path, second: Path) -> str:
        (pair,) = call("compare", first, second, "--format", "json").data["comparisons"][0]["runs"]
        return str(pair["answer"])

    assert "findings: varying_shapes gone; " in answer(before, after)
    assert "findings: varying_shapes new; " in answer(after, before)
    assert "findings: " not in answer(before, _write(tmp_path / "again.jaxprof", slow))
    assert "varying_shapes gone" in call("compare", before, after).out


def test_of_two_processes_no_verdict_is_given(call: Caller, tmp_path: Path) -> None:
    before = job(tmp_path / "a.jaxprof.d", loop(), loop())
    after = job(tmp_path / "b.jaxprof.d", loop(host=0.3), loop(host=0.3), loop(host=0.3))
    [found] = call("compare", before, after, "--format", "json").data["comparisons"]
    shares = [each for each in found["figures"] if each["unit"] == "share"]
    assert {each["verdict"] for each in shares} == {"undecided"}
    assert found["notices"][0] == "2 and 3 processes: the work is divided differently"


def test_a_job_is_compared_with_a_job_alone_and_not_with_itself(call: Caller, tmp_path: Path) -> None:
    folder = job(tmp_path / "a.jaxprof.d", loop(), loop())
    for other, words in ((folder / "process-00000.jaxprof", "is not one"), (folder, "given twice")):
        said = call("compare", folder, other)
        assert (said.code, words in said.err) == (2, True), said.err
    assert "--for is of one process" in call("compare", folder, folder, "--for", "h100").err
