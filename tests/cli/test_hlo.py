import pytest

from hlo_sources import DUMPED, TEXT
from jaxprof.analysis.kernels.hlo_program import CompileOptions
from jaxprof.cli.output import ExitCode
from report import sessions


@pytest.mark.parametrize("view", [(), ("--memory", "--format", "json")])
def test_hlo_is_opened_as_the_command_of_its_own_prints_it(call, tmp_path, view):
    folder = tmp_path / "dump"
    folder.mkdir()
    (folder / "module_0001.jit_f.cpu_after_optimizations.txt").write_text(sessions.HLO)
    for target in (folder, *folder.iterdir()):
        assert call("open", target, *view) == call("hlo", target, *view)
        said = call("open", target, "--steps")
        assert said.code == ExitCode.USAGE
        assert "--steps does not apply to HLO" in said.err


@pytest.mark.process
def test_a_workload_is_compiled_and_not_run(call, tmp_path):
    out = tmp_path / "compiled.jaxprof"
    said = call("hlo", "selu:jit", "--set", "n=1000", "--kernels", "--out", out)
    assert said.code == ExitCode.OK
    assert "arrays.py:" in said.out
    assert "stablehlo" in call("hlo", out, "--stage", "stablehlo").out
    assert call("hlo", "selu:numpy").code == ExitCode.USAGE


def test_a_program_at_a_url_is_fetched_and_not_run(call, tmp_path):
    dump = tmp_path / "module.txt"
    dump.write_text(sessions.HLO)
    assert "no difference" in call("hlo", dump, "--diff", f"file://{dump}").out
    (tmp_path / "m.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\ndef step(x): return x\n")
    for words in (["hlo"], ["hlo", dump, "--diff"], []):
        said = call(*words, f"file://{tmp_path / 'm.py'}")
        assert said.code == 2
    assert not (tmp_path / "ran").exists()


def test_of_several_modules_one_is_chosen_by_its_number(call, tmp_path):
    (tmp_path / "a.hlo").write_text(TEXT + "\n" + TEXT.replace("jit_g", "jit_h"))
    (tmp_path / f"{DUMPED}.cpu_after_optimizations.txt").write_text(TEXT.replace("jit_g", "jit_i"))
    for number, name in enumerate(("jit_g", "jit_h", "jit_i"), 1):
        assert call("hlo", tmp_path, "--module", number).out.startswith(f"HloModule {name}")
    assert "takes 1 to 3" in call("hlo", tmp_path, "--module", "4").err
    one = tmp_path / f"{DUMPED}.cpu_after_optimizations.txt"
    assert "has 1 module\n" in call("hlo", one, "--module", "2").err


def test_autotune_results_reach_the_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=x")
    options = CompileOptions(for_devices="h100", autotune_results=tmp_path / "a b.pbtxt")
    assert options.environment() == {
        "XLA_FLAGS": f'--xla_dump_to=x --xla_gpu_load_autotune_results_from="{tmp_path.resolve()}/a b.pbtxt"'
    }
    assert CompileOptions(for_devices="h100").environment() == {}


def test_a_run_is_named_behind_its_session(call, kept):
    named, chosen = call("hlo", "last:r2"), call("hlo", "last", "--run", "r2")
    assert named.out == chosen.out != ""
    assert call("hlo", "last:r9").err == call("hlo", "last", "--run", "r9").err != ""
    gated = call("gate", "last:r2", "--base", f"{kept}:r2", "--fail-on", "kernels", "--format", "json")
    assert gated.data["base"]["name"] == f"{kept}:r2"
