"""`jaxprof compare`: pairs whose truth is known, as text, JSON, Markdown and CSV; and what cannot be compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from folding import fold, written
from jaxprof import events as e
from jaxprof.analysis.hlo_program import HloProgram
from jaxprof.analysis.opener import modules_of
from jaxprof.cli import hlo_target
from report import sessions

pytestmark = pytest.mark.usefixtures("state_home")


def _write(path: Path, events: Iterable[e.Event], **header: Any) -> Path:
    written(path, events, replace(sessions.HEADER, session=path.stem, **header))
    return path


@pytest.fixture
def first(tmp_path: Path) -> Path:
    return _write(tmp_path / "first.jaxprof", sessions.events())


def _compiled_for(*devices: str, hlo: str = sessions.HLO) -> list[HloProgram]:
    events: list[e.Event] = []
    for number, device in enumerate(devices, 1):
        spec = e.RunSpec(workload="step", variant="jit", how="compile", device=device)
        events += [e.RunPlanned(run=f"r{number}", spec=spec), e.TextRecorded(run=f"r{number}", name="hlo", text=hlo)]
        events.append(e.RunFinished(run=f"r{number}", status="ok"))
    session = fold(sessions.HEADER, events)
    return [HloProgram(stages, session) for stages in modules_of(session)]


def test_programs_for_devices_that_are_not_here(call, monkeypatch):
    known = {
        "old.py:step": _compiled_for("h100", "tpu-v5e"),
        "new.py:step": _compiled_for("h100", "tpu-v5e", hlo=sessions.HLO.replace("f32", "bf16")),
        "other.py:step": _compiled_for("a100"),
    }
    monkeypatch.setattr(hlo_target, "find_modules", lambda name, *_, **__: known[name])
    words = ("compare", "--for", "h100,tpu-v5e", "old.py:step", "new.py:step", "--format", "json")
    data = call(*words).data["comparisons"]
    assert [(one["runs"][0]["after"]["device"], one["runs"][0]["differs"]) for one in data] == [
        ("h100", True), ("tpu-v5e", True),
    ]  # fmt: skip
    assert call("compare", "--for", "h100", "old.py:step", "other.py:step").code == 2


def test_the_only_function_of_each_session_is_the_same_function(call, tmp_path):
    def session(*functions: str) -> Path:
        events: list[e.Event] = []
        for run, function in zip(("r1", "r2"), functions, strict=False):
            spec = e.RunSpec(workload=function, variant="jit", how="jit", device="cpu:0", target=f"/x/{function}")
            events += [e.RunPlanned(run=run, spec=spec), e.RunFinished(run=run, status="ok")]
        return _write(tmp_path / f"{len(functions)}{functions[0]}.jaxprof", events)

    old = session("old.py:step")
    assert "old.py:step jit cpu:0 → new.py:step jit cpu:0" in call("compare", old, session("new.py:step")).out
    assert "only in the first session: r1 old.py:step" in call("compare", old, session("new.py:step", "new.py:f")).out
