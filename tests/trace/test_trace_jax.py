"""Profiles that JAX records here and now, on CPU: what is in them, and what they are doubted for."""

from pathlib import Path

import pytest

from jaxprof.events import CaptureTaken, TrustReported
from jaxprof.hlo.read.parse import module
from jaxprof.trace.imported import text_of
from jaxprof.trace.ops import op_times
from jaxprof.trace.sources import read_profile
from jaxprof.trace.steps import steps_of
from jaxprof.trace.summary import summarise

CALLS = 3
MI300X = Path(__file__).parents[3] / "shared" / "data" / "xplane" / "jax08_gemm__tw003.xplane.pb"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Three annotated calls of a program with a loop, a compile outside of the profile."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def step(x):
        def body(carry, _):
            return jnp.tanh(carry @ carry.T), None

        return jnp.sort(jax.lax.scan(body, x, None, length=4)[0].sum(0))

    x = jnp.ones((64, 64))
    step(x).block_until_ready()
    folder = tmp_path_factory.mktemp("recorded")
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    jax.profiler.start_trace(str(folder), profiler_options=options)
    for number in range(CALLS):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            step(x).block_until_ready()
    jax.profiler.stop_trace()
    return folder


@pytest.fixture(scope="module")
def compiling(tmp_path_factory):
    """A compile, and Python's own tracer."""
    import jax
    import jax.numpy as jnp

    lowered = jax.jit(lambda x: jnp.sin(x) @ jnp.cos(x) + 1.25).lower(jnp.ones((8, 8)))
    folder = tmp_path_factory.mktemp("compiling")
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 1
    jax.profiler.start_trace(str(folder), profiler_options=options)
    lowered.compile()
    jax.profiler.stop_trace()
    return folder


def events_by_jax(folder):
    """Thread, op, start and duration in ns, of each HLO op, as JAX's own reader gives them."""
    from jax.profiler import ProfileData

    (file,) = folder.rglob("*.xplane.pb")
    for plane in ProfileData.from_file(str(file)).planes:
        for line in plane.lines:
            for event in line.events:
                stats = dict(event.stats)
                if "hlo_op" in stats and not event.name.startswith("end: "):
                    yield line.name, str(stats["hlo_op"]), event.start_ns, event.duration_ns


def test_totals_and_self_times_agree_with_a_sum_by_hand(recorded):
    sums = {}
    lines = {}
    for line, name, start, duration in events_by_jax(recorded):
        sums.setdefault(name, []).append(duration)
        lines.setdefault(line, []).append((start, start + duration))
    rows = {row.op.name: row for row in op_times(read_profile(recorded))}
    assert set(rows) == set(sums)
    for name, durations in sums.items():
        assert rows[name].count == len(durations)
        assert rows[name].total_seconds == pytest.approx(sum(durations) * 1e-9, rel=1e-9)
    covered = 0.0
    for spans in lines.values():
        reached = float("-inf")
        for start, end in sorted(spans):
            covered += max(0.0, end - max(start, reached))
            reached = max(reached, end)
    assert sum(row.self_seconds for row in rows.values()) == pytest.approx(covered * 1e-9, rel=1e-6)


def test_the_hlo_in_the_file_has_the_ops_that_ran(recorded):
    trace = read_profile(recorded)
    (program,) = {(row.op.module, row.op.program) for row in op_times(trace)}
    text, problem = text_of(trace, program)
    assert text is not None, problem
    names = {one.name for computation in module(text).computations.values() for one in computation.instructions}
    assert {row.op.name for row in op_times(trace)} <= names


def test_the_annotated_steps_hold_all_of_the_work(recorded):
    steps = steps_of(read_profile(recorded))
    assert (steps.found_by, [row.name for row in steps.rows]) == ("annotation", ["train 0", "train 1", "train 2"])
    assert steps.outside_seconds == pytest.approx(0, abs=1e-9)


def test_what_a_sound_capture_is_not_doubted_for_and_one_of_a_compile_is(recorded, compiling):
    rows = trust(recorded)
    for code in ("file", "dropped", "python_tracer", "tracers", "clock", "unmatched", "modules", "steps"):
        assert rows[code][0] == "good", rows[code]
    assert not {"one_step", "no_kernels", "profiler_error", "guessed", "compile"} & set(rows)
    rows = trust(compiling)
    assert (rows["compile"][0], rows["python_tracer"][0]) == ("doubt", "doubt")


def trust(path):
    (event,) = [one for one in summarise(path, "imported") if isinstance(one, TrustReported)]
    return {row.code: (row.verdict, row.message) for row in event.rows}


def test_the_engine_holds_a_capture_against_its_timing():
    """The whole way: what the pass under the profiler knows of itself reaches the rows."""
    import jax
    import jax.numpy as jnp

    from jaxprof.engine.measure.capture import capture_run
    from jaxprof.engine.measure.control import Reporter, RunControl

    function = jax.jit(lambda x: jnp.tanh(x @ x))
    x = jnp.ones((256, 256))
    function(x).block_until_ready()
    events = []
    capture_run(Reporter(events.append, RunControl()), lambda: jax.block_until_ready(function(x)), 1e-9)
    (capture,) = [event for event in events if isinstance(event, CaptureTaken)]
    assert capture.seconds_with is not None
    codes = {row.code: row.verdict for event in events if isinstance(event, TrustReported) for row in event.rows}
    assert codes["slowdown"] == "bad"
    assert "sum" in codes


@pytest.mark.skipif(not MI300X.is_file(), reason="the profiles of other machines are not beside this checkout")
def test_devices_on_which_nothing_ran():
    """A box of eight, and a program on one of them; the file is of a JAX that did not tell of its tracers."""
    rows = trust(MI300X)
    assert rows["idle_devices"] == ("good", "nothing ran on " + ", ".join(f"gpu:{number}" for number in range(1, 8)))
    assert rows["tracers"][0] == "unknown"
