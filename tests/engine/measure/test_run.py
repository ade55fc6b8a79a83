"""Every way in which a run can end is its last event, and says where it happened. An exception as its user meets it:
with the frames of their own code, and a line about memory if it was that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.measure.heard import of, only, phases
from jaxprof.engine.measure.control import RunControl
from jaxprof.engine.measure.failure import failed, is_out_of_memory
from jaxprof.engine.measure.run import _complete, inputs_of, measure_workload
from jaxprof.engine.protocol.request import RunRequest
from jaxprof.errors import DoesNotFitError, JaxprofError, UsageError
from jaxprof.events import (
    CheckReported,
    CostReported,
    EnvironmentRead,
    Event,
    RunFinished,
    RunSpec,
    SamplesTaken,
    TextRecorded,
    WarningRaised,
)
from jaxprof.workloads import built_in
from jaxprof.workloads.model import Estimate, Variant

INPUT = np.arange(8, dtype=np.float32)


def measured(
    function: Any = np.tanh,
    control: RunControl | None = None,
    estimate: Estimate | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    **spec: Any,
) -> list[Event]:
    """The events of a NumPy run in this process."""
    events: list[Event] = []

    def listen(event: Event) -> None:
        events.append(event)
        on_event(event)

    variant = Variant(name="numpy", how="numpy", function=function)
    workload = replace(
        built_in("selu"),
        variants=(variant,),
        inputs=lambda parameters, random: (INPUT,),
        expected=lambda parameters, inputs: np.tanh(inputs[0]),
        estimate=lambda parameters: estimate or Estimate(),
    )
    values = {"workload": "w", "variant": "numpy", "how": "numpy", "device": "cpu:0", "budget_seconds": 0.02, **spec}
    options = {name: values.pop(name) for name in ("launch", "keep_output") if name in values}
    request = RunRequest(run="r1", spec=RunSpec(**values), **options)  # type: ignore[arg-type]
    measure_workload(workload, variant, request, listen, control)
    return events


def end(events: list[Event]) -> RunFinished:
    assert of(events, RunFinished) == events[-1:]
    return events[-1]


def test_a_numpy_run_has_its_phases_samples_and_check():
    made: list[int] = []

    def counted(x: np.ndarray) -> np.ndarray:
        made.append(1)
        return np.tanh(x)

    events = measured(counted, estimate=Estimate(flops=12.0, traffic_bytes=64.0))
    assert end(events).status == "ok"
    assert phases(events) == ["import", "inputs", "run", "check"]
    samples = [second for event in of(events, SamplesTaken) for second in event.seconds]
    assert len(made) > len(samples) >= 3
    assert all(second > 0 for second in samples)
    assert only(events, CheckReported).passed is True
    cost = only(events, CostReported)
    assert (cost.flops, cost.bytes_accessed, cost.source) == (12.0, 64.0, "workload's own estimate")
    assert {event.name for event in of(events, TextRecorded)} <= {"source"}
    before, after = of(events, EnvironmentRead)
    assert "other_busy_cores" not in before.settings
    assert {"load_average_after", "other_busy_cores"} <= set(after.settings)
    assert before.devices == []


def test_what_nobody_estimated_has_no_cost_and_a_wrong_result_is_a_finished_run_whose_check_fails():
    events = measured(np.cos)
    assert (end(events).status, only(events, CheckReported).passed) == ("ok", False)
    assert of(events, CostReported) == of(events, TextRecorded) == []
    assert only(measured(estimate=Estimate(traffic_bytes=64.0)), CostReported).flops is None
    assert only(measured(estimate=Estimate(flops=12.0)), CostReported).bytes_accessed is None


@pytest.mark.parametrize(("check", "launch"), [(False, 1), (True, 2)])
def test_a_check_is_made_in_the_first_launch_if_it_was_asked_for(check, launch):
    events = measured(check=check, launch=launch)
    assert (end(events).status, of(events, CheckReported)) == ("ok", [])


def test_a_result_is_kept_for_a_comparison_in_the_first_launch_or_it_is_told(tmp_path):
    path = tmp_path / "kept.npz"
    assert of(measured(keep_output=str(path), launch=2), WarningRaised) == []
    assert not path.exists()
    assert of(measured(keep_output=str(path)), WarningRaised) == []
    with np.load(path) as file:
        np.testing.assert_array_equal(file["leaf0"], np.tanh(INPUT))
    events = measured(keep_output=str(tmp_path / "none" / "kept.npz"))
    assert (end(events).status, only(events, WarningRaised).code) == ("ok", "result_not_kept")


@pytest.mark.parametrize("error", [ValueError("mine"), SystemExit(3)])
def test_what_the_function_raises_is_the_runs_result(error):
    def fail(x: np.ndarray) -> np.ndarray:
        raise error

    control = RunControl()
    finished = end(measured(fail, control, max_seconds=60.0))
    assert finished.status == "failed"
    assert finished.error.startswith(type(error).__name__)
    assert control.remaining_seconds() is None, "its cap no longer counts"


def test_an_interrupt_in_the_users_own_process_is_the_users():
    def interrupt(x: np.ndarray) -> np.ndarray:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measured(interrupt)


def test_a_cancelled_run_says_in_which_phase():
    control = RunControl()

    def cancelling(x: np.ndarray) -> np.ndarray:
        control.cancel()
        return np.tanh(x)

    during, before = end(measured(cancelling, control)), end(measured(control=control))
    assert (during.status, during.error) == ("cancelled", "cancelled in phase run")
    assert (before.status, before.error) == ("cancelled", "cancelled"), "no phase had begun"


def test_a_run_that_reaches_its_cap_has_a_result_if_it_has_samples():
    without = end(measured(max_seconds=0.0))
    assert without.status == "timed out"
    assert "--max-seconds" in without.advice
    control = RunControl()
    events = measured(
        control=control,
        on_event=lambda event: control.start_clock(-1.0) if isinstance(event, SamplesTaken) else None,
        max_seconds=60.0,
    )
    assert (end(events).status, end(events).error) == ("ok", "")
    warning = only(events, WarningRaised)
    assert warning.code == "max_seconds_reached"
    assert "in phase run" in warning.message
    assert of(events, CheckReported) == []


def test_a_preset_completes_what_a_request_leaves_open():
    selu = built_in("selu")
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
def test_known_errors_have_advice_and_whether_it_was_for_want_of_memory(error, advice, memory):
    found = failed(error)
    assert advice in found.advice
    assert bool(found.advice) == bool(advice)
    assert is_out_of_memory(error) == found.out_of_memory == memory


def test_an_error_of_ours_is_its_words_and_one_without_any_is_the_end_of_the_run_too():
    class Mute(Exception):
        def __str__(self) -> str:
            raise TypeError("no text")

    found = failed(JaxprofError("no such device", "look at devices"))
    told = (found.status, found.error, found.advice, found.traceback)
    assert told == ("failed", "no such device", "look at devices", "")
    assert failed(Mute()).error == "Mute: (reading its message raised TypeError)"


def test_the_frames_that_measure_are_left_out_also_of_what_led_to_it():
    def users() -> None:
        try:
            inputs_of(RunSpec(workload="x", variant="jit", how="jit", device="cpu:0", target="no_such_thing"))
        except Exception as error:
            raise ValueError("mine") from error

    with pytest.raises(ValueError, match="mine") as caught:
        users()
    text = failed(caught.value).traceback
    assert Path(__file__).name in text
    assert "engine/measure" not in text.replace("tests/engine/measure", "")
    assert "no_such_thing" in text, "why it was raised stays"
    assert text.rstrip().endswith("ValueError: mine")
