from __future__ import annotations

import csv
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


def test_a_run_as_json(call: Caller, kept: Path) -> None:
    data = json.loads(call("hlo", kept, "--format", "json").out)
    assert (data["run"], data["label"], data["module"]) == ("r2", "r2 selu jit cpu:0", "jit_selu")
    assert {"computations", "kernels", "barriers", "findings", "platform"} <= data.keys()
    text = json.loads(call("hlo", kept, "--stage", "hlo", "--format", "json").out)
    assert text == {"label": "r2 selu jit cpu:0", "stage": "hlo", "text": sessions.HLO}


def test_the_kernels_of_a_session(call: Caller, kept: Path) -> None:
    lines = call("hlo", kept, "--kernels").out.splitlines()
    assert " ".join(lines[1].split()) == "fusion loop fusion 2 1 1.00 M 7.63 MiB selu.py:28 jit(selu)/mul"
    data = json.loads(call("hlo", kept, "--kernels", "--format", "json").out)
    assert data["kernels"][0]["source"] == {"file": "/home/me/selu.py", "line": 28}
    rows = list(csv.DictReader(call("hlo", kept, "--kernels", "--format", "csv").out.splitlines()))
    assert [(row["name"], row["line"]) for row in rows] == [("fusion", "28")]


def test_a_kernel_from_inside_and_with_its_neighbours(call: Caller, kept: Path) -> None:
    assert "multiply" in call("hlo", kept, "--tree", "fusion").out
    assert call("hlo", kept, "--dot", "%fusion").out.startswith("digraph")
    said = call("hlo", kept, "--tree", "fusoin")
    assert said.code == ExitCode.USAGE
    assert "fusion" in said.err


def test_findings_and_barriers_are_said_also_when_there_are_none(call: Caller, kept: Path) -> None:
    assert call("hlo", kept, "--findings").out
    assert call("hlo", kept, "--barriers").out


def test_a_workload_is_compiled_and_not_run(call: Caller, tmp_path: Path) -> None:
    out = tmp_path / "compiled.jaxprof"
    said = call("hlo", "selu:jit", "--set", "n=1000", "--kernels", "--out", out)
    assert said.code == ExitCode.OK
    assert "loop fusion" in said.out
    assert "selu.py:" in said.out
    again = call("hlo", out, "--stage", "stablehlo")
    assert "stablehlo" in again.out
    assert call("hlo", "selu:numpy").code == ExitCode.USAGE


def test_a_device_that_is_not_known_is_refused_with_the_near_ones(call: Caller) -> None:
    said = call("hlo", "selu", "--for", "h10")
    assert said.code == ExitCode.USAGE
    assert "h100" in said.err


def test_what_is_compiled_already_is_not_compiled_for_another_device(call: Caller, kept: Path) -> None:
    assert "compiled already" in call("hlo", kept, "--for", "h100").err


def test_without_the_compiler_the_command_that_installs_it_is_told(
    call: Caller, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAXPROF_TARGETS", str(tmp_path))
    said = call("hlo", "selu", "--for", "tpu-v5e")
    assert said.code != ExitCode.OK
    assert "jaxprof target install tpu" in said.err


def test_a_folder_of_a_dump(call: Caller, tmp_path: Path) -> None:
    (tmp_path / "module_0001.jit_f.cpu_after_optimizations.txt").write_text(sessions.HLO)
    (tmp_path / "module_0001.jit_f.before_optimizations.txt").write_text("HloModule other\n")
    (tmp_path / "module_0001.jit_f.ir-with-opt.ll").write_text("; ModuleID")
    assert "jit(selu)/mul" in call("hlo", tmp_path, "--kernels").out
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no HLO in the folder" in call("hlo", empty).err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--run", "r9"], "unknown run 'r9'"),
        (["--run", "r1"], "run r1 (selu numpy cpu:0) has no compiled program"),
        (["--stage", "stablehlo"], "has its stablehlo"),
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
    assert "r2 selu jit cpu:0, r3" in call("hlo", path).err
    assert call("hlo", path, "--kernels").out.count("jit(selu)/mul") == 2


def test_a_dump(call: Caller, dump: Path) -> None:
    assert "ENTRY %main" in call("hlo", dump).out
    assert "jit(selu)/mul" in call("hlo", dump, "--kernels").out
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
