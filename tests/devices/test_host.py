"""The CPU: which part of it is ours, and how busy it was between two readings. Limits of control groups, read from
made-up hierarchies of both versions. What a session may say of the machine, and what it must not. What files tell of
the machine and of an interpreter, from copies made here. Live readings: one for each device, in order, and their
history through a change of the list. Which processes are stopped, and for how long."""

import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections import namedtuple
from dataclasses import replace

import psutil
import pytest

from devices.making import CPU, GPU_IS_LOST, UUID_A, UUID_B, Chip, FakeNvml, facts, gpu
from jaxprof.base.operating_system import Limits, MemoryGroup, read_limits
from jaxprof.devices import Device
from jaxprof.devices.inventory.accelerators import PciDevice, read_machine, read_target
from jaxprof.devices.inventory.machine import environment_facts, local_devices, merge
from jaxprof.devices.live.host import HostSampler, Monitor, read_amd
from jaxprof.devices.live.nvidia import Nvml, NvmlThreads
from jaxprof.devices.live.process_state import (
    LOOK_SECONDS,
    PauseWatch,
    SilenceWatch,
    is_stopped,
    remote_stack,
    seconds_suspended,
)
from jaxprof.events import Heartbeat
from jaxprof.recorder import cpython
from jaxprof.recorder.cpython import frame_layout
from jaxprof.recorder.guest import thread_state
from jaxprof.tui.shell.device_monitor import DeviceMonitor

Times = namedtuple("Times", "user system idle iowait guest")
FACTS = replace(CPU, cores=(0, 2), machine_cores=4, memory_bytes=None, frequency_limit_hertz=None)


def test_use_is_what_happened_on_our_cores_between_two_readings(monkeypatch):
    """Waiting for disks is idle, and guests count once."""
    before = [Times(10, 0, 10, 0, 0)] * 4
    after = [Times(11, 0, 11, 2, 1), *[Times(11, 0, 10, 0, 0)] * 3]
    left = [before, after]
    monkeypatch.setattr(psutil, "cpu_times", lambda percpu: left.pop(0) if len(left) > 1 else left[0])
    reading = HostSampler(FACTS, Limits()).read()
    assert reading.core_utilisation == pytest.approx([0.25, 1.0])
    assert reading.utilisation == pytest.approx(0.625)


def test_where_psutil_knows_nothing_all_is_unknown(monkeypatch):
    def missing(*arguments, **options):
        raise FileNotFoundError("/proc/stat")

    for name in ("cpu_times", "virtual_memory", "cpu_freq", "getloadavg", "cpu_count"):
        monkeypatch.setattr(psutil, name, missing)
    reading = HostSampler(limits=Limits()).read()
    assert reading.utilisation is None
    assert reading.memory_used_bytes is None
    assert reading.memory_limit_bytes is None
    assert reading.load_average is None
    assert reading.clock_hertz is None
    assert reading.core_utilisation == []


def test_a_cgroup_with_less_memory_than_the_machine_is_the_limit(tmp_path):
    (tmp_path / "used").write_text("3000")
    (tmp_path / "stat").write_text("inactive_file 1000")
    group = MemoryGroup(4096, tmp_path / "used", tmp_path / "stat", "inactive_file")
    limits = Limits(cores=1.5, memory=group)
    sampler = HostSampler(limits=limits)
    reading = sampler.read()
    assert (reading.memory_used_bytes, reading.memory_limit_bytes) == (2000, 4096)
    assert sampler.facts.memory_bytes == 4096
    assert group.free_bytes() == 2096
    (tmp_path / "used").write_text("9000")
    assert group.free_bytes() == 0


@pytest.mark.parametrize(("quota", "usable"), [(None, 2.0), (1.5, 1.5), (8.0, 2.0)])
def test_usable_cores_are_the_affinity_under_the_quota(quota, usable):
    assert replace(FACTS, quota_cores=quota).usable_cores == usable


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def limits(root, membership):
    (root / "membership").write_text(membership)
    return read_limits(root / "mount", root / "membership")


