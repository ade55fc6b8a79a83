"""`jaxprof run`, on real JAX where the measuring is the point."""

from __future__ import annotations

import inspect

import pytest

from folding import written
from jaxprof import events as e
from jaxprof.api.session import profile
from jaxprof.cli.commands.run import command
from jaxprof.cli.output import ExitCode
from jaxprof.events import DEFAULT_BUDGET_SECONDS, DEFAULT_LAUNCHES
from jaxprof.runner.planning import PlanOptions
from jaxprof.session.log import new_header
from jaxprof.tui.home.plan_options import HomeOptions


def test_every_front_end_has_one_default_budget_and_number_of_launches():
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
    assert (numpy["variant"], jit["variant"], jit["status"], jit["parameters"]) == ("numpy", "jit", "ok", {"n": 10_000})
    assert jit["check"]["passed"] is True
    assert jit["versus"]["run"] == numpy["id"]
    assert {"trace", "lower", "compile", "first_run", "run"} <= set(jit["phases"])
    assert not {"trace", "lower", "compile"} & set(numpy["phases"])
    assert jit["phases"]["startup"]["import"] > 0
    assert jit["phases"]["compile"]["seconds"] > 0
    samples = jit["samples_seconds"]
    assert min(samples) < jit["phases"]["run"]["median_seconds"] < max(samples)
    assert call("show", out, "--format", "json", "--full").data == said.data


@pytest.mark.process  # the folder that it would be run in has a reaper
def test_a_function_of_a_kept_session_is_run_again_only_on_request(call, tmp_path):
    (tmp_path / "mine.py").write_text("def step(tree, n):\n    return tree['w'] * n\n")
    spec = e.RunSpec(
        workload="mine.py:step", variant="jit", how="jit", device="cpu:0", target=f"{tmp_path}/mine.py:step",
        arguments=("{'w': f32[8]}", "3"),
    )  # fmt: skip
    first, second = tmp_path / "one.jaxprof", tmp_path / "two.jaxprof"
    written(first, [e.RunPlanned(run="r1", spec=spec), e.RunFinished(run="r1", status="ok")], new_header({}))
    said = call("run", "--from", f"{first}:step", "--out", second)
    assert (said.code, second.exists()) == (ExitCode.USAGE, False), "it is somebody's code, and nobody was asked"
    assert f"{tmp_path}/mine.py:step --arg" in " ".join(said.err.split())
