"""What a recording is doubted for, in ones that JAX makes here and now: too long, without a tracer, begun late."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from real_captures import Verdicts, by_jax, compiled_step, length, profiler, steps, trust

from jaxprof.trace.steps import STEPS_KEPT

MI300X = Path(__file__).parents[3] / "shared" / "data" / "xplane" / "jax08_gemm__tw003.xplane.pb"


@pytest.fixture(scope="module")
def step() -> Callable[[int], None]:
    return compiled_step()


def test_the_tracer_of_the_host_was_off(tmp_path: Path, step: Callable[[int], None]) -> None:
    """Nothing is left of a program on CPU, whatever the level of the device's tracer."""
    with profiler(tmp_path, host=0):
        steps(step, 5, 5)
    rows = trust(tmp_path)
    assert rows["tracers"][0] == "bad"
    assert rows["clock"][0] == "unknown"
    assert rows["no_kernels"] == ("bad", "no kernels: the profile has no events at all")


def test_its_lowest_level_has_the_ops_of_a_cpu(tmp_path: Path, step: Callable[[int], None]) -> None:
    with profiler(tmp_path, host=1):
        steps(step, 5, 5)
    rows = trust(tmp_path)
    assert rows["tracers"] == ("good", "levels of tracing: host 1, device 1, python 0")
    assert "no_kernels" not in rows


def test_more_steps_than_are_kept(tmp_path: Path, step: Callable[[int], None]) -> None:
    with profiler(tmp_path):
        steps(step, *[1] * (STEPS_KEPT + 1))
    assert trust(tmp_path)["steps_kept"][0] == "doubt"
    with profiler(tmp_path / "fewer"):
        steps(step, *[1] * 5)
    assert "steps_kept" not in trust(tmp_path / "fewer")


def test_a_profiler_that_is_started_within_a_step(tmp_path: Path) -> None:
    """Without annotations, a step is an execution: the first is incomplete if half of its ops were over by then."""
    import jax
    import jax.numpy as jnp

    work = jax.jit(lambda x, times: jax.lax.fori_loop(0, times, lambda _, value: jnp.tanh(value @ value), x))
    x = jnp.ones((96, 96))
    work(x, 1).block_until_ready()
    began = time.perf_counter()
    work(x, 2000).block_until_ready()
    took = time.perf_counter() - began
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        early = Thread(target=lambda: work(x, 2000).block_until_ready())  # which the dispatch on CPU may wait for
        early.start()
        time.sleep(took / 2)
        with profiler(folder):
            early.join()
            for _ in range(3):
                work(x, 2000).block_until_ready()
        counts = ops_of_executions(folder)
        verdict, message = trust(folder)["steps"]
        if len(counts) == 4 and 0 < counts[0] < 0.85 * min(counts[1:3]):
            assert (verdict, message.startswith("1 step at the edges is incomplete; 4 steps found")) == ("doubt", True)
            return
        assert verdict == "good" or counts[0] < 0.95 * min(counts[1:3]), counts
    pytest.fail("the profiler never began within the first execution")


def ops_of_executions(folder: Path) -> list[int]:
    """How many ops each execution has, by JAX's own reader, in the order of time."""
    from jax.profiler import ProfileData

    (file,) = folder.rglob("*.xplane.pb")
    found: dict[Any, tuple[float, int]] = {}
    for plane in ProfileData.from_file(str(file)).planes:
        for line in plane.lines:
            for event in line.events:
                stats = dict(event.stats)
                if "hlo_op" in stats and not event.name.startswith("end: "):
                    begin, count = found.get(stats["run_id"], (event.start_ns, 0))
                    found[stats["run_id"]] = (min(begin, event.start_ns), count + 1)
    return [count for _, count in sorted(found.values())]


KEPT = 20_000
"""Instead of a million."""


class TestMoreEventsThanAreKept:
    @pytest.fixture
    def long(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """The Chrome export ends where it is told to, as that of JAX 0.10 does at a million."""
        import jax

        monkeypatch.setattr("jaxprof.trace.summary.INTERVALS_KEPT", KEPT)
        monkeypatch.setattr("jaxprof.trace.trust.recording.CHROME_LIMITS", (KEPT,))
        monkeypatch.setenv("TF_PROFILER_TRACE_VIEWER_MAX_EVENTS", str(KEPT))

        annotation = jax.profiler.TraceAnnotation
        with profiler(tmp_path / "long"):
            for _ in range(KEPT + 1000):
                with annotation("a"):
                    pass
        return tmp_path / "long"

    def test_the_timeline_says_what_it_leaves_out(self, long: Path) -> None:
        (file,) = long.rglob("*.xplane.pb")
        rows = trust(file)
        assert rows["timeline"][0] == "doubt"
        assert rows["dropped"][0] == "good"

    def test_the_chrome_trace_beside_it_ends_before_the_recording_does(self, long: Path) -> None:
        (file,) = long.rglob("*.trace.json.gz")
        rows = trust(file)
        assert rows["dropped"][0] == "bad"
        assert "timeline" not in rows

    def test_a_short_one_has_all(self, tmp_path: Path, step: Callable[[int], None]) -> None:
        with profiler(tmp_path):
            steps(step, 5, 5)
        for file in (*tmp_path.rglob("*.xplane.pb"), *tmp_path.rglob("*.trace.json.gz")):
            rows = trust(file)
            assert (rows["dropped"][0], "timeline" in rows) == ("good", False)


class TestTimeWithoutARecord:
    """A convolution goes on, on threads of Eigen's, after its op is over in the record (JAX 0.10.2, 0.12.0.1)."""

    @staticmethod
    def verdict(folder: Path, function: Callable[[Any], Any]) -> tuple[str, float]:
        """What is said, and the share of the executions' time in which no op ran, by JAX's own reader."""
        import jax
        import jax.numpy as jnp

        x = jnp.ones((1, 1, 1000, 1000))
        function(x).block_until_ready()
        with profiler(folder):
            for number in range(2):
                with jax.profiler.StepTraceAnnotation("call", step_num=number):
                    function(x).block_until_ready()
        rows: Verdicts = trust(folder)
        marked, busy = by_jax(folder)
        return rows["unrecorded"][0], 1 - length(busy) / length(marked)

    def test_a_convolution(self, tmp_path: Path) -> None:
        import jax
        import jax.numpy as jnp

        kernel = jnp.ones((8, 1, 5, 5))
        verdict, without = self.verdict(tmp_path, jax.jit(lambda x: jax.lax.conv(x * 2, kernel, (1, 1), "SAME") * 2))
        assert (verdict, without > 0.2) == ("doubt", True)

    def test_a_loop(self, tmp_path: Path) -> None:
        import jax
        import jax.numpy as jnp

        verdict, _ = self.verdict(
            tmp_path, jax.jit(lambda x: jax.lax.fori_loop(0, 50, lambda _, value: jnp.tanh(value) * 2, x))
        )
        assert verdict == "good"


@pytest.mark.skipif(not MI300X.is_file(), reason="the profiles of other machines are not beside this checkout")
def test_devices_on_which_nothing_ran() -> None:
    """A box of eight, and a program on one of them; the file is of a JAX that did not tell of its tracers."""
    rows = trust(MI300X)
    assert rows["idle_devices"] == ("good", "nothing ran on " + ", ".join(f"gpu:{number}" for number in range(1, 8)))
    assert rows["tracers"][0] == "unknown"
