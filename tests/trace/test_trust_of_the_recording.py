"""What a recording is doubted for, in ones that JAX makes here and now.

What follows from times alone is in `test_trace_trust.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from real_captures import compiled_step, profiler, steps, trust

from jaxprof.events import CaptureTaken, Event, TrustReported

MI300X = Path(__file__).parents[3] / "shared" / "data" / "xplane" / "jax08_gemm__tw003.xplane.pb"


@pytest.fixture(scope="module")
def step() -> Callable[[int], None]:
    return compiled_step()


@pytest.fixture(scope="module")
def even(tmp_path_factory: pytest.TempPathFactory, step: Callable[[int], None]) -> Path:
    """Five steps of the same work, which nothing can be said against but what a busy machine does to them."""
    folder = tmp_path_factory.mktemp("even")
    with profiler(folder):
        steps(step, *[30] * 5)
    return folder


def test_what_a_sound_capture_is_not_doubted_for(even: Path) -> None:
    rows = trust(even)
    for code in ("file", "dropped", "python_tracer", "tracers", "clock", "unmatched", "modules", "steps"):
        assert rows[code][0] == "good", rows[code]
    assert not {"one_step", "no_kernels", "profiler_error", "guessed", "compile"} & set(rows)


def test_the_python_tracer(tmp_path: Path, step: Callable[[int], None]) -> None:
    with profiler(tmp_path, python=1):
        steps(step, 5, 5)
    assert trust(tmp_path)["python_tracer"][0] == "doubt"


def test_a_compile_within_the_capture(tmp_path: Path) -> None:
    """Compiled ahead: nothing but the compile happens while the profiler is on."""
    import jax
    import jax.numpy as jnp

    lowered = jax.jit(lambda x: jnp.sin(x) @ jnp.cos(x) + 1.25).lower(jnp.ones((8, 8)))
    with profiler(tmp_path):
        lowered.compile()
    verdict, message = trust(tmp_path)["compile"]
    assert (verdict, message.endswith("it mainly shows a compile")) == ("doubt", True)


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


def test_more_steps_than_are_kept(tmp_path: Path, step: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("steps", "trust.steps"):
        monkeypatch.setattr(f"jaxprof.trace.{module}.STEPS_KEPT", 20)
    with profiler(tmp_path):
        steps(step, *[1] * 21)
    assert trust(tmp_path)["steps_kept"][0] == "doubt"
    with profiler(tmp_path / "fewer"):
        steps(step, *[1] * 5)
    assert "steps_kept" not in trust(tmp_path / "fewer")


KEPT = 2_000
"""Instead of a million."""


class TestMoreEventsThanAreKept:
    @pytest.fixture
    def long(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        import jax

        monkeypatch.setattr("jaxprof.trace.summary.INTERVALS_KEPT", KEPT)
        annotation = jax.profiler.TraceAnnotation
        with profiler(tmp_path / "long"):
            for _ in range(KEPT + 100):
                with annotation("a"):
                    pass
        return tmp_path / "long"

    def test_the_timeline_says_what_it_leaves_out(self, long: Path) -> None:
        (file,) = long.rglob("*.xplane.pb")
        rows = trust(file)
        assert rows["timeline"][0] == "doubt"
        assert rows["dropped"][0] == "good"

    def test_a_short_one_has_all(self, tmp_path: Path, step: Callable[[int], None]) -> None:
        with profiler(tmp_path):
            steps(step, 5, 5)
        rows = trust(tmp_path)
        assert (rows["dropped"][0], "timeline" in rows) == ("good", False)


@pytest.mark.skipif(not MI300X.is_file(), reason="the profiles of other machines are not beside this checkout")
def test_devices_on_which_nothing_ran() -> None:
    """A box of eight, and a program on one of them; the file is of a JAX that did not tell of its tracers."""
    rows = trust(MI300X)
    assert rows["idle_devices"] == ("good", "nothing ran on " + ", ".join(f"gpu:{number}" for number in range(1, 8)))
    assert rows["tracers"][0] == "unknown"
