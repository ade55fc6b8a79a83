"""Counters that lie in a profile: sampled power and performance counters of a device, allocators' bytes of a host."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_traces import gpu_planes, host, read
from xplane_wire import Event, Line, Plane, Value, space_bytes

from jaxprof.trace.timeline import timeline_text

POWER = "HBM FW Power Meter PL2(W)"


def sample(name: str, time_us: float, **stats: Value) -> Event:
    return Event(name, round(time_us * 1e6), 0, stats)


def sampled(*events: Event, timestamp_ns: int = 0) -> Plane:
    return Plane("/device:TPU:1", [Line("_counters_", events, timestamp_ns=timestamp_ns)])


def test_samples_are_counters_of_their_device_and_no_lane() -> None:
    """The statistic has the counter's own name (XLA's `PmSamples::PopulateCounterLine`), or says of what it is."""
    cycles = "sm__cycles_active.avg"
    trace = read(
        sampled(
            sample(cycles, 20, **{cycles: 4.0}),
            sample(POWER, 10, power=312.5),
            sample(cycles, 10, **{cycles: 3.0}),
            sample(POWER, 20, power=298),
        )
    )
    found = {(one.device, one.name, one.unit): (one.times.tolist(), one.values.tolist()) for one in trace.counters}
    assert found == {
        ("tpu:1", POWER, "watts"): ([10_000_000, 20_000_000], [312.5, 298.0]),
        ("tpu:1", cycles, ""): ([10_000_000, 20_000_000], [3.0, 4.0]),
    }
    assert not trace.lanes
    assert not trace.problems


@pytest.mark.parametrize(
    ("name", "unit"),
    [("Power (W)", "watts"), ("Used (Bytes)", "bytes"), ("Throttled (%)", "%"), ("f(x) of it", ""), ("plain", "")],
)
def test_the_unit_is_what_the_name_ends_with(name: str, unit: str) -> None:
    (counter,) = read(sampled(sample(name, 1, value=1.0))).counters
    assert (counter.name, counter.unit) == (name, unit)


def test_they_stand_on_the_clock_of_the_kernels() -> None:
    late = read(*gpu_planes(), sampled(sample(POWER, 1, power=1.0), timestamp_ns=2_000))
    assert late.counters[0].times.tolist() == [3_000_000 - late.origin_ns * 1000]


def test_the_timeline_has_them() -> None:
    trace = read(*gpu_planes(), sampled(sample(POWER, 1, power=1.5), sample(POWER, 3, power=2.5)))
    (counter,) = json.loads(timeline_text(trace))["counters"]
    assert (counter["device"], counter["name"], counter["unit"]) == ("tpu:1", POWER, "watts")
    assert counter["value"] == [1.5, 2.5]


def test_the_bytes_of_an_allocator() -> None:
    marks = [
        host("MemoryAllocation", 1, 0, bytes_allocated=64, allocator_name="GPU_0_bfc"),
        host("MemoryDeallocation", 2, 0, bytes_allocated=0, allocator_name="GPU_0_bfc"),
    ]
    trace = read(Plane("/host:CPU", [Line("python", marks)]))
    trace.read_rest()
    (counter,) = trace.counters
    assert (counter.device, counter.name, counter.unit) == ("host", "GPU_0_bfc allocated", "bytes")
    assert counter.values.tolist() == [64.0, 0.0]


Numbers = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(1 << 63), (1 << 63) - 1))


@settings(deadline=None)  # JAX is imported in the first of them
@given(st.lists(st.tuples(st.integers(0, 10**9), Numbers), min_size=1, max_size=20))
def test_the_values_are_those_that_jax_reads(samples: list[tuple[int, float]]) -> None:
    from jax.profiler import ProfileData

    plane = sampled(*[Event("c", time * 1000, 0, {"c": value}) for time, value in samples])
    (line,) = next(iter(ProfileData.from_serialized_xspace(space_bytes([plane])).planes)).lines
    (counter,) = read(plane).counters
    ours = zip((counter.times // 1000).tolist(), counter.values.tolist(), strict=True)
    assert sorted(ours) == sorted((int(event.start_ns), float(dict(event.stats)["c"])) for event in line.events)