def test_version_2_takes_the_least_limit_on_the_way_up(tmp_path):
    write(
        tmp_path / "mount",
        {
            "cgroup.controllers": "cpu memory\n",
            "slice/cpu.max": "150000 100000\n",
            "slice/job/cpu.max": "400000 100000\n",
            "slice/memory.max": "8589934592\n",
            "slice/job/memory.max": "max\n",
            "slice/memory.current": "3000\n",
            "slice/memory.stat": "anon 1000\ninactive_file 500\n",
        },
    )
    found = limits(tmp_path, "0::/slice/job\n")
    assert found.cores == 1.5
    assert found.memory.limit_bytes == 8 * 1024**3
    assert found.memory.used_bytes() == 2500


def test_version_1_has_a_folder_for_each_controller(tmp_path):
    write(
        tmp_path / "mount",
        {
            "cpu,cpuacct/job/cpu.cfs_quota_us": "200000\n",
            "cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
            "memory/job/memory.limit_in_bytes": "1048576\n",
            "memory/job/memory.usage_in_bytes": "524288\n",
            "memory/job/memory.stat": "total_inactive_file 24288\n",
            "memory/memory.limit_in_bytes": "9223372036854771712\n",
        },
    )
    found = limits(tmp_path, "4:memory:/job\n3:cpu,cpuacct:/job\n1:name=systemd:/\n")
    assert found.cores == 2.0
    assert (found.memory.limit_bytes, found.memory.used_bytes()) == (1048576, 500000)


