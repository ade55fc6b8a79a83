"""What a run will need is held against what there is, before anything is made."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.measure.heard import only, reporter
from jaxprof.engine.measure import jax_devices, preflight
from jaxprof.engine.protocol.request import RunRequest
from jaxprof.errors import DoesNotFitError
from jaxprof.events import BuffersReported, RunSpec
from jaxprof.workloads import built_in
from jaxprof.workloads.model import Estimate

SELU = built_in("selu")
SPEC = RunSpec(workload="selu", variant="jit", how="jit", device="cuda:0", budget_seconds=2.0)


def foretell(estimate, how="eager", device=None, spec=SPEC, heard=None, **workload):
    recorder, events = heard or reporter()
    variant, request = replace(SELU.variants[0], how=how), RunRequest(run="r1", spec=spec, in_turns=True)
    return preflight.preflight(recorder, replace(SELU, **workload), variant, request, estimate, device), events


@pytest.fixture
def machine(monkeypatch):
    """1000 bytes are free; 1e10 FLOP/s, 1e9 B/s."""
    monkeypatch.setattr(preflight, "available_host_bytes", lambda: 1000)
    monkeypatch.setattr(preflight, "_host_rates", lambda: (1e10, 1e9))


def test_what_does_not_fit_is_refused_with_the_bytes_that_it_asked_for(machine):
    assert foretell(Estimate(memory_bytes=1000)) == (None, [])
    heard = reporter()
    with pytest.raises(DoesNotFitError, match="this machine has 1000 B"):
        foretell(Estimate(memory_bytes=1001), heard=heard)
    assert only(heard[1], BuffersReported).asked_bytes == 1001


def test_a_compiled_program_needs_its_inputs_and_outputs_and_what_else_is_seen_later(machine):
    assert foretell(Estimate(memory_bytes=5000, traffic_bytes=900), "jit")[1] == []
    with pytest.raises(DoesNotFitError):
        foretell(Estimate(memory_bytes=900, traffic_bytes=5000), "jit")
    with pytest.raises(DoesNotFitError):
        foretell(Estimate(memory_bytes=5000, traffic_bytes=900), "eager")


def test_the_memory_of_an_accelerator_is_its_own_and_its_speed_is_not_guessed(machine, monkeypatch):
    gpu = SimpleNamespace(platform="gpu")
    monkeypatch.setattr(jax_devices, "describe", lambda device: {"memory_limit_bytes": 3000})
    assert foretell(Estimate(memory_bytes=3000, flops=1e15), device=gpu)[1] == []
    with pytest.raises(DoesNotFitError, match="cuda:0 has"):
        foretell(Estimate(memory_bytes=3001), device=gpu)
    monkeypatch.setattr(jax_devices, "describe", lambda device: {"memory_limit_bytes": None})
    assert foretell(Estimate(memory_bytes=1e15), device=gpu)[1] == []
    with pytest.raises(DoesNotFitError, match="this machine"):
        foretell(Estimate(memory_bytes=2000), device=SimpleNamespace(platform="cpu"))


def test_a_call_longer_than_the_budget_is_told(machine):
    least, events = foretell(Estimate(flops=2e10), has_dots=True)
    assert (least, events) == (2.0, []), "as long as the budget"
    least, (warning,) = foretell(Estimate(flops=3e10), has_dots=True)
    assert least == 3.0
    assert warning.code == "over_budget"
    assert "at least 6 timed calls" in warning.message


def test_fewer_samples_than_six_are_told_before_they_are_taken(machine):
    capped = replace(SPEC, max_seconds=7.0)
    assert foretell(Estimate(flops=1e10), has_dots=True, spec=capped)[1] == [], "a warm-up and six calls of a second"
    (warning,) = foretell(Estimate(flops=1.5e10), has_dots=True, spec=capped)[1]
    assert "the hard cap of 7.00 s leaves time for 3 samples at most, and 6 are needed" in warning.message


def test_a_call_takes_as_long_as_its_products_or_its_traffic(machine):
    def expected(flops, traffic, *, has_dots=True):
        return preflight.expected_call_seconds(Estimate(flops=flops, traffic_bytes=traffic), has_dots=has_dots)

    assert expected(3e10, 2e9) == 3.0
    assert expected(3e10, 5e9) == 5.0
    assert expected(3e10, 2e9, has_dots=False) == 2.0
    assert expected(3e10, None) == 3.0
    assert expected(None, 4e9) == 4.0
    assert expected(0.9e9, 0.9e9) == 0.0, "too short to be probed for"
    assert expected(1e9, None) == 0.1
    assert expected(None, 1e9) == 1.0
    assert expected(None, None) is None


def test_of_the_machine_and_its_control_group_the_one_with_less_counts(monkeypatch):
    for machine, group, free in ((5, 3, 3), (3, 5, 3), (None, 7, 7), (7, None, 7), (None, None, None), (0, 4, 0)):
        monkeypatch.setattr(preflight, "_machine_bytes", lambda found=machine: found)
        monkeypatch.setattr(preflight, "_cgroup_bytes", lambda found=group: found)
        assert preflight.available_host_bytes() == free


@pytest.mark.parametrize(
    ("text", "free"),
    [
        ("MemTotal: 99 kB\nMemAvailable:    2048 kB\n", 2048 * 1024),
        ("MemTotal: 99 kB\n", None),
        ("MemAvailable:\n", None),
        ("MemAvailable: many kB\n", None),
    ],
)
def test_the_memory_that_the_kernel_says_is_available(monkeypatch, text, free):
    monkeypatch.setattr(Path, "read_text", lambda path, encoding="": text)
    assert preflight._machine_bytes() == free


def test_a_group_that_uses_more_than_it_may_has_nothing_left(tmp_path):
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("1200\n")
    assert preflight._cgroup_bytes(tmp_path) == 0


def test_the_rates_are_those_of_the_best_probes_with_a_margin(monkeypatch):
    """A product of 768 x 768 matrices has 2 n³ FLOPs; a copy reads and writes 16 MiB."""
    probes = ((0.0, 0.09, 0.30), (1.0, 1.02, 1.05), (2.0, 2.05, 2.06))  # begin, after the product, after the copy
    readings = iter([0.0, *(at for probe in probes for at in probe), 3.0])
    monkeypatch.setattr(preflight, "time", SimpleNamespace(perf_counter=lambda: next(readings)))
    flops, traffic = preflight._host_rates.__wrapped__()
    assert flops == pytest.approx(2.0 * 2 * 768**3 / 0.02)
    assert traffic == pytest.approx(2.0 * 2 * (1 << 24) / 0.01)
