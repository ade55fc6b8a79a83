"""What a capture is doubted for, in captures that JAX makes here and now: one that is doubted, and one that is not.

Another program may take the cores at any moment of a capture. So what a verdict has to be is worked out from the same
capture by JAX's own reader, and an undisturbed one is made again with more work, a few times, where a test needs it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from real_captures import MORE_WORK, by_jax, compiled_step, length, outside, profiler, steps, trust

from jaxprof.events import CaptureTaken, Event, TrustReported
from jaxprof.units import percent


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


def test_steps_of_the_same_work(tmp_path: Path, step: Callable[[int], None]) -> None:
    """Nothing is said against them, unless the machine held some of them up."""
    for more in MORE_WORK:
        with profiler(tmp_path / str(more)):
            steps(step, *[100 * more] * 4)
        rows = trust(tmp_path / str(more))
        marked, busy = by_jax(tmp_path / str(more))
        took = [end - begin for begin, end in marked]
        assert len(took) == 4
        ratio = max(max(took) / median(took), median(took) / min(took))
        if not 1.49 < ratio < 1.51:
            assert rows["uneven_steps"][0] == ("good" if ratio < 1.5 else "doubt"), took
        share = outside(busy, marked) / length(busy)
        if not 0.009 < share < 0.011:
            assert ("outside_steps" in rows) == (share > 0.01), share
        if rows["uneven_steps"][0] == "good" and "outside_steps" not in rows:
            return
    pytest.fail("the machine held every one of the captures up")


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
    assert (verdict, message.endswith("it shows a compile more than a run")) == ("doubt", True)


class TestAgainstTheTiming:
    @staticmethod
    def captured(
        folder: Path, step: Callable[[int], None], size: int, pause: float = 0.0
    ) -> tuple[list[float], dict[str, Any]]:
        """What each of three calls took, which go on without a kernel for `pause` times as long as they ran."""
        import jax

        took = []
        with profiler(folder):
            for number in range(3):
                with jax.profiler.StepTraceAnnotation("call", step_num=number):
                    began = time.perf_counter()
                    step(size)
                    time.sleep(pause * (time.perf_counter() - began))
                    took.append(time.perf_counter() - began)
        return took, {"kind": "run", "calls": 3, "seconds_of_calls": took}

    def test_device_time_that_fits(self, tmp_path: Path, step: Callable[[int], None]) -> None:
        for more in MORE_WORK:
            folder = tmp_path / str(more)
            took, known = self.captured(folder, step, 200 * more)
            rows = trust(folder, **known, timed_seconds=median(took))
            assert rows["slowdown"][0] == "good"
            share = length(by_jax(folder)[1]) / 1e9 / sum(took)
            assert f" {percent(share)} " in rows["sum"][1] or f" {percent(share + 1e-4)} " in rows["sum"][1]
            if not 0.49 < share < 0.51:
                assert rows["sum"][0] == ("good" if 0.5 < share < 1.05 else "doubt"), share
            if rows["sum"][0] == "good":
                return
        pytest.fail("the machine held every one of the captures up")

    def test_a_call_that_the_device_does_not_fill(self, tmp_path: Path, step: Callable[[int], None]) -> None:
        _, known = self.captured(tmp_path, step, 200, pause=2.0)
        assert trust(tmp_path, **known)["sum"][0] == "doubt"

    def test_one_call_that_was_held_up_is_no_doubt(self, tmp_path: Path, step: Callable[[int], None]) -> None:
        """Its kernels took longer as well: compared with the call in the middle they would be more than all of it."""
        took = []
        with profiler(tmp_path):
            for size in (1_000, 1_000, 10_000):
                began = time.perf_counter()
                step(size)
                took.append(time.perf_counter() - began)
        assert length(by_jax(tmp_path)[1]) / 1e9 / 3 / median(took) > 1.05
        assert trust(tmp_path, kind="run", calls=3, seconds_of_calls=took)["sum"][0] == "good"

    @pytest.mark.parametrize(("times", "verdict"), [(2.0, "doubt"), (7.0, "bad")])
    def test_a_capture_that_is_slower_than_the_timed_run(
        self, tmp_path: Path, step: Callable[[int], None], times: float, verdict: str
    ) -> None:
        took, known = self.captured(tmp_path, step, 20)
        found = trust(tmp_path, **known, timed_seconds=median(took) / times)["slowdown"]
        assert (found[0], found[1].endswith(f"{times:.1f} times as long")) == (verdict, True)


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
