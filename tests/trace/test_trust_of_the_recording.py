"""What a recording is doubted for, in ones that JAX makes here and now. What follows from made ones is in
`test_trace_trust.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxprof.events import CaptureTaken, Event, TrustReported
from jaxprof.trace.summary import summarise

MI300X = Path(__file__).parents[3] / "shared" / "data" / "xplane" / "jax08_gemm__tw003.xplane.pb"


def test_what_a_sound_capture_is_not_doubted_for_and_what_one_with_a_compile_is(tmp_path: Path) -> None:
    import jax
    import jax.numpy as jnp

    @jax.jit
    def work(x: jax.Array, times: int) -> jax.Array:
        return jax.lax.fori_loop(0, times, lambda _, value: jnp.tanh(value @ value), x)

    x = jnp.ones((96, 96))
    work(x, 1).block_until_ready()
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    jax.profiler.start_trace(str(tmp_path), profiler_options=options)
    for number in range(5):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            work(x, 30).block_until_ready()
    jax.profiler.stop_trace()
    rows = trust(tmp_path)
    for code in ("file", "dropped", "python_tracer", "tracers", "clock", "unmatched", "modules", "steps"):
        assert rows[code][0] == "good", rows[code]
    assert not {"one_step", "no_kernels", "profiler_error", "guessed", "compile"} & set(rows)
    lowered = jax.jit(lambda x: jnp.sin(x) @ jnp.cos(x) + 1.25).lower(jnp.ones((8, 8)))
    options.python_tracer_level = 1
    jax.profiler.start_trace(str(tmp_path / "compile"), profiler_options=options)
    lowered.compile()
    jax.profiler.stop_trace()
    rows = trust(tmp_path / "compile")
    assert (rows["compile"][0], rows["python_tracer"][0]) == ("doubt", "doubt")


def trust(path: Path) -> dict[str, tuple[str, str]]:
    (event,) = [one for one in summarise(path, "imported") if isinstance(one, TrustReported)]
    return {row.code: (row.verdict, row.message) for row in event.rows}


def test_the_engine_holds_a_capture_against_its_timing() -> None:
    """The whole way: what the pass under the profiler knows of itself reaches the rows."""
    import jax
    import jax.numpy as jnp

    from jaxprof.engine.measure.capture import capture_run
    from jaxprof.engine.measure.control import Reporter, RunControl

    function = jax.jit(lambda x: jnp.tanh(x @ x))
    x = jnp.ones((256, 256))
    function(x).block_until_ready()
    events: list[Event] = []
    capture_run(Reporter(events.append, RunControl()), lambda: jax.block_until_ready(function(x)), 1e-9)
    (capture,) = [event for event in events if isinstance(event, CaptureTaken)]
    assert capture.seconds_with is not None
    codes = {row.code: row.verdict for event in events if isinstance(event, TrustReported) for row in event.rows}
    assert codes["slowdown"] == "bad"
    assert "sum" in codes


@pytest.mark.skipif(not MI300X.is_file(), reason="the profiles of other machines are not beside this checkout")
def test_devices_on_which_nothing_ran() -> None:
    """A box of eight, and a program on one of them; the file is of a JAX that did not tell of its tracers."""
    rows = trust(MI300X)
    assert rows["idle_devices"] == ("good", "nothing ran on " + ", ".join(f"gpu:{number}" for number in range(1, 8)))
    assert rows["tracers"][0] == "unknown"
