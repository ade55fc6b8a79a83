"""`jaxprof run`, on real JAX where the measuring is the point."""

from __future__ import annotations

import inspect
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.calling import Caller, start
from folding import written
from jaxprof import events as e
from jaxprof.api.session import profile
from jaxprof.cli.commands.run import command
from jaxprof.cli.output import ExitCode
from jaxprof.events import DEFAULT_BUDGET_SECONDS, DEFAULT_LAUNCHES
from jaxprof.runner.planning import PlanOptions
from jaxprof.session import Session
from jaxprof.session.log import Follower, load, new_header
from jaxprof.tui.home.plan_options import HomeOptions


def test_every_front_end_has_one_default_budget_and_number_of_launches() -> None:
    """The command line and the API write it out, because importing the events would cost each `--help` their time."""
    defaults = {option.name: option.default for option in command.params}
    assert (defaults["budget_seconds"], defaults["launches"]) == (DEFAULT_BUDGET_SECONDS, DEFAULT_LAUNCHES)
    assert inspect.signature(profile).parameters["budget_seconds"].default == DEFAULT_BUDGET_SECONDS
    for options in (HomeOptions(), PlanOptions()):
        assert (options.budget_seconds, options.launches) == (DEFAULT_BUDGET_SECONDS, DEFAULT_LAUNCHES)


@pytest.mark.process
def test_a_run_is_printed_and_kept(call: Caller, tmp_path: Path) -> None:
    out = tmp_path / "x.jaxprof"
    out.write_text("old")
    words = "--variant jit --set n=1e4 --budget 0.1 --launches 1 --force --format json --full"
    said = call("run", "selu", *words.split(), "--out", out)
    assert said.code == 0, said.err
    data = said.data
    assert [run["variant"] for run in data["runs"]] == ["numpy", "jit"]
    numpy, jit = data["runs"]
    assert jit["status"] == "ok"
    assert jit["parameters"] == {"n": 10_000}
    assert jit["check"]["passed"] is True
    assert jit["versus"]["run"] == numpy["id"]
    assert {"trace", "lower", "compile", "first_run", "run"} <= set(jit["phases"])
    assert jit["phases"]["startup"]["import"] > 0
    assert not {"trace", "lower", "compile"} & set(numpy["phases"])
    samples = jit["samples_seconds"]
    assert min(samples) < jit["phases"]["run"]["median_seconds"] < max(samples)
    assert jit["phases"]["compile"]["seconds"] > 0
    assert data["session"]["complete"] is True
    assert call("show", out, "--format", "json", "--full").data == data


def until(path: Path, wanted: Callable[[Session], bool]) -> None:
    """Waits until the session that is being written at `path` is as `wanted`."""
    deadline = time.monotonic() + 100
    while not path.exists() or not path.stat().st_size:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    follower = Follower(path, Session)
    while not wanted(follower.session):
        assert time.monotonic() < deadline
        follower.poll()
        time.sleep(0.02)
    follower.finish()


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_runs_and_keeps_the_session(number: signal.Signals, tmp_path: Path) -> None:
    out = tmp_path / "x.jaxprof"
    process = start(*["run", "selu", "--variant", "numpy", "--sweep", "n=1000,2000", "--budget", "60", "--out"], out)
    until(out, lambda session: any(run.samples("run") for run in session.runs.values()))
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=30)
    session = load(out, Session)
    assert process.returncode == 128 + number
    assert session.closed is not None
    assert session.closed.reason == ("interrupted" if number == signal.SIGINT else number.name)
    assert [run.status for run in session.runs.values()] == ["cancelled", "cancelled"]
    assert any(run.samples("run") for run in session.runs.values())
    assert ("a call" in stdout) is (number == signal.SIGINT)
    assert str(out) in stderr
    worker = session.runs["r1"].pid
    assert worker is not None
    assert not Path(f"/proc/{worker}").exists()


@pytest.mark.process
def test_a_killed_worker_is_told_and_the_next_run_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "x.jaxprof"
    words = ("--variant", "numpy", "--budget", "1", "--launches", "1", "--out", out)
    process = start("run", "selu", "--sweep", "n=1000,2000", *words)
    until(out, lambda session: any(run.samples("run") for run in session.runs.values()))
    worker = load(out, Session).runs["r1"].pid
    assert worker is not None
    os.kill(worker, signal.SIGKILL)
    stdout, _ = process.communicate(timeout=60)
    assert process.returncode == ExitCode.FAILED
    assert "killed" in stdout
    assert [run.status for run in load(out, Session).runs.values()] == ["crashed", "ok"]


@pytest.mark.process
def test_a_function_of_a_kept_session_is_run_again_from_anywhere(
    call: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text("import jax\n\n@jax.jit\ndef step(tree, n):\n    return tree['w'] * n\n")
    first, second = tmp_path / "one.jaxprof", tmp_path / "two.jaxprof"
    spec = e.RunSpec(
        workload="mine.py:step", variant="jit", how="jit", device="cpu:0", target=f"{tmp_path}/mine.py:step",
        arguments=("{'w': f32[8]}", "3"), budget_seconds=0.05, launches=1, capture=False,
    )  # fmt: skip
    written(first, [e.RunPlanned(run="r1", spec=spec), e.RunFinished(run="r1", status="ok")], new_header({}))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    words = ["--from", f"{first}:step", "--launches", "1", "--no-capture", "--out", second]
    said = call("run", *words)
    assert said.code == ExitCode.USAGE, "it is somebody's code, and nobody was asked"
    assert f"{tmp_path}/mine.py:step --arg" in " ".join(said.err.split())
    assert not second.exists()
    said = call("run", *words, "--yes")
    assert said.code == 0, said.err
    (run,) = load(second, Session).runs.values()
    assert (run.label, run.plan.arguments) == ("mine.py:step jit cpu:0", ("{'w': f32[8]}", "3"))
