"""What a run will need is held against what there is. Every way in which it can end is its last event, and says where
it happened. An exception as its user meets it: with the frames of their own code, and a line about memory if it was
that. A phase is reported with what is known of it at its end, and never as longer or surer than it was."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from engine.measure import heard
from engine.measure.heard import INPUT, of, only, phases, reporter
from jaxprof import events as e
from jaxprof.base.errors import DoesNotFitError, JaxprofError, UsageError
from jaxprof.engine.measure import control as reporting
from jaxprof.engine.measure import jax_devices, preflight
from jaxprof.engine.measure.control import Cancelled, RunControl
from jaxprof.engine.measure.failure import failure_of, is_out_of_memory
from jaxprof.engine.measure.run import _complete, inputs_of
from jaxprof.engine.protocol.request import RunRequest
from jaxprof.events import BuffersReported, RunSpec
from jaxprof.session.fold import with_text
from jaxprof.workloads import load_built_in
from jaxprof.workloads.model import Estimate


def measured(function=np.tanh, **given):
    """The events of a NumPy run."""
    return heard.measured(function, np.tanh, "numpy", **given)


def end(events):
    assert of(events, e.RunFinished) == events[-1:]
    return events[-1]


def test_a_numpy_run_has_its_phases_samples_and_check():
    made = []

    def counted(x):
        made.append(1)
        return np.tanh(x)

    events = measured(counted, estimate=Estimate(flops=12.0, traffic_bytes=64.0))
    assert end(events).status == "ok"
    assert phases(events) == ["import", "inputs", "run", "check"]
    samples = [second for event in of(events, e.SamplesTaken) for second in event.seconds]
    assert len(made) > len(samples) >= 3
    assert all(second > 0 for second in samples)
    assert only(events, e.CheckReported).passed is True
    cost = only(events, e.CostReported)
    assert (cost.flops, cost.bytes_accessed, cost.source) == (12.0, 64.0, "workload's own estimate")
    assert {event.name for event in of(events, e.TextRecorded)} <= {"source"}
    before, after = of(events, e.EnvironmentRead)
    assert "other_busy_cores" not in before.settings
    assert {"load_average_after", "other_busy_cores"} <= set(after.settings)
    assert before.devices == []


def test_without_estimate_no_cost_and_a_wrong_result_fails():
    events = measured(np.cos)
    assert end(events).status == "ok"
    assert only(events, e.CheckReported).passed is False
    assert of(events, e.CostReported) == of(events, e.TextRecorded) == []
    assert only(measured(estimate=Estimate(traffic_bytes=64.0)), e.CostReported).flops is None
    assert only(measured(estimate=Estimate(flops=12.0)), e.CostReported).bytes_accessed is None


def test_a_result_is_kept_in_the_first_launch_or_warned_of(tmp_path):
    path = tmp_path / "kept.npz"
    assert of(measured(keep_output=str(path), launch=2), e.WarningRaised) == []
    assert not path.exists()
    assert of(measured(keep_output=str(path)), e.WarningRaised) == []
    with np.load(path) as file:
        np.testing.assert_array_equal(file["leaf0"], np.tanh(INPUT))
    events = measured(keep_output=str(tmp_path / "none" / "kept.npz"))
    assert (end(events).status, only(events, e.WarningRaised).code) == ("ok", "result_not_kept")


@pytest.mark.parametrize("error", [ValueError("mine"), SystemExit(3)])
def test_what_the_function_raises_is_the_runs_result(error):
    def fail(x):
        raise error

    finished = end(measured(fail, max_seconds=60.0))
    assert finished.status == "failed"
    assert finished.error.startswith(type(error).__name__)


def test_an_interrupt_in_the_users_own_process_is_the_users():
    def interrupt(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measured(interrupt)


def test_a_cancelled_run_says_in_which_phase():
    control = RunControl()

    def cancelling(x):
        control.cancel()
        return np.tanh(x)

    during, before = end(measured(cancelling, control=control)), end(measured(control=control))
    assert (during.status, during.error) == ("cancelled", "cancelled in phase run")
    assert (before.status, before.error) == ("cancelled", "cancelled"), "no phase had begun"


def test_a_capped_run_with_samples_has_a_result():
    without = end(measured(max_seconds=0.0))
    assert without.status == "timed out"
    assert "--max-seconds" in without.advice
    control = RunControl()
    events = measured(
        control=control,
        on_event=lambda event: control.start_clock(-1.0) if isinstance(event, e.SamplesTaken) else None,
        max_seconds=60.0,
    )
    assert (end(events).status, end(events).error) == ("ok", "")
    warning = with_text(only(events, e.WarningRaised))
    assert warning.code == "max_seconds_reached"
    assert "in phase run" in warning.message
    assert of(events, e.CheckReported) == []


def test_a_preset_completes_what_a_request_leaves_open():
    selu = load_built_in("selu")
    first = next(iter(selu.presets.values()))
    assert _complete(selu, {}) == dict(first)
    assert _complete(selu, {"n": 3})["n"] == 3
    with pytest.raises(UsageError, match="unknown parameter of selu 'm'"):
        _complete(selu, {"m": 3})


@pytest.mark.parametrize(
    ("error", "advice", "memory"),
    [
        (MemoryError("Unable to allocate 931. GiB"), "Out of memory", True),
        (MemoryError(), "Out of memory", True),
        (DoesNotFitError("not run", "smaller"), "smaller", True),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 1 bytes"), "Out of memory", True),
        (RuntimeError("Array has been deleted with shape=float32[4]."), "donated", False),
        (JaxprofError("what", "mend it"), "mend it", False),
        (ValueError("the platform is different from the lowering platform"), "jax.debug.print", False),
        (ValueError("shapes differ"), "", False),
    ],
)
def test_known_errors_have_advice_and_memory_is_noted(error, advice, memory):
    found = failure_of(error)
    assert advice in found.advice
    assert bool(found.advice) == bool(advice)
    assert is_out_of_memory(error) == found.out_of_memory == memory


def test_our_errors_keep_their_text_and_mute_ones_end_runs():
    class Mute(Exception):
        def __str__(self):
            raise TypeError("no text")

    found = failure_of(JaxprofError("no such device", "look at devices"))
    told = (found.status, found.error, found.advice, found.traceback)
    assert told == ("failed", "no such device", "look at devices", "")
    assert failure_of(Mute()).error == "Mute: (reading its message raised TypeError)"
    tried = failure_of(RuntimeError("All configs failed.\n" + "RESOURCE_EXHAUSTED: 120 GiB\n" * 10))
    assert tried.error == "RuntimeError: All configs failed.\nRESOURCE_EXHAUSTED: 120 GiB (10 times)"
    assert tried.out_of_memory is True


def test_measuring_frames_are_left_out_of_tracebacks():
    def users():
        try:
            inputs_of(e.RunSpec(workload="x", variant="jit", how="jit", device="cpu:0", target="no_such_thing"))
        except Exception as error:
            raise ValueError("mine") from error

    with pytest.raises(ValueError, match="mine") as caught:
        users()
    text = failure_of(caught.value).traceback
    assert Path(__file__).name in text
    assert "engine/measure" not in text.replace("tests/engine/measure", "")
    assert "no_such_thing" in text, "why it was raised stays"
    assert text.rstrip().endswith("ValueError: mine")


def test_a_phase_lasts_as_its_block_unless_it_reports(monkeypatch):
    seconds = iter(range(7, 100))
    monkeypatch.setattr(reporting, "time", SimpleNamespace(perf_counter=lambda: float(next(seconds))))
    reporter, events = heard.reporter()
    with reporter.phase("compile") as phase:
        assert reporter.current_phase == "compile"
        assert events == [e.PhaseStarted(phase="compile")]
        phase.bytes, phase.zero_copy, phase.note = 7, False, "cold"
    assert events[-1] == e.PhaseEnded(phase="compile", seconds=1.0, bytes=7, zero_copy=False, note="cold")
    assert reporter.current_phase == ""
    with reporter.phase("run") as phase:
        phase.seconds = 0.0
    assert events[-1].seconds == 0.0
    with reporter.phase("import") as phase:
        phase.measured = False
    assert events[-1].seconds is None


def test_a_failed_phase_has_no_end_and_stays_current():
    reporter, events = heard.reporter()
    with pytest.raises(ValueError, match="in it"), reporter.phase("compile"):
        raise ValueError("in it")
    assert [event.type for event in events] == ["phase_started"]
    assert reporter.current_phase == "compile"


def test_a_cancelled_run_begins_no_phase():
    reporter, events = heard.reporter()
    reporter.control.cancel()
    with pytest.raises(Cancelled), reporter.phase("compile"):
        pytest.fail("it began")
    assert events == []


SELU = load_built_in("selu")
SPEC = RunSpec(workload="selu", variant="jit", how="jit", device="cuda:0", budget_seconds=2.0)


def refused(estimate, how="eager", device=None, heard=None):
    recorder, events = heard or reporter()
    variant, request = replace(SELU.variants[0], how=how), RunRequest(run="r1", spec=SPEC, in_turns=True)
    preflight.refuse_what_cannot_fit(recorder, variant, request, estimate, device)
    return events


@pytest.fixture
def machine(monkeypatch):
    """1000 bytes are free."""
    monkeypatch.setattr(preflight, "available_host_bytes", lambda: 1000)


def test_what_does_not_fit_is_refused_with_its_bytes(machine):
    assert refused(Estimate(memory_bytes=1000)) == []
    heard = reporter()
    with pytest.raises(DoesNotFitError, match="this machine has 1000 B"):
        refused(Estimate(memory_bytes=1001), heard=heard)
    assert only(heard[1], BuffersReported).asked_bytes == 1001


def test_a_compiled_program_needs_inputs_and_outputs(machine):
    assert refused(Estimate(memory_bytes=5000, traffic_bytes=900), "jit") == []
    with pytest.raises(DoesNotFitError):
        refused(Estimate(memory_bytes=900, traffic_bytes=5000), "jit")
    with pytest.raises(DoesNotFitError):
        refused(Estimate(memory_bytes=5000, traffic_bytes=900), "eager")


def test_the_memory_of_an_accelerator_is_its_own(machine, monkeypatch):
    gpu = SimpleNamespace(platform="gpu")
    monkeypatch.setattr(jax_devices, "describe", lambda device: {"memory_limit_bytes": 3000})
    assert refused(Estimate(memory_bytes=3000, flops=1e15), device=gpu) == []
    with pytest.raises(DoesNotFitError, match="cuda:0 has"):
        refused(Estimate(memory_bytes=3001), device=gpu)
    monkeypatch.setattr(jax_devices, "describe", lambda device: {"memory_limit_bytes": None})
    assert refused(Estimate(memory_bytes=1e15), device=gpu) == []
    with pytest.raises(DoesNotFitError, match="this machine"):
        refused(Estimate(memory_bytes=2000), device=SimpleNamespace(platform="cpu"))


def test_a_call_longer_than_the_budget_is_told():
    recorder, events = reporter()
    request = RunRequest(run="r1", spec=SPEC)
    preflight.warn_of_few_samples(recorder, request, 2.0)
    assert events == [], "as long as the budget"
    preflight.warn_of_few_samples(recorder, request, 3.0)
    (warning,) = map(with_text, events)
    assert warning.code == "over_budget"
    assert warning.message == "the first call took 3.00 s, more than the budget of 2.00 s"


def test_the_smaller_of_machine_and_control_group_counts(monkeypatch):
    for machine, group, free in ((5, 3, 3), (3, 5, 3), (None, 7, 7), (7, None, 7), (None, None, None), (0, 4, 0)):
        monkeypatch.setattr(preflight, "_machine_bytes", lambda found=machine: found)
        left = SimpleNamespace(free_bytes=lambda found=group: found) if group is not None else None
        monkeypatch.setattr(preflight, "read_limits", lambda found=left: SimpleNamespace(memory=found))
        assert preflight.available_host_bytes() == free


@pytest.mark.parametrize(
    ("text", "free"),
    [
        ("MemTotal: 99 kB\nMemAvailable:    2048 kB\n", 2048 * 1024),
        ("MemTotal: 99 kB\n", None),
        ("MemAvailable:\n", None),
        ("MemAvailable: many kB\n", None),
    ],
)
def test_the_memory_that_the_kernel_says_is_available(monkeypatch, text, free):
    monkeypatch.setattr(Path, "read_text", lambda path, **_: text)
    assert preflight._machine_bytes() == free


@pytest.mark.process
def test_a_limit_of_the_process_counts_as_free_memory():
    code = (
        "import resource, numpy; from jaxprof.engine.measure.preflight import available_host_bytes as free; "
        "resource.setrlimit(resource.RLIMIT_AS, (6 << 30, resource.RLIM_INFINITY)); before = free(); "
        "held = numpy.empty(1 << 30, numpy.uint8); print(before, free())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert before < 6 << 30
    assert before - after >= 1 << 30
