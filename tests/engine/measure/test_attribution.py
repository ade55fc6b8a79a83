"""The pass that only names kernels: a capture, and no timing."""

from __future__ import annotations

from jaxprof import events as e
from jaxprof.engine.measure.run import measure_workload
from jaxprof.engine.protocol.request import RunRequest
from jaxprof.events import RunSpec
from jaxprof.workloads.find import find


def test_a_request_for_attribution_captures_and_times_nothing() -> None:
    workload = find("selu", [])
    request = RunRequest(
        run="r1",
        attribution=True,
        spec=RunSpec(
            target="selu", workload="selu", variant="jit", parameters={"n": 10_000}, how="jit", device="cpu:0"
        ),
    )
    told: list[e.Event] = []
    measure_workload(workload, workload.variant("jit"), request, told.append)
    assert isinstance(told[-1], e.RunFinished)
    assert told[-1].status == "ok"
    assert not any(isinstance(event, e.SamplesTaken | e.CostReported) for event in told)
    captured = [event for event in told if isinstance(event, e.CaptureTaken | e.KernelsMeasured | e.TrustReported)]
    assert [type(event) for event in captured] == [e.CaptureTaken, e.KernelsMeasured, e.TrustReported]
    assert {event.kind for event in captured} == {"attribution"}
    assert any(event.rows for event in captured if isinstance(event, e.KernelsMeasured))
