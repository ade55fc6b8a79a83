from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from cli.calling import Caller
from hlo.test_passes import _write
from hlo_sources import DUMPED, TEXT
from jaxprof.cli.hlo_target import CompileOptions
from jaxprof.cli.output import ExitCode
from report import sessions


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "module.txt"
    path.write_text(sessions.HLO)
    return path


def test_the_hlo_of_the_only_run_that_has_some(call: Caller, kept: Path, dump: Path) -> None:
    assert call("hlo", kept).out == sessions.HLO.rstrip("\n") + "\n"
    assert "lambda" in call("hlo", kept, "--run", "r2", "--stage", "jaxpr").out
    assert call("hlo", kept, "--diff", dump).out.startswith("no difference")


@pytest.mark.parametrize("view", [(), ("--memory", "--format", "json")])
def test_hlo_is_opened_as_the_command_of_its_own_prints_it(call: Caller, tmp_path: Path, view: tuple[str, ...]) -> None:
    folder = tmp_path / "dump"
    folder.mkdir()
    (folder / "module_0001.jit_f.cpu_after_optimizations.txt").write_text(sessions.HLO)
    for target in (folder, *folder.iterdir()):
        assert call("open", target, *view) == call("hlo", target, *view)
        said = call("open", target, "--steps")
        assert (said.code, "--steps does not apply to HLO" in said.err) == (ExitCode.USAGE, True)


@pytest.mark.process
def test_a_workload_is_compiled_and_not_run(call: Caller, tmp_path: Path) -> None:
    out = tmp_path / "compiled.jaxprof"
    said = call("hlo", "selu:jit", "--set", "n=1000", "--kernels", "--out", out)
    assert said.code == ExitCode.OK
    assert "selu.py:" in said.out
    assert "stablehlo" in call("hlo", out, "--stage", "stablehlo").out
    assert call("hlo", "selu:numpy").code == ExitCode.USAGE


def test_the_first_kernels_by_what_they_cost(call: Caller, tmp_path: Path) -> None:
    path = tmp_path / "three.hlo"
    path.write_text(
        "HloModule m, is_scheduled=true\n\nENTRY e {\n  x = f32[8] parameter(0)\n  y = f32[512] parameter(1)\n"
        "  small = f32[8] sine(x)\n  large = f32[512] add(y, y)\n  heavy = f32[512] divide(large, y)\n"
        '  lib = f32[512] custom-call(heavy), custom_call_target="opaque"\n'
        "  ROOT t = (f32[8], f32[512]) tuple(small, lib)\n}\n"
    )
    for words, names in (
        ((), ["small", "large", "heavy", "lib"]),
        (("--top", 2), ["heavy", "large"]),
        (("--sort", "flops"), ["large", "heavy", "small", "lib"]),  # what is not known comes last
        (("--sort", "order", "--top", 1), ["small"]),
    ):
        rows = csv.DictReader(call("hlo", path, "--kernels", "--format", "csv", *words).out.splitlines())
        assert [row["name"] for row in rows] == names
    text = call("hlo", path, "--kernels", "--top", 1).out
    assert text.splitlines()[-1] == "1 of 4 kernels, with 43 % of the bytes"


def test_the_short_text_is_the_same_program(call: Caller, tmp_path: Path) -> None:
    config = ', metadata={op_name="a}b"}, backend_config={"x":{"y":[{"z":1}]}}, frontend_attributes={k="v"}'
    (tmp_path / "long.hlo").write_text(sessions.HLO.replace(", kind=", f"{config}, kind="))
    said = call("hlo", tmp_path / "long.hlo", "--short")
    assert not {"metadata", "backend_config", "op_name"} & set(re.findall(r"\w+", said.out))
    assert said.out.count(" = ") == sessions.HLO.count(" = ")


def test_diff_of_two_files(call: Caller, dump: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.hlo"
    other.write_text(sessions.HLO.replace("fused_computation", "fused_computation.9"))
    said = call("hlo", dump, "--diff", other)
    assert (said.code, said.out.partition(":")[0]) == (0, "no difference in the computation")
    other.write_text(sessions.HLO.replace("f32", "f16"))
    lines = call("hlo", dump, "--diff", other).out.splitlines()
    assert any(line.startswith("- ") and "f32" in line for line in lines)
    assert any(line.startswith("+ ") and "f16" in line for line in lines)


def test_a_program_at_a_url_is_fetched_and_not_run(call: Caller, dump: Path, tmp_path: Path) -> None:
    assert "no difference" in call("hlo", dump, "--diff", f"file://{dump}").out
    (tmp_path / "m.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\ndef step(x): return x\n")
    for words in (["hlo"], ["hlo", dump, "--diff"], []):
        said = call(*words, f"file://{tmp_path / 'm.py'}")
        assert said.code == 2
    assert not (tmp_path / "ran").exists()


def test_of_several_passes_those_of_one_module_are_asked_for(call: Caller, tmp_path: Path) -> None:
    _write(tmp_path, 0, "pipeline-start", "negate")
    _write(tmp_path, 1, "rewriter\x1b[31m", "abs")
    said = call("hlo", tmp_path, "--passes")
    assert ("-1 negate" in said.out, "\x1b" in said.out) == (True, False)
    assert "1 jit_f" in call("hlo", tmp_path, "--passes", "--module", "9").err


def test_of_several_modules_one_is_chosen_by_its_number(call: Caller, tmp_path: Path) -> None:
    (tmp_path / "a.hlo").write_text(TEXT + "\n" + TEXT.replace("jit_g", "jit_h"))
    (tmp_path / f"{DUMPED}.cpu_after_optimizations.txt").write_text(TEXT.replace("jit_g", "jit_i"))
    for number, name in enumerate(("jit_g", "jit_h", "jit_i"), 1):
        assert call("hlo", tmp_path, "--module", number).out.startswith(f"HloModule {name}")
    assert "takes 1 to 3" in call("hlo", tmp_path, "--module", "4").err


def test_what_was_autotuned_elsewhere_is_given_to_the_process_that_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=x")
    options = CompileOptions(targets="h100", autotune_results=tmp_path / "a b.pbtxt")
    assert options.environment() == {
        "XLA_FLAGS": f'--xla_dump_to=x --xla_gpu_load_autotune_results_from="{tmp_path.resolve()}/a b.pbtxt"'
    }
    assert CompileOptions(targets="h100").environment() == {}
