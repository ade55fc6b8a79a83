"""Profiles that were recorded elsewhere, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hlo_sources import TEXT, write_kernels


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "box.xplane.pb.gz"
    return write_kernels(path, 3, kernel="k\x1b[31m", op="fusion\x1b[2J", module="jit_f")


@pytest.mark.process
def test_import_keeps_a_session_and_export_gives_its_timeline(call, profile, tmp_path):
    kept, out = tmp_path / "kept.jaxprof", tmp_path / "out.json"
    assert call("import", profile, "-o", kept).code == 0
    assert call("import", profile, "-o", kept).code == 2
    whole, program = call("show", kept, "--format", "json", "--full").data["runs"]
    assert [step["name"] for step in whole["steps"]] == ["jit_f 0", "jit_f 1", "jit_f 2"]
    (kernel,) = program["kernels"]
    assert (kernel["measured"]["executions"], kernel["measured"]["flops_per_second"]) == (3, None)
    assert call("export", kept, "-o", out).code == 0
    intervals = [event for event in json.loads(out.read_text())["traceEvents"] if event["ph"] == "X"]
    assert [(event["ts"], event["dur"]) for event in intervals] == [(0.0, 4.0), (10.0, 4.0), (20.0, 4.0)]
    shown = call("show", profile)
    assert ("fusion␛[2J" in shown.out, "\x1b" in shown.out) == (True, False)
    hlo = tmp_path / "m.hlo"
    hlo.write_text(TEXT)
    assert f"jaxprof hlo {hlo}" in call("import", hlo, "-o", tmp_path / "none.jaxprof").err
