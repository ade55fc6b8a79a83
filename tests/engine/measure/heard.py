"""A reporter whose events are kept, and what is asked of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from jaxprof.engine.measure.control import Reporter, RunControl
from jaxprof.engine.measure.run import measure_workload
from jaxprof.engine.protocol.request import RunRequest
from jaxprof.events import Event, PhaseEnded, RunSpec
from jaxprof.workloads import built_in
from jaxprof.workloads.model import Estimate, Variant

INPUT = np.arange(8, dtype=np.float32)


def reporter(control: RunControl | None = None) -> tuple[Reporter, list[Event]]:
    """A reporter, and the events that it will have passed on."""
    events: list[Event] = []
    return Reporter(events.append, control or RunControl()), events


def of(events: Iterable[Event], kind: type[Any]) -> list[Any]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def only(events: Iterable[Event], kind: type[Any]) -> Any:
    """The one event of its kind."""
    (found,) = of(events, kind)
    return found


def phases(events: Iterable[Event]) -> list[str]:
    """The phases that ended, in that order."""
    return [event.phase for event in of(events, PhaseEnded)]


def measured(
    function: Callable[..., Any],
    expected: Callable[..., Any],
    how: str,
    *,
    inputs: str = "device",
    estimate: Estimate | None = None,
    control: RunControl | None = None,
    on_event: Callable[[Event], object] = str,
    **given: Any,
) -> list[Event]:
    """The events of a brief run of `function` on `INPUT`, in this process; `given`: fields of its spec or request."""
    events: list[Event] = []

    def listen(event: Event) -> None:
        events.append(event)
        on_event(event)

    variant = Variant(name=how, how=how, function=function, inputs=inputs)
    workload = replace(
        built_in("selu"),
        variants=(variant,),
        inputs=lambda parameters, random: (INPUT,),
        expected=lambda parameters, arrays: expected(*arrays),
        estimate=lambda parameters: estimate or Estimate(),
    )
    request = {name: given.pop(name) for name in ("launch", "keep_output", "keep_trace") if name in given}
    spec = RunSpec(**{"workload": "w", "variant": how, "how": how, "device": "cpu:0", "budget_seconds": 0.02, **given})
    measure_workload(workload, variant, RunRequest(run="r1", spec=spec, **request), listen, control)
    return events
