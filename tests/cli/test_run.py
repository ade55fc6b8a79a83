"""`jaxprof run`, on real JAX where the measuring is the point; `jaxprof FILE`, which does what one would expect of the
file; and a file with several functions, of which the user says which one is meant."""

import inspect
from dataclasses import replace

import pytest

from jaxprof.api.session import profile
from jaxprof.cli.commands.run import command
from jaxprof.cli.main import command_for
from jaxprof.cli.output import ExitCode
from jaxprof.events import DEFAULT_BUDGET_SECONDS, DEFAULT_LAUNCHES
from jaxprof.runner.planning import PlanOptions, plan_all
from jaxprof.tui.home.plan_options import HomeOptions
from jaxprof.workloads import load_built_in
from jaxprof.workloads.model import workload_info
from report import sessions
from tables import rows


def test_front_ends_share_their_defaults():
    """The command line and the API write it out, because importing the events would cost each `--help` their time."""
    defaults = {option.name: option.default for option in command.params}
    assert (defaults["budget_seconds"], defaults["launches"]) == (DEFAULT_BUDGET_SECONDS, DEFAULT_LAUNCHES)
    assert inspect.signature(profile).parameters["budget_seconds"].default == DEFAULT_BUDGET_SECONDS
    for options in (HomeOptions(), PlanOptions()):
        assert (options.budget_seconds, options.launches) == (DEFAULT_BUDGET_SECONDS, DEFAULT_LAUNCHES)


@pytest.mark.process
def test_a_run_is_printed_and_kept(call, tmp_path):
    out = tmp_path / "x.jaxprof"
    out.write_text("old")
    words = "--variant jit --set n=1e4 --budget 0.1 --launches 1 --force --format json --full"
    said = call("run", "selu", *words.split(), "--out", out)
    assert said.code == 0, said.err
    numpy, jit = said.data["runs"]
    assert numpy["variant"] == "numpy"
    assert jit["variant"] == "jit"
    assert jit["status"] == "ok"
    assert jit["parameters"] == {"n": 10_000}
    assert jit["check"]["passed"] is True
    assert jit["versus"]["baseline_run"] == numpy["run"]
    assert {"trace", "lower", "compile", "first_run", "run"} <= set(jit["phases"])
    assert not {"trace", "lower", "compile"} & set(numpy["phases"])
    assert jit["phases"]["startup"]["import"] > 0
    assert jit["phases"]["compile"]["seconds"] > 0
    samples = jit["samples_seconds"]
    assert min(samples) < jit["phases"]["run"]["median_seconds"] < max(samples)
    assert call("open", out, "--format", "json", "--full").data == said.data


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print('trained')\n")
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "__main__.py").write_text("")
    (tmp_path / "empty").mkdir()
    (tmp_path / "m.hlo").write_text(sessions.HLO)
    (tmp_path / "s.jaxprof").write_text('{"format":"jaxprof"}\n')
    (tmp_path / "p.xplane.pb").write_bytes(b"\x0a\x00")
    (tmp_path / "notes.md").write_text("nothing of ours")
    return tmp_path


def test_a_file_alone_stands_for_a_command(files):
    for words, in_terminal, elsewhere in rows("""
        train.py             script  script
        train.py --epochs 3  script  script
        program/__main__.py  script  script
        train.py:step        run     run
        s.jaxprof            open    open
        s.jaxprof --full     open    open
        p.xplane.pb          open    open
        m.hlo                open    hlo
        m.hlo --kernels      hlo     hlo
    """):
        assert command_for(words.split(), in_terminal=True) == in_terminal, words
        assert command_for(words.split(), in_terminal=False) == elsewhere, words


def test_a_command_wins_over_a_file_of_its_name(call, files):
    (files / "sessions").write_text(sessions.HLO)
    assert "HloModule" not in call("sessions", "--help").out
    assert "HloModule" in call("./sessions").out


def test_settings_go_to_the_workloads_that_have_them():
    selu = workload_info(load_built_in("selu"), sources=False)
    other = replace(selu, name="other", parameters=(), presets={"quick": {}}, variants=selu.variants[:2])
    plans, notes = plan_all([selu, other], PlanOptions(settings={"n": "5"}))
    assert plans[0].spec.parameters == {"n": 5}
    assert plans[-1].spec.parameters == {}
    assert notes == []
    plans, notes = plan_all([selu, other], PlanOptions(variants=["jit"]))
    assert ({plan.spec.workload for plan in plans}, notes) == ({"selu"}, ["other has no variant jit: left out"])


MINE = """
import jaxprof


@jaxprof.workload(inputs=["f32[n]"], parameters={"n": 8})
def twice(x):
    \"\"\"Two times x.\"\"\"
    return 2 * x


def product(x, y):
    return x @ y


def product_inputs(random):
    return random.standard_normal((4, 4)), random.standard_normal((4, 4))


def helper(x, y, z):
    return x + y + z
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    return "mine.py"


@pytest.mark.process
@pytest.mark.parametrize("command", ["run", "hlo"])
def test_the_functions_of_a_file_are_listed(call, mine, command, state_home):
    said = call(command, mine)
    assert said.code == ExitCode.USAGE
    assert "mine.py has 2 functions: twice, product" in said.err
    assert not list(state_home.rglob("*.jaxprof"))


@pytest.mark.process
def test_list_of_workloads(call, mine):
    data = call("run", "--describe", mine, "--format", "json").data
    assert [one["name"] for one in data["workloads"]] == ["mine.py:twice", "mine.py:product"]
    for count, name in ((1, "mine.py:twice:"), (3, "mine.py:helper:")):
        assert call("run", "--describe", mine, *["--arg", "f32[3]"] * count).out.startswith(name)
    assert call("run", "--describe", mine, *["--arg", "f32[3]"] * 4).code == ExitCode.USAGE
