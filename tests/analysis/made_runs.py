"""Runs with fixed figures: what an engine sends of them, without an engine."""

from folding import fold
from jaxprof import events as e

STEADY = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.0, 1.01, 0.99]
"""Samples of a quiet machine."""


def planned(run="r1", **spec):
    """The plan of a compiled function on a CPU, unless `spec` says otherwise."""
    usual = {"workload": "f", "variant": "jit", "how": "jit", "device": "cpu:0"}
    return e.RunPlanned(run=run, spec=e.RunSpec(**{**usual, **spec}))


def program_text(*lines):
    """A scheduled program, whose entry has these lines of HLO."""
    return "\n".join(["HloModule jit_f, is_scheduled=true\n", "ENTRY main {", *(f"  {line}" for line in lines), "}\n"])


def hlo_text(text, run="r1", name="hlo"):
    return e.TextRecorded(run=run, name=name, text=text, bytes=len(text))


def run(name="r1", *events, samples=(), turn=None, hlo=None, kind=None, status="ok", **spec):
    """One run: its device where its `kind` is known, its program, its samples, `events`, and its end. With `turn` each
    sample is a block, and those of `turn` 1 follow those of 0."""
    plan = planned(name, **spec)
    device = {"id": plan.spec.device, "platform": plan.spec.device.partition(":")[0], "kind": kind}
    made = [plan]
    if kind is not None:
        made.append(e.EnvironmentRead(run=name, python="3", numpy="2", devices=[device]))
    if hlo is not None:
        made.append(hlo_text(hlo, name))
    if turn is not None:
        made.append(e.WorkerStarted(run=name, pid=1, python="python"))
        made += [
            e.SamplesTaken(run=name, series="run", seconds=[sample], block=2 * at + turn)
            for at, sample in enumerate(samples)
        ]
    elif samples:
        made.append(e.SamplesTaken(run=name, series="run", seconds=list(samples)))
    return [*made, *events, e.RunFinished(run=name, status=status)]


def session(*parts, **header):
    """A session of these events, and of runs."""
    flat = [event for part in parts for event in ([part] if isinstance(part, e.Event) else part)]
    return fold(e.Header(**header), flat)
