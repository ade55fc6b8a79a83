"""Sessions made of events, without an engine: the same samples at each call, in the states that a screen must show.

`Tape` plays the part of the engine: each word of it appends an event at a time that the tape itself keeps.
"""

import random

from jaxprof import events as e
from jaxprof.session import Session

HOSTILE = "[b]jit[/x]\x1b[31m\n\u202etxt"
"""A name that no screen may obey: markup, an escape sequence, a line break, an override of the writing direction."""

HLO = """HloModule jit_selu, entry_computation_layout={(f32[1000000]{0})->f32[1000000]{0}}

%fused_computation (param_0: f32[1000000]) -> f32[1000000] {
  %param_0 = f32[1000000]{0} parameter(0)
  ROOT %exponential.1 = f32[1000000]{0} exponential(%param_0), metadata={op_name="jit(selu)/exp" source_line=12}
}

ENTRY %main.1 (x: f32[1000000]) -> f32[1000000] {
  %x = f32[1000000]{0} parameter(0)
  ROOT %loop_fusion = f32[1000000]{0} fusion(%x), kind=kLoop, calls=%fused_computation
}
"""


class Tape:
    """Events of one session, with a clock that moves only as it is told."""

    def __init__(self, began_seconds=1000.0):
        self.header = e.Header(
            jaxprof="0.1.0", session="4f2a4f2a4f2a", created="2026-11-20T10:00:00Z", host="box",
            wall_seconds=1_795_000_000.0, monotonic_seconds=began_seconds,
        )  # fmt: skip
        self.now = began_seconds
        self.events = []
        self._random = random.Random(7)
        self._sides = {}
        self._later = {}

    def add(self, kind, run="", /, **fields):
        self.events.append(kind(run=run, seq=len(self.events) + 1, monotonic_seconds=self.now, **fields))

    def session(self):
        """The fold of everything so far, as the app that writes it has it."""
        session = Session(self.header)
        session.desert(deserted=False)
        session.extend(self.events)
        return session

    def plan(self, run, variant, how="jit", **fields):
        given = {"workload": "selu", "device": "cpu:0", "parameters": {"n": 1_000_000}, "preset": "quick", **fields}
        spec = e.RunSpec(variant=variant, how=how, budget_seconds=2.0, launches=3, **given)
        self._sides[run] = 1 if spec.baseline else 0
        self.add(e.RunPlanned, run, spec=spec)

    def start(self, run, pid=4711):
        self.add(e.WorkerStarted, run, pid=pid, python="/venv/bin/python")
        self.add(
            e.EnvironmentRead,
            run,
            python="3.12.4",
            numpy="2.3.4",
            jax="0.10.2",
            jaxlib="0.10.2",
            devices=[{"id": "cpu:0", "platform": "cpu", "kind": "cpu", "process": 0}],
            settings={"x64": False, "cores": 2, "load_average_before": 0.4, "blas": "openblas 0.3.29", "threads": 2},
        )

    def phase(self, run, name, seconds, **fields):
        self.add(e.PhaseStarted, run, phase=name)
        self.now += seconds or 0.001
        self.add(e.PhaseEnded, run, phase=name, seconds=seconds, **fields)

    def startup(self, run):
        for name, seconds in (("import", 0.52), ("backend_init", 0.11), ("warm_up", 0.07)):
            self.phase(run, name, seconds)

    def stages(self, run, trace=6.2e-3, lower=30.9e-3, compile_=37.6e-3):
        for name, seconds in (("trace", trace), ("lower", lower), ("compile", compile_)):
            self.phase(run, name, seconds)
        self.add(e.TextRecorded, run, name="hlo", text=HLO, bytes=len(HLO))
        sizes = {"argument_bytes": 4_000_000, "output_bytes": 4_000_000, "temporary_bytes": 0}
        self.add(e.MemoryReported, run, **sizes, peak_bytes=8_000_000)

    def noise(self, median, count, spread=0.02):
        """Samples around a median, skewed as times are."""
        return [median * (1 + abs(self._random.gauss(0, spread)) - spread * 0.67) for _ in range(count)]

    def samples(self, run, series, seconds, calls=1):
        self.add(e.SamplesTaken, run, series=series, seconds=list(seconds), calls_per_sample=calls)

    def transfer(self, run, name, median, bytes_, *, zero_copy=False):
        self.add(e.PhaseStarted, run, phase=name)
        self.samples(run, name, self.noise(median, 12))
        self.now += 12 * median
        self.add(e.PhaseEnded, run, phase=name, seconds=12 * median, bytes=bytes_, zero_copy=zero_copy)

    def turns(self, run, samples, calls, launch=1):
        """A block a sample; those of a run lie between those of its baseline."""
        for index, seconds in enumerate(samples):
            block = 1000 * launch + 2 * index + self._sides[run]
            self.add(e.SamplesTaken, run, series="run", seconds=[seconds], calls_per_sample=calls, block=block)

    def steady(self, run, median, count=60, *, spread=0.02, calls=4):
        """The steady run, with one disturbed sample among a full set."""
        self.add(e.PhaseStarted, run, phase="run")
        samples = self.noise(median, count, spread)
        if count > 20:
            samples[count // 3] = median * 2.4
        self.turns(run, samples[::3], calls)
        self._later[run] = [(launch, samples[launch - 1 :: 3], calls) for launch in (2, 3)]
        self.now += count * calls * median
        self.add(e.PhaseEnded, run, phase="run", seconds=count * calls * median)

    def check(self, run, *, passed=True, error=3.1e-7):
        self.add(e.CheckReported, run, passed=passed, max_relative_error=error, tolerance=1e-5, against="numpy twin")

    def finish(self, run, status="ok", **fields):
        for launch, samples, calls in self._later.pop(run, []):
            self.add(e.WorkerStarted, run, pid=4711 + launch, python="/venv/bin/python", launch=launch)
            self.turns(run, samples, calls, launch)
        self.add(e.RunFinished, run, status=status, **fields)
        spec = next(one.spec for one in self.events if isinstance(one, e.RunPlanned) and one.run == run)
        said = {name: fields.get(name, "") for name in ("error", "advice")}
        named = {name: getattr(spec, name) for name in ("workload", "variant", "device")}
        self.add(e.RunClosed, run, status=status, **named, **said)

    def close(self):
        self.add(e.SessionClosed, reason="finished")

    def numpy_run(self, run, median=4.37e-3):
        self.start(run)
        self.phase(run, "first_run", median * 1.2)
        self.steady(run, median, calls=1)
        self.check(run)
        self.finish(run)

    def jit_run(self, run, median=0.63e-3, *, count=60, spread=0.02):
        self.start(run)
        self.startup(run)
        self.transfer(run, "transfer_in", 0.9e-3, 4_000_000)
        self.stages(run)
        self.phase(run, "first_run", 0.94e-3)
        self.steady(run, median, count, spread=spread)
        self.samples(run, "dispatch", self.noise(11e-6, 20))
        self.samples(run, "pipelined", self.noise(median * 0.9, 20), 16)
        self.transfer(run, "transfer_out", 1.2e-6, 4_000_000, zero_copy=True)
        self.check(run)
        self.finish(run)


def planned(*variants):
    """NumPy, and compiled variants that are compared with it."""
    tape = Tape()
    tape.plan("r1", "numpy", "numpy")
    for number, variant in enumerate(variants, 2):
        tape.plan(f"r{number}", variant, baseline="r1")
    return tape


def finished():
    """Three variants, all well."""
    tape = planned()
    tape.plan("r2", "jax", "eager", baseline="r1")
    tape.plan("r3", "jit", baseline="r1")
    tape.numpy_run("r1")
    tape.jit_run("r2", 1.15e-3, spread=0.05)
    tape.jit_run("r3")
    tape.close()
    return tape


def compiling():
    """The baseline is done, the second run compiles since 2.5 s, the third waits."""
    tape = planned("jit", "jit-highest")
    tape.numpy_run("r1")
    tape.start("r2")
    tape.startup("r2")
    tape.phase("r2", "trace", 6.2e-3)
    tape.phase("r2", "lower", 30.9e-3)
    tape.add(e.PhaseStarted, "r2", phase="compile")
    tape.add(e.LogLine, "r2", stream="stderr", text="I0000 compiling module jit_selu")
    tape.now += 2.5
    return tape


def sampling():
    """The second run is in the middle of its steady run."""
    tape = planned("jit", "jit-highest")
    tape.numpy_run("r1")
    tape.start("r2")
    tape.startup("r2")
    tape.transfer("r2", "transfer_in", 0.9e-3, 4_000_000)
    tape.stages("r2")
    tape.phase("r2", "first_run", 0.94e-3)
    tape.add(e.PhaseStarted, "r2", phase="run")
    tape.now += 0.8
    tape.turns("r2", tape.noise(0.63e-3, 37), 4)
    tape.add(e.ProgressMade, "r2", fraction=0.4, remaining_seconds=1.2)
    tape.add(e.LogLine, "r2", stream="stdout", text="hello from the workload")
    return tape


def in_turns():
    """The second of three launches: one run compiles anew, one is warm, one waits for the others."""
    tape = planned("jit", "jit-highest")
    for run, median in (("r1", 4.37e-3), ("r2", 0.63e-3), ("r3", 0.65e-3)):
        tape.start(run)
        tape.startup(run)
        if run != "r1":
            tape.stages(run)
        tape.add(e.PhaseStarted, run, phase="run")
        tape.turns(run, tape.noise(median, 20), 1)
        note = "launch 1 of 3, in turns with 2 more"
        tape.add(e.ProgressMade, run, fraction=1 / 3, remaining_seconds=9.0, note=note)
        tape.phase(run, "run", 0.7)
    tape.now += 20.0
    for run in ("r2", "r3"):
        tape.add(e.WorkerStarted, run, pid=4800, python="/venv/bin/python", launch=2)
        tape.startup(run)
    for name in ("trace", "lower", "compile"):
        tape.phase("r3", name, 0.05)
    tape.add(e.PhaseStarted, "r3", phase="waiting")
    tape.add(e.PhaseStarted, "r2", phase="compile")
    tape.now += 1.5
    return tape


def troubled():
    """One of each end: ok, failed, crashed, cancelled; a wrong result, a warning, and a hostile name."""
    tape = planned("jit", "jit-highest", HOSTILE)
    tape.plan("r5", "jax", "eager", baseline="r1")
    tape.numpy_run("r1")
    tape.start("r2")
    tape.startup("r2")
    tape.add(e.PhaseStarted, "r2", phase="trace")
    tape.now += 0.2
    tape.finish(
        "r2",
        "failed",
        error="TypeError: add got incompatible shapes for broadcasting: (3,), (4,)",
        advice="The function itself raised this; call it outside of jaxprof to see it there.",
        traceback='Traceback (most recent call last):\n  File "selu.py", line 12, in selu\nTypeError: (3,), (4,)',
    )
    tape.start("r3")
    tape.startup("r3")
    tape.add(e.PhaseStarted, "r3", phase="compile")
    tape.now += 4
    tape.add(e.LogLine, "r3", stream="stderr", text="F0000 check failed: \x1b[31mRET_CHECK\x1b[0m [/b] failure")
    tape.finish("r3", "crashed", error="XLA aborted (SIGABRT)", advice="The log holds XLA's last words.")
    tape.jit_run("r4", 0.7e-3, count=8, spread=0.4)
    tape.events.insert(-2, e.CheckReported(run="r4", passed=False, max_relative_error=0.31, tolerance=1e-5))
    tape.add(
        e.WarningRaised,
        "r4",
        code="folded_constants",
        message="[red]constants were folded[/red] at compile time",
        advice="Pass them as arguments.",
    )
    tape.finish("r5", "cancelled", error="cancelled before it began")
    tape.close()
    return tape


def sweep():
    """NumPy against jit over seven sizes; jit overtakes between 10 000 and 31 623."""
    tape = Tape()
    sizes = [1_000, 3_162, 10_000, 31_623, 100_000, 316_228, 1_000_000]
    for index, size in enumerate(sizes):
        base = f"r{2 * index + 1}"
        tape.plan(base, "numpy", "numpy", parameters={"n": size})
        tape.plan(f"r{2 * index + 2}", "jit", baseline=base, parameters={"n": size})
    for index, size in enumerate(sizes):
        tape.numpy_run(f"r{2 * index + 1}", 2e-6 + 4.2e-9 * size)
        tape.jit_run(f"r{2 * index + 2}", 52e-6 + 0.6e-9 * size)
    tape.close()
    return tape