@pytest.mark.parametrize(
    "files",
    [
        {"cgroup.controllers": "", "cpu.max": "max 100000\n", "memory.max": "max\n"},
        {"cgroup.controllers": "", "cpu.max": "", "memory.max": "nonsense\n"},
        {"cgroup.controllers": "", "cpu.max": "100 0\n"},
        {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"},
        {},
    ],
)
def test_no_limit_and_unreadable_limits_are_none(tmp_path, files):
    write(tmp_path / "mount", files)
    assert limits(tmp_path, "2:cpu:/\n0::/\n") == Limits()


def test_the_machine_is_described_and_json_takes_it():
    found = environment_facts(facts(gpu(0), environment={"JAX_ENABLE_X64": "1"}))
    assert found["cpu_model"] == "AMD EPYC 9654"
    assert found["cores"] == 16.0
    assert found["gpus"] == [
        {"name": "NVIDIA H200", "uuid": "GPU-aaaa", "memory_bytes": 140 * 1024**3, "mig_enabled": False}
    ]
    assert found["nvidia_driver"] == "580.65.06"
    assert found["variables"] == {"JAX_ENABLE_X64": "1"}
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_the_machine_is_read_and_nothing_is_started(tmp_path):
    site = "lib/python3.12/site-packages"
    write(
        tmp_path,
        {
            "bin/python": "",
            f"{site}/jax-0.9.1.dist-info/METADATA": "Metadata-Version: 2.1\nName: jax\nVersion: 0.9.1\n"
            "Provides-Extra: cuda12\nProvides-Extra: tpu\n",
            f"{site}/jax_cuda12_plugin-0.9.1.dist-info/METADATA": "Name: jax-cuda12-plugin\nVersion: 0.9.1\n",
            "sys/bus/pci/devices/0000:1B:00.0/vendor": "0x10de\n",
            "sys/bus/pci/devices/0000:1B:00.0/device": "0x2335\n",
            "sys/bus/pci/devices/0000:1B:00.0/class": "0x030200\n",
            "sys/bus/pci/devices/0000:1c:00.0/vendor": "broken\n",
            "sys/bus/pci/devices/0000:c1:00.0/vendor": "0x1002\n",
            "sys/bus/pci/devices/0000:c1:00.0/device": "0x74a1\n",
            "sys/bus/pci/devices/0000:c1:00.0/class": "0x120000\n",
            "sys/bus/pci/devices/0000:c1:00.0/product_name": "AMD Instinct MI300X OAM\n",
            "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15  Thu Jan 1\n",
            "proc/driver/nvidia/gpus/0000:1b:00.0/information": "",
            "dev/accel0": "",
            "dev/accelerate": "",
        },
    )
    machine = read_machine(tmp_path)
    nvidia, amd = machine.pci
    assert nvidia == PciDevice("0000:1b:00.0", 0x10DE, 0x2335, 0x030200)
    assert nvidia.is_display
    assert amd == PciDevice("0000:c1:00.0", 0x1002, 0x74A1, 0x120000, "AMD Instinct MI300X OAM")
    assert machine.nvidia_driver == "570.86.15"
    assert machine.nvidia_proc_gpus == 1
    assert machine.tpu_nodes == ("/dev/accel0",)
    found = read_target(str(tmp_path / "bin/python"))
    assert found.packages == {"jax": "0.9.1", "jax-cuda12-plugin": "0.9.1"}
    assert found.jax_extras == ("cuda12", "tpu")


def machine(*chips, environment=None):
    module = FakeNvml(*chips)
    listing = Nvml(module).listing()
    return module, local_devices(facts(*listing.gpus, environment=environment))


def test_readings_follow_the_order_and_lost_gpus_are_unknown():
    module, devices = machine(Chip(), Chip(uuid=UUID_B, used=7))
    tpu = Device(id="tpu:0", platform="tpu", used_by_jax=True)
    monitor = Monitor([*devices, tpu], HostSampler(limits=Limits()), NvmlThreads(Nvml(module)))
    readings = monitor.read()
    assert [reading.device for reading in readings] == ["cuda:0", "cuda:1", "cpu:0", "tpu:0"]
    assert readings[1].memory_used_bytes == 7
    assert readings[2].memory_limit_bytes is not None
    assert [reading.utilisation is None for reading in readings[::3]] == [False, True]
    module.broken = dict.fromkeys([*module.asked, "nvmlDeviceGetTemperatureV"], GPU_IS_LOST)
    reading = monitor.read()[0]
    assert reading.device == "cuda:0"
    assert reading.utilisation is None
    assert reading.memory_used_bytes is None


def test_readings_follow_a_gpu_to_its_new_number():
    """JAX may see the second GPU alone, and call it the first one."""
    chips = Chip(used=1), Chip(uuid=UUID_B, used=2, answers={"nvmlDeviceGetUtilizationRates": None})
    module, devices = machine(*chips)
    monitor, seen = Monitor(devices, nvml=NvmlThreads(Nvml(module))), DeviceMonitor(None, None, None)
    seen._set_devices(devices)
    seen.take(monitor.read())
    monitor.devices = merge(devices, {"devices": [{"id": "cuda:0", "platform": "cuda", "uuid": UUID_B}]})
    seen._set_devices(monitor.devices)
    seen.take(monitor.read())
    read = {row.device.uuid: (row.device.id, row.reading.memory_used_bytes, [*row.history]) for row in seen}
    assert read[UUID_A] == ("nvidia:0", 1, [0.87, 0.87])
    assert read[UUID_B] == ("cuda:0", 2, [None, None])


def _until(pid, stopped):
    end = time.monotonic() + 10
    while is_stopped(pid) is not stopped:
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.process
@pytest.mark.parametrize("code", ["import time; time.sleep(60)", "while True: pass"])
def test_only_a_signal_stops_it(code):
    """Sleeping and computing are not it, and one that has gone is not stopped."""
    child = subprocess.Popen([sys.executable, "-c", code])
    try:
        for _ in range(5):
            assert not is_stopped(child.pid)
        child.send_signal(signal.SIGSTOP)
        _until(child.pid, True)
        child.send_signal(signal.SIGCONT)
        _until(child.pid, False)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not is_stopped(child.pid)  # a zombie
    finally:
        child.kill()
        child.wait()
    assert not is_stopped(child.pid)


class Machine:
    """A process and a machine whose state the test sets."""

    def __init__(self):
        self.stopped, self.slept, self.now = False, 5.0, 100.0
        self.watch = PauseWatch(1, looks_stopped=lambda _: self.stopped, suspended=lambda: self.slept)
        self.seen = []

    def passes(self, seconds, *, stopped=False):
        self.stopped = stopped
        for _ in range(round(seconds / LOOK_SECONDS)):
            self.seen += self.watch.look(self.now)
            self.now += LOOK_SECONDS


def test_a_stop_is_told_once_it_is_over():
    machine = Machine()
    machine.passes(1.0)
    machine.passes(2.0, stopped=True)
    assert machine.seen == []
    assert not machine.watch.in_long_pause(machine.now)
    assert machine.watch.in_long_pause(machine.now + 1.5)
    machine.passes(1.0)
    assert not machine.watch.in_long_pause(machine.now + 1.5)
    (stop,) = machine.seen
    assert stop.found_by == "state"
    assert stop.began_seconds == pytest.approx(101.0, abs=LOOK_SECONDS)
    assert stop.seconds == pytest.approx(2.0, abs=LOOK_SECONDS)
    assert machine.watch.end(machine.now) == []


def test_a_machine_that_slept():
    machine = Machine()
    machine.passes(1.0)
    machine.slept += 0.4  # two clocks that are read one after the other on a busy machine
    machine.passes(1.0)
    assert machine.seen == []
    machine.slept += 3600.0
    machine.passes(1.0)
    (stop,) = machine.seen
    assert (stop.found_by, stop.seconds) == ("clock", pytest.approx(3600.0))
    assert seconds_suspended() > -0.1  # two clocks, read one after the other


def test_amd_reading_is_of_the_files_of_its_driver(tmp_path):
    folder = tmp_path / "0000:c1:00.0"
    files = {
        "gpu_busy_percent": "37\n",
        "mem_info_vram_used": "34359738368\n",
        "mem_info_vram_total": "206158430208\n",
        "hwmon/hwmon5/power1_input": "412000000\n",
        "hwmon/hwmon5/power1_cap": "750000000\n",
        "hwmon/hwmon5/temp1_input": "61000\n",
        "hwmon/hwmon5/freq1_input": "2100000000\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    device = Device(id="rocm:0", platform="rocm", pci_bus_id="0000:c1:00.0")
    reading = read_amd(device, tmp_path)
    assert reading.utilisation == 0.37
    assert (reading.memory_used_bytes, reading.memory_limit_bytes) == (32 * 2**30, 192 * 2**30)
    assert (reading.power_watts, reading.power_limit_watts) == (412.0, 750.0)
    assert (reading.temperature_celsius, reading.clock_hertz) == (61.0, 2.1e9)
    elsewhere = read_amd(replace(device, pci_bus_id="0000:c2:00.0"), tmp_path)
    assert elsewhere.utilisation is elsewhere.memory_used_bytes is elsewhere.power_watts is None


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="this system does not show it")
def test_silent_recorder_is_reported_and_its_return():
    watch, word = SilenceWatch(os.getpid()), Heartbeat(since_seconds=95.0, step=188)
    assert watch.look(102.0, 100.0, word) is None
    silent = watch.look(107.0, 100.0, word)
    assert silent.silent_seconds == 100.0
    assert silent.since_seconds == 95.0
    assert silent.step == 188
    assert silent.over is False
    assert silent.wait.state in "RS"
    assert watch.look(108.0, 100.0, word) is None, "not each time"
    assert watch.look(114.0, 100.0, word) is not None
    assert watch.look(115.0, 114.5, word).over
    assert watch.look(116.0, 114.5, word) is None
    assert watch.look(116.0, 114.5, word, stopped=True) is not None, "a stopped one is reported sooner"


def in_a_function(layout):
    return remote_stack(os.getpid(), layout), sys._getframe().f_lineno


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="this system does not show it")
def test_stack_of_a_stopped_process_is_read_from_its_memory():
    layout = frame_layout(thread_state())
    frames, line = in_a_function(layout)
    at = next(number for number, frame in enumerate(frames) if frame.function == "in_a_function")
    assert (frames[at].file, frames[at].line) == (__file__, line)
    assert frames[at + 1].function == sys._getframe().f_code.co_name
    assert remote_stack(os.getpid(), {}) == [], "of a Python that keeps its frames elsewhere"
    assert remote_stack(os.getpid(), layout | {"thread_state": 8}) == []
    assert remote_stack(os.getpid(), layout | {"code_type": 8}) == [], "what is no code object is no frame"
    for file, functions in (("/home/zoë/train.py", []), ("<shim>", ["in_a_function", sys._getframe().f_code.co_name])):
        names = {"layout": layout, "inner": in_a_function}
        exec(compile("def inside(): return inner(layout)", file, "exec"), names)
        frames, _ = names["inside"]()
        assert [frame.function for frame in frames if frame.file == __file__] == functions, file
        assert all(frame.function != "inside" for frame in frames)


@pytest.mark.parametrize("error", [struct.error("12 bytes"), IndexError(), ValueError()])
def test_a_layout_that_cannot_be_read_is_unknown(error, monkeypatch):
    def fail(thread_state):
        raise error

    monkeypatch.setattr(cpython, "_layout_here", fail)
    assert frame_layout(thread_state()) == {}


def test_the_layout_of_a_newer_python_is_unknown(monkeypatch):
    monkeypatch.setattr(cpython, "IS_KNOWN", False)
    assert frame_layout(thread_state()) == {}
