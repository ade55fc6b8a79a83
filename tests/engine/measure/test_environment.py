"""What the machine says about itself, in files of Linux that are written here. Devices of every platform, as they
describe themselves to JAX."""

import os
from types import SimpleNamespace
from unittest.mock import Mock

import jax
import pytest

from jaxprof.base.errors import JaxprofError, UsageError
from jaxprof.base.operating_system import Limits
from jaxprof.engine.measure import environment, jax_devices
from jaxprof.engine.measure.environment import HostLoadMeter
from jaxprof.engine.measure.jax_devices import describe, find_device, list_devices, platform_of
from jaxprof.engine.measure.jax_settings import override
from tables import rows


@pytest.mark.parametrize(("quota", "cores"), [(None, 8.0), (1.5, 1.5), (16.0, 8.0)])
def test_cores_are_the_smaller_of_affinity_and_quota(monkeypatch, quota, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    monkeypatch.setattr(environment, "read_limits", lambda: Limits(cores=quota))
    assert environment.cores() == cores


@pytest.mark.parametrize(
    ("usable", "ticks"),
    [({0}, 270), ({0, 2}, 271), ({0, 1}, None), ({0, 3}, None)],
    ids=["one", "two", "short", "absent"],
)
def test_a_processor_is_busy_unless_idle_or_waiting_for_disk(monkeypatch, usable, ticks):
    lines = ["cpu  999 20 30 4000 5000 60 70 80", "cpu0 10 20 30 4000 5000 60 70 80 900 900", "cpu1 1 2 3", "intr 1 2"]
    monkeypatch.setattr(environment, "text_at", lambda path: "\n".join([*lines, "cpu2 1 0 0 8 9 0 0 0", ""]))
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: usable, raising=False)
    _, busy, _ = environment.host_load()
    assert busy == (None if ticks is None else ticks / os.sysconf("SC_CLK_TCK"))


def test_where_the_system_counts_no_ticks_the_load_is_unknown(monkeypatch):
    monkeypatch.setattr(environment, "text_at", lambda path: "")
    assert environment.host_load()[1] is None


def test_the_load_is_rounded_and_may_be_unknown(monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (1.23456, 9.0, 9.0), raising=False)
    assert environment.load_average() == 1.235

    monkeypatch.setattr(os, "getloadavg", Mock(side_effect=OSError), raising=False)
    assert environment.load_average() is None


@pytest.mark.parametrize(
    ("ended", "others", "quota", "busy"),
    rows("""
        0.0  5.0   2.0  None
        4.0  6.0   2.0  1.5
        4.0  -0.1  2.0  0.0
        4.0  9.0   2.0  2.0
        4.0  6.0   1.5  1.0
        4.0  1.6   1.5  0.0
    """),
)
def test_others_use_between_no_core_and_all(monkeypatch, ended, others, quota, busy):
    """In no time they use an unknown number, and of a quota what the processors beside it do not suffice for."""
    ended, others, quota, busy = (None if each == "None" else float(each) for each in (ended, others, quota, busy))
    readings = iter([(0.0, 0.0, 0.0), (ended, others, 0.0), (ended, others, 0.0)])
    monkeypatch.setattr(environment, "host_load", lambda: next(readings))
    monkeypatch.setattr(environment, "processors", lambda: 2)
    monkeypatch.setattr(environment, "read_limits", lambda: Limits(cores=quota))
    assert HostLoadMeter().other_busy_cores() == busy


def device(platform="gpu", number=0, version="", **more):
    client = SimpleNamespace(platform_version=version)
    return SimpleNamespace(platform=platform, id=number, client=client, device_kind="A kind", process_index=0, **more)


@pytest.mark.parametrize(
    ("platform", "version", "named"),
    [("tpu", "", "tpu"), ("gpu", "cuda 12080", "cuda"), ("gpu", "ROCm 60300", "rocm"), ("gpu", "", "cuda")],
)
def test_a_gpu_is_named_by_its_maker(platform, version, named):
    assert platform_of(device(platform, version=version)) == named


@pytest.fixture
def several(monkeypatch):
    here = {"cpu": [jax.devices("cpu")[0]], "cuda": [device(number=number) for number in (0, 1)]}

    def local(backend=None):
        if backend not in (None, *here):
            raise RuntimeError(f"Unknown backend {backend}")
        return here[backend or "cuda"]

    monkeypatch.setattr(jax, "local_devices", local)


