"""A reporter whose events are kept, and what is asked of them."""

from dataclasses import replace

import numpy as np

from jaxprof.engine.measure.control import Reporter, RunControl
from jaxprof.engine.measure.run import measure_workload
from jaxprof.engine.protocol.request import RunRequest
from jaxprof.events import PhaseEnded, RunSpec
from jaxprof.workloads import load_built_in
from jaxprof.workloads.model import Estimate, Variant

INPUT = np.arange(8, dtype=np.float32)


def reporter():
    """A reporter, and the events that it will have passed on."""
    events = []
    return Reporter(events.append, RunControl()), events


def of(events, kind):
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def only(events, kind):
    """The one event of its kind."""
    (found,) = of(events, kind)
    return found


def phases(events):
    """The phases that ended, in that order."""
    return [event.phase for event in of(events, PhaseEnded)]


def measured(function, expected, how, *, inputs="device", estimate=None, control=None, on_event=str, **given):
    """The events of a brief run of `function` on `INPUT`, in this process; `given`: fields of its spec or request."""
    events = []

    def listen(event):
        events.append(event)
        on_event(event)

    variant = Variant(name=how, how=how, function=function, inputs=inputs)
    workload = replace(
        load_built_in("selu"),
        variants=(variant,),
        inputs=lambda parameters, random: (INPUT,),
        expected=lambda parameters, arrays: expected(*arrays),
        estimate=lambda parameters: estimate or Estimate(),
    )
    request = {name: given.pop(name) for name in ("launch", "keep_output") if name in given}
    spec = RunSpec(**{"workload": "w", "variant": how, "how": how, "device": "cpu:0", "budget_seconds": 0.02, **given})
    measure_workload(workload, variant, RunRequest(run="r1", spec=spec, **request), listen, control)
    return events
