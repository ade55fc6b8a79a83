from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.calling import Caller
from jaxprof.cli.exit_codes import ExitCode
from jaxprof.store import LogWriter
from report import sessions


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "module.txt"
    path.write_text(sessions.HLO)
    return path


def test_the_hlo_of_the_only_run_that_has_some(call: Caller, kept: Path) -> None:
    assert call("hlo", kept).out == sessions.HLO.rstrip("\n") + "\n"
    assert "lambda" in call("hlo", kept, "--run", "r2", "--stage", "jaxpr").out


def test_the_text_as_json(call: Caller, kept: Path) -> None:
    data = json.loads(call("hlo", kept, "--format", "json").out)
    assert data == {"run": "r2", "label": "selu jit cpu:0", "stage": "hlo", "text": sessions.HLO}


def test_the_kernels_of_a_session(call: Caller, kept: Path) -> None:
    lines = call("hlo", kept, "--kernels").out.splitlines()
    assert lines[0] == "r2 selu jit cpu:0"
    assert " ".join(lines[2].split()) == "fusion loop fusion 2 1 1.00 M 7.63 MiB selu.py:28 jit(selu)/mul"
    (run,) = json.loads(call("hlo", kept, "--kernels", "--format", "json").out)["runs"]
    assert run["kernels"][0]["source"] == {"file": "/home/me/selu.py", "line": 28}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--run", "r9"], "unknown run 'r9'"),
        (["--run", "r1"], "Choose one with --run: r2 (selu jit cpu:0)"),
        (["--stage", "stablehlo"], "no run of"),
        (["--stage", "llvm"], "stablehlo"),
    ],
)
def test_what_is_not_there_is_refused(call: Caller, kept: Path, words: list[str], expected: str) -> None:
    said = call("hlo", kept, *words)
    assert said.code == ExitCode.USAGE
    assert expected in said.err


def test_several_runs_want_a_choice_for_text_and_none_for_kernels(call: Caller, tmp_path: Path) -> None:
    path = tmp_path / "swept.jaxprof"
    writer = LogWriter(sessions.HEADER, path)
    for event in (*sessions.numpy_run("r1"), *sessions.jit_run("r2", "r1"), *sessions.jit_run("r3", "r1", n=10)):
        writer.append(event)
    writer.close()
    assert "r2 (selu jit cpu:0), r3" in call("hlo", path).err
    assert call("hlo", path, "--kernels").out.count("jit(selu)/mul") == 2


def test_a_dump(call: Caller, dump: Path) -> None:
    assert "ENTRY %main" in call("hlo", dump).out
    assert call("hlo", dump, "--kernels").out.splitlines()[0] == "jit_selu"
    data = json.loads(call("hlo", dump, "--format", "json").out)
    assert data["module"] == "jit_selu"
    assert [computation["entry"] for computation in data["computations"]] == [False, True]
    fusion = data["computations"][1]["instructions"][1]
    assert fusion["operands"] == ["x"]
    assert fusion["called"] == ["fused_computation"]
    assert data["kernels"][0]["kind"] == "loop fusion"


def test_a_dump_has_no_runs_and_no_stages(call: Caller, dump: Path) -> None:
    assert "no session" in call("hlo", dump, "--run", "r1").err
    assert "takes 1 to 1" in call("hlo", dump, "--module", "2").err


def test_escape_codes_in_a_dump_are_shown_and_not_obeyed(call: Caller, dump: Path) -> None:
    dump.write_text(sessions.HLO.replace("jit(selu)/mul", "a\x1b[31mb"))
    for form in ((), ("--kernels",)):
        out = call("hlo", dump, *form).out
        assert "\x1b" not in out
        assert "a␛[31mb" in out


def test_other_files_are_refused(call: Caller, tmp_path: Path) -> None:
    for name, content in (("empty.txt", b""), ("picture.png", b"\x89PNG\r\n")):
        path = tmp_path / name
        path.write_bytes(content)
        assert call("hlo", path).code == ExitCode.USAGE
