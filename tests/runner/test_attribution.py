"""When a second child is started for the names of kernels, and what comes of it. No GPU is needed: events decide."""

from dataclasses import replace

import pytest

from jaxprof.analysis.kernels.measured import measure_kernels
from jaxprof.devices.inventory.placement import WorkerEnvironment
from jaxprof.events import CaptureTaken, CopyTimes, KernelsMeasured, KernelTimes, TrustCheck, TrustReported
from jaxprof.runner import attribution
from runner import engines
from runner.stage import Stage, plan

CAPTURE = CaptureTaken(kind="run", platform="gpu", calls=2, events=40)


def kernels(named, unnamed, copies=0.0, calls=2):
    return KernelsMeasured(
        kind="run",
        calls=calls,
        rows=[KernelTimes(name="fusion", device="gpu:0", self_seconds=named)] if named else [],
        transfers=[CopyTimes(direction="HtoD", device="gpu:0", total_seconds=copies)],
        unattributed_seconds={"gpu:0": unnamed + copies},
    )


UNNAMED = kernels(0.0, 1.0)


def trust(verdict):
    return TrustReported(kind="run", rows=[TrustCheck(code="unmatched", verdict=verdict)])


@pytest.mark.parametrize(
    ("found", "given", "needed"),
    [
        (kernels(1.0, 0.005), {}, False),
        (kernels(1.0, 0.5), {}, True),
        (kernels(0.0, 0.0), {}, True),
        (kernels(1.0, 0.0, copies=5.0), {}, False),
        # kernels of graphs that have rows, and no op
        (kernels(1.0, 0.0), {"trust": trust("good")}, False),
        (kernels(1.0, 0.0), {"trust": trust("bad")}, True),
        # where it could not help
        (UNNAMED, {"device": "tpu:0"}, False),
        (UNNAMED, {"flags": "--other " + attribution.FLAG}, False),
        (UNNAMED, {"flags": attribution.FLAG + "FUSION"}, True),
        (UNNAMED, {"capture": None}, False),
        (UNNAMED, {"capture": replace(CAPTURE, events=0)}, False),
        (UNNAMED, {"how": "eager"}, False),
        (None, {}, False),
    ],
)
def test_it_is_needed_where_kernels_have_no_names(found, given, needed):
    options = {"device": "cuda:0", "flags": "", "capture": CAPTURE, **given}
    device, flags, capture = (options.pop(name) for name in ("device", "flags", "capture"))
    assert attribution.is_needed(device, flags, capture, found, **options) is needed


def test_the_flag_comes_after_those_that_are_there(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--mine=1")
    assert attribution.environment({})["XLA_FLAGS"] == "--mine=1 --xla_gpu_enable_command_buffer="
    assert attribution.environment({"XLA_FLAGS": "--a=2"})["XLA_FLAGS"] == "--a=2 --xla_gpu_enable_command_buffer="


def test_the_two_totals_are_compared_a_call():
    row = attribution.comparison(kernels(0.0, 0.010), replace(kernels(0.024, 0.0), calls=4))
    assert row.verdict == "doubt"
    assert "20 % more" in row.message
    assert attribution.comparison(None, kernels(1.0, 0.0)) is None
    empty = attribution.comparison(kernels(0.0, 0.0), kernels(1.0, 0.0))
    assert empty.verdict == "unknown"


def _run(tmp_path, monkeypatch, script, **more):
    stage = Stage(tmp_path, monkeypatch, script)
    stage.scheduler._placement = lambda planned, interpreter: WorkerEnvironment(environment={}, device="gpu:0")
    session = stage.run([plan(device="cuda:0", **more)])
    run = session.runs["r1"]
    assert run.status == "ok"
    assert run.samples("run") == [1e-3] * 6  # the headline is the default's
    assert "compile" not in run.phases
    found = measure_kernels(session, "r1")
    taken = run.measured.get("attribution") or run.measured["run"]
    assert [kernel.name for kernel in found.kernels] == [row.name for row in taken.rows]
    return run


@pytest.mark.process
def test_a_second_child_names_the_kernels_that_have_no_names(tmp_path, monkeypatch):
    run = _run(tmp_path, monkeypatch, engines.captures_on_a_gpu(0.0))
    assert set(run.captures) == {"run", "attribution"}
    assert run.measured["run"].unattributed_seconds == {"gpu:0": 0.010}
    assert [row.name for row in run.measured["attribution"].rows] == ["fusion.1"]
    assert [row.code for row in run.trust["attribution"].rows] == ["file", "attribution"]
    assert run.phases["capture_attribution"].seconds is not None
    (tmp_path / "s.jaxprof").unlink()
    run = _run(tmp_path, monkeypatch, engines.captures_on_a_gpu(0.010))
    assert set(run.captures) == {"run"}
    assert "capture_attribution" not in run.phases


@pytest.mark.process
@pytest.mark.parametrize("second", ["os._exit(3)", 'say("run_finished", status="failed", error="no room")'])
def test_a_second_child_that_fails_leaves_the_run_as_it_is(tmp_path, monkeypatch, second):
    run = _run(tmp_path, monkeypatch, engines.captures_on_a_gpu(0.0, second))
    assert set(run.captures) == {"run"}
    (row,) = run.trust["attribution"].rows
    assert (row.code, row.verdict) == ("not_captured", "unknown")
