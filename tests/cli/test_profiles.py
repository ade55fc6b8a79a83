"""Profiles that were recorded elsewhere, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.calling import Caller
from hlo_sources import SOURCES, write_kernels
from jaxprof.session import Session
from jaxprof.session.log import load


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "box.xplane.pb.gz"
    return write_kernels(path, 3, kernel="k\x1b[31m", op="fusion\x1b[2J", module="jit_f")


@pytest.mark.process
def test_show_names_kernels_and_doubts_and_obeys_no_escape_code(call: Caller, profile: Path) -> None:
    said = call("show", profile)
    assert said.code == 0
    assert "fusion␛[2J" in said.out
    assert "\x1b" not in said.out
    assert "the HLO of jit_f is not in the file" in said.out


@pytest.mark.process
def test_show_prints_the_documented_json(call: Caller, profile: Path) -> None:
    whole, program = call("show", profile, "--format", "json", "--full").data["runs"]
    assert [step["name"] for step in whole["steps"]] == ["jit_f 0", "jit_f 1", "jit_f 2"]
    (kernel,) = program["kernels"]
    assert (kernel["measured"]["executions"], kernel["measured"]["flops_per_second"]) == (3, None)
    assert kernel["measured"]["total_seconds"] == pytest.approx(12e-6)


@pytest.mark.process
def test_one_view_in_every_form_and_refused_in_others(call: Caller, profile: Path) -> None:
    assert call("show", profile, "--steps", "--format", "csv").out.startswith("run,name,device")
    assert call("show", profile, "--trust", "--format", "json").data["runs"][0]["trust"]
    assert call("show", profile, "--kernels", "--format", "markdown").code == 2


@pytest.mark.process
def test_import_keeps_a_session_and_export_gives_its_timeline(call: Caller, profile: Path, tmp_path: Path) -> None:
    kept, out = tmp_path / "kept.jaxprof", tmp_path / "out.json"
    before = profile.read_bytes()
    assert call("import", profile, "-o", kept).code == 0
    assert [run.plan.how for run in load(kept, Session).runs.values()] == ["imported", "imported"]
    assert call("import", profile, "-o", kept).code == 2
    assert call("export", kept, "-o", out).code == 0
    intervals = [event for event in json.loads(out.read_text())["traceEvents"] if event["ph"] == "X"]
    assert [(event["ts"], event["dur"]) for event in intervals] == [(0.0, 4.0), (10.0, 4.0), (20.0, 4.0)]
    assert profile.read_bytes() == before
    assert "fusion" in call("show", kept).out


@pytest.mark.parametrize(
    ("name", "said", "command"), [("text", "is HLO, not a profile", "hlo"), ("session", "is a session", "open")]
)
def test_what_is_no_profile_is_not_imported(call: Caller, tmp_path: Path, name: str, said: str, command: str) -> None:
    path, out = SOURCES[name](tmp_path), tmp_path / "out.jaxprof"
    found = call("import", path, "--out", out)
    assert (found.code, out.exists()) == (2, False)
    assert said in found.err
    assert f"jaxprof {command} {path}" in found.err
