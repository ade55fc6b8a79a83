"""What a recording is doubted for, in ones that JAX makes here and now: too long, without a tracer, begun late."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from real_captures import compiled_step, profiler, steps, trust

from jaxprof.trace.steps import STEPS_KEPT

MI300X = Path(__file__).parents[3] / "shared" / "data" / "xplane" / "jax08_gemm__tw003.xplane.pb"


@pytest.fixture(scope="module")
def step() -> Callable[[int], None]:
    return compiled_step()


def test_more_steps_than_are_kept(tmp_path: Path, step: Callable[[int], None]) -> None:
    with profiler(tmp_path):
        steps(step, *[1] * (STEPS_KEPT + 1))
    assert trust(tmp_path)["steps_kept"][0] == "doubt"
    with profiler(tmp_path / "fewer"):
        steps(step, *[1] * 5)
    assert "steps_kept" not in trust(tmp_path / "fewer")


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

    def test_a_short_one_has_all(self, tmp_path: Path, step: Callable[[int], None]) -> None:
        with profiler(tmp_path):
            steps(step, 5, 5)
        for file in (*tmp_path.rglob("*.xplane.pb"), *tmp_path.rglob("*.trace.json.gz")):
            rows = trust(file)
            assert (rows["dropped"][0], "timeline" in rows) == ("good", False)


@pytest.mark.skipif(not MI300X.is_file(), reason="the profiles of other machines are not beside this checkout")
def test_devices_on_which_nothing_ran() -> None:
    """A box of eight, and a program on one of them; the file is of a JAX that did not tell of its tracers."""
    rows = trust(MI300X)
    assert rows["idle_devices"] == ("good", "nothing ran on " + ", ".join(f"gpu:{number}" for number in range(1, 8)))
    assert rows["tracers"][0] == "unknown"