@pytest.mark.parametrize(
    ("name", "found"), [("cuda:1", "cuda:1"), ("gpu:1", "cuda:1"), ("gpu", "cuda:0"), ("cpu:0", "cpu:0")]
)
def test_a_device_is_found_by_its_name(several, name, found):
    assert jax_devices.device_name(find_device(name)) == found


def test_a_device_that_is_not_there_is_told_with_those_that_are(several):
    with pytest.raises(UsageError, match="cuda:7") as numbered:
        find_device("cuda:7")
    assert "cuda:1" in numbered.value.hint
    with pytest.raises(JaxprofError, match="Unknown backend tpu") as missing:
        find_device("tpu:0")
    assert "It sees cuda:0, cuda:1" in missing.value.hint


def test_a_device_is_described_and_unknowns_are_none():
    told = device(
        number=3,
        memory_stats=lambda: {"bytes_in_use": 1, "bytes_limit": 9, "peak_bytes_in_use": 5},
        core_count=132,
        compute_capability=9.0,
        local_hardware_id=lambda: 3,
    )
    found = describe(told)
    assert (found["id"], found["kind"]) == ("cuda:3", "A kind")
    sizes = ("memory_in_use_bytes", "memory_limit_bytes", "memory_peak_bytes")
    assert [found[name] for name in sizes] == [1, 9, 5]
    assert (found["core_count"], found["compute_capability"]) == (132, "9.0")
    assert found["local_hardware_id"] is None, "a method is no value"
    for silent in (device(memory_stats=Mock(side_effect=NotImplementedError)), device(memory_stats=lambda: None)):
        assert [describe(silent)[name] for name in sizes] == [None] * 3
        assert describe(silent)["uuid"] is None


@pytest.mark.parametrize(("setting", "found"), [(None, "cuda:0"), ("cpu", "cpu:0"), (jax.devices("cpu")[0], "cpu:0")])
def test_the_default_device_is_first_unless_set(several, setting, found):
    with override("jax_default_device", setting):
        assert jax_devices.device_name(jax_devices.default_device()) == found


def test_every_backend_that_starts_is_listed(monkeypatch):
    cpu = jax.devices("cpu")

    def devices(backend=None):
        if backend in (None, "cpu"):
            return cpu
        raise RuntimeError(
            {"cuda": "no driver", "tpu": "Unknown backend tpu"}.get(backend, f"Unknown backend {backend}")
        )

    monkeypatch.setattr(jax, "devices", devices)
    monkeypatch.setattr(jax_devices, "entry_points", lambda group: [SimpleNamespace(name="neuron")])
    found = list_devices()
    assert [one["id"] for one in found["devices"]] == [jax_devices.device_name(one) for one in cpu], "each once"
    assert found["errors"] == {"cuda": "no driver", "neuron": "Unknown backend neuron"}


def test_turns_of_compared_runs_are_no_work_of_others(monkeypatch):
    readings = iter([(0, 0, 0), (2, 5, 2), (10, 21, 2), (12, 25, 4), (12, 25, 4)])
    monkeypatch.setattr(environment, "host_load", lambda: next(readings))
    monkeypatch.setattr(environment, "cores", lambda: 4.0)
    monkeypatch.setattr(environment, "processors", lambda: 4)
    meter = HostLoadMeter()
    meter.wait(begins=True)
    meter.wait(begins=False)
    assert meter.other_busy_cores() == pytest.approx((3 + 2) / 4)


@pytest.mark.parametrize(("worked", "busy"), [(0.02, 0.0), (0.5, 2.0)])
def test_an_interval_that_outlasts_its_block_is_dropped(monkeypatch, worked, busy):
    """The process was stopped between the block and the reading, and others had their turns."""
    readings = iter([(0, 0, 0), (1, 1, 1), (2, 2, 1), (2.5, 3.5, 1.5), (3, 3, 2), (4, 4, 3), (4, 4, 3)])
    monkeypatch.setattr(environment, "host_load", lambda: next(readings))
    monkeypatch.setattr(environment, "cores", lambda: 2.0)
    monkeypatch.setattr(environment, "processors", lambda: 2)
    meter = HostLoadMeter()
    meter.wait(begins=True)
    meter.wait(begins=False)
    meter.wait(begins=True, worked_seconds=worked)
    meter.wait(begins=False)
    assert meter.other_busy_cores() == pytest.approx(busy * 0.5 / (2.5 if busy else 2), abs=1e-3)
