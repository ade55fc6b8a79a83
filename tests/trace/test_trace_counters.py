"""Counters that lie in a profile: sampled power and performance counters of a device, allocators' bytes of a host. What
the host did while a GPU waited: each cause in a profile made by hand, and what is not claimed."""

import json

import numpy as np
import pytest
from made_traces import gpu_planes, host, on_cpu, on_gpu, op, read
from xplane_wire import Event, Line, Plane

from jaxprof.trace.intervals import Coverage
from jaxprof.trace.steps import steps_of
from jaxprof.trace.timeline import timeline_text
from tables import rows

POWER = "HBM FW Power Meter PL2(W)"


def sample(name, time_us, **stats):
    return Event(name, round(time_us * 1e6), 0, stats)


def sampled(*events, timestamp_ns=0):
    return Plane("/device:TPU:1", [Line("_counters_", events, timestamp_ns=timestamp_ns)])


def test_samples_are_counters_of_their_device_and_no_lane():
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


def test_the_unit_is_what_the_name_ends_with():
    for name, unit in rows("""
        Power (W)      watts
        Used (Bytes)   bytes
        Throttled (%)  %
        f(x) of it     -
        plain          -
    """):
        (counter,) = read(sampled(sample(name, 1, value=1.0))).counters
        assert (counter.name, counter.unit) == (name, unit)


def test_they_stand_on_the_clock_of_the_kernels_and_in_the_timeline():
    late = read(*gpu_planes(), sampled(sample(POWER, 1, power=1.5), timestamp_ns=2_000))
    assert late.counters[0].times.tolist() == [3_000_000 - late.origin_ns * 1000]
    (counter,) = json.loads(timeline_text(late))["counters"]
    assert (counter["device"], counter["name"], counter["unit"], counter["value"]) == ("tpu:1", POWER, "watts", [1.5])


def test_the_bytes_of_an_allocator():
    marks = [
        host("MemoryAllocation", 1, 0, bytes_allocated=64, allocator_name="GPU_0_bfc"),
        host("MemoryDeallocation", 2, 0, bytes_allocated=0, allocator_name="GPU_0_bfc"),
    ]
    trace = read(on_cpu(python=marks))
    trace.read_rest()
    (counter,) = trace.counters
    assert (counter.device, counter.name, counter.unit) == ("host", "GPU_0_bfc allocated", "bytes")
    assert counter.values.tolist() == [64.0, 0.0]


STEPS = 4


def device():
    """Four steps of 100 µs, of which the device works for the first 60."""
    ops = [op("fusion", 100 * step, 60, correlation_id=step + 1) for step in range(STEPS)]
    marks = [host(str(step), 100 * step, 100) for step in range(STEPS)]
    return on_gpu(*ops, lines=[Line("Steps", marks, id=2)])


def thread(*events):
    """A host thread with these events in each step."""
    return Line(
        "python",
        [host(name, 100 * step + start, length) for step in range(STEPS) for name, start, length in events],
    )


def causes(*lines, more=None):
    """Microseconds of each cause in a step, with the name."""
    planes = [device(), Plane("/host:CPU", [*lines, Line("other", more or [])])]
    (found,) = [each for each in steps_of(read(*planes)).devices if each.device == "gpu:0"]
    return {cause.cause: (round(cause.seconds / STEPS * 1e6, 3), cause.name) for cause in found.idle_causes}


@pytest.mark.parametrize(
    ("events", "expected"),
    rows("""
        backend_compile_and_load 60 40   compile 40
        DevicePut 60 40                  copy 40
        np.asarray(jax.Array) 60 40      copy 40
        PjitFunction(step) 60 40         launch 40
        BlockHostUntilReady 60 40        wait 40
        # while the device worked
        PjitFunction(step) 0 60          unknown 40
        # names of the program's own are no cause of JAX's
        ExecuteOrder 60 40               host 40 ExecuteOrder
        $re.py:226 compile 60 40         host 40 $re.py:226 compile
        MemcpyBenchmark 60 40            host 40 MemcpyBenchmark
        SlinkyThreadPool::Await 60 40    host 40 SlinkyThreadPool::Await
        LaunchKernelAnalysis 60 40       host 40 LaunchKernelAnalysis
        my PjitFunction(step) 60 40      host 40 my PjitFunction(step)
        # a call that waits waits; a moment has one cause, and all of them add up
        PjitFunction(step) 60 40, hipStreamSynchronize 70 30              wait 30, launch 10
        PjitFunction(step) 60 30, backend_compile 65 10, DevicePut 72 10  compile 10, copy 7, launch 13, unknown 10
        # work of the host is named by what holds most of it
        main 0 100, load_batch 61 38, $numpy.py:3 stack 70 5              host 40 load_batch
        one 60 15, two 75 15                                              unknown 40
    """),
)
def test_what_the_host_did_while_the_device_waited(events, expected):
    """Each event with its begin and length in a step; each cause with its microseconds and a name."""
    placed = [event.rsplit(" ", 2) for event in events.split(", ")]
    found = causes(thread(*((name, int(start), int(length)) for name, start, length in placed)))
    told = {f"{cause} {microseconds:g} {name}".strip() for cause, (microseconds, name) in found.items()}
    assert told == set(expected.split(", "))


def test_what_the_runtimes_own_threads_do_is_no_cause():
    task = thread(("BufferSequencingEvent::Execute", 60, 40), ("DevicePut", 60, 40))
    task.name = "tf_pjrt_thread_pool/7"
    assert causes(thread(("PjitFunction(step)", 0, 10)), task) == {"unknown": (40, "")}
    call = thread(("PjitFunction(step)", 60, 40), ("BufferSequencingEvent::ExecuteOrAddToFutureTasks", 65, 33))
    assert causes(call) == {"launch": (7, ""), "host": (33, "BufferSequencingEvent::ExecuteOrAddToFutureTasks")}


def test_after_its_launch_a_kernel_waits_for_no_host():
    """The host prepares a batch meanwhile, which keeps nobody waiting."""
    launches = [host("cuLaunchKernel", 100 * step - 15, 1, correlation_id=step + 1) for step in range(1, STEPS)]
    found = causes(thread(("load_batch", 60, 40), ("PjitFunction(step)", 80, 5)), more=launches)
    assert found == {"launch": (16.25, ""), "host": (23.75, "load_batch")}  # the last one is launched by nobody


def test_a_tpu_has_a_clock_of_its_own():
    plane = Plane(
        "/device:TPU:0",
        [Line("XLA Ops", [op("f", 100 * n, 60) for n in range(4)]), Line("Steps", [host("1", 0, 400)], id=2)],
    )
    (found,) = steps_of(read(plane, Plane("/host:CPU", [thread(("DevicePut", 60, 40))]))).devices
    assert found.idle_causes == ()


@pytest.mark.parametrize("seed", range(3))
def test_intersection_and_difference_of_coverages(seed):
    random = np.random.default_rng(seed)

    def some():
        starts = random.integers(0, 60, random.integers(0, 8))
        return Coverage.of(starts, starts + random.integers(0, 12, len(starts)))

    def moments(covered):
        assert (covered.starts[1:] > covered.ends[:-1]).all()
        return {at for start, end in zip(covered.starts, covered.ends, strict=True) for at in range(start, end)}

    one, other = some(), some()
    assert moments(one & other) == moments(one) & moments(other)
    assert moments(one - other) == moments(one) - moments(other)
