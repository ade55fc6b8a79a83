"""The NVML adapter: every answer that some machine does not give is None, and nothing is ever raised."""

import os
import threading
import time
from types import SimpleNamespace
from unittest.mock import Mock

import psutil
import pytest

from devices.making import (
    FUNCTION_NOT_FOUND,
    GIB,
    NO_PERMISSION,
    NOT_SUPPORTED,
    UUID_A,
    UUID_B,
    WIRING_QUESTIONS,
    Chip,
    FakeNvml,
    NVMLError,
)
from jaxprof.devices import Wiring
from jaxprof.devices.live import nvidia
from jaxprof.devices.live.nvidia import Nvml, NvmlThreads, normal_pci_bus_id
from tables import rows

ANSWERS = {
    # of a question: the fact of a listing and of a reading
    "Name": ("kind", ""),
    "UUID": ("uuid", ""),
    "PciInfo": ("pci_bus_id", ""),
    "MemoryInfo": ("memory_limit_bytes", "memory_used_bytes"),
    "CudaComputeCapability": ("compute_capability", ""),
    "MigMode": ("mig_enabled", ""),
    "UtilizationRates": ("", "utilisation"),
    "PowerUsage": ("", "power_watts"),
    "EnforcedPowerLimit": ("", "power_limit_watts"),
    "Temperature": ("", "temperature_celsius"),
    "ClockInfo": ("", "clock_hertz"),
    "MaxClockInfo": ("", "clock_limit_hertz"),
    "ComputeRunningProcesses": ("", ""),
    "CurrentClocksEventReasons": ("", ""),
}


def unknown(nvml):
    (gpu,), reading = nvml.listing().gpus, nvml.read((0, None), "cuda:0")
    listed, read = ({facts[place] for facts in ANSWERS.values()} - {""} for place in (0, 1))
    return {fact for fact in listed if getattr(gpu, fact) is None}, {
        fact for fact in read if getattr(reading, fact) is None
    }


def test_a_gpu_is_listed_with_all_that_it_tells():
    listing = Nvml(FakeNvml(Chip(), Chip(uuid=UUID_B))).listing()
    first, second = listing.gpus
    assert listing.driver == "570.86.15"
    assert listing.cuda == "12.8"
    assert listing.problem == ""
    assert first.number == 0
    assert first.kind == "NVIDIA H200"
    assert first.uuid == UUID_A
    assert first.pci_bus_id == "0000:1b:00.0"
    assert first.memory_limit_bytes == 140 * GIB
    assert first.memory_used_bytes == 10 * GIB
    assert first.memory_free_bytes == 130 * GIB
    assert first.compute_capability == "9.0"
    assert first.mig_enabled is False
    assert first.mig == ()
    assert (second.number, second.uuid) == (1, UUID_B)


def test_a_reading_is_in_the_units_of_its_names():
    reading = Nvml(FakeNvml(Chip())).read((0, None), "cuda:0")
    assert reading.device == "cuda:0"
    assert (reading.memory_used_bytes, reading.memory_limit_bytes) == (10 * GIB, 140 * GIB)
    assert (reading.utilisation, reading.temperature_celsius) == (pytest.approx(0.87), 64.0)
    assert (reading.power_watts, reading.power_limit_watts) == (pytest.approx(612.5), pytest.approx(700.0))
    assert (reading.clock_hertz, reading.clock_limit_hertz) == (1.98e9, 1.98e9)
    assert reading.throttle_reasons == ["software power cap", "hardware thermal slowdown"]
    assert reading.processes == []


@pytest.mark.parametrize("error", [NO_PERMISSION, FUNCTION_NOT_FOUND])
def test_what_is_refused_is_unknown_and_the_rest_is_known(error):
    for question, (listed, read) in ANSWERS.items():
        nvml = Nvml(FakeNvml(Chip(), broken={f"nvmlDeviceGet{question}": error, "nvmlDeviceGetTemperatureV": error}))
        assert unknown(nvml) == ({listed} - {""}, {read} - {""}), question
    lost = unknown(Nvml(FakeNvml(Chip(), broken={"nvmlDeviceGetHandleByIndex": error})))
    assert tuple(map(len, lost)) == (6, 7), "a GPU that is lost is listed, and tells nothing"


@pytest.mark.parametrize(
    "error", [NVMLError("NVML Shared Library Not Found"), NVMLError("Driver Not Loaded"), OSError("libnvidia-ml.so.1")]
)
def test_without_a_driver_there_is_a_reason_and_no_gpu(error):
    nvml = Nvml(FakeNvml(Chip(), broken={"nvmlInit": error}))
    listing = nvml.listing()
    assert listing.gpus == ()
    assert str(error) in listing.problem
    assert nvml.read((0, None), "cuda:0").utilisation is None


@pytest.mark.parametrize(("value", "fault"), [(15, "fell off the bus"), (16, "needs a reset"), (3, "")])
def test_fault_of_a_lost_gpu(value, fault):
    """Error 3 is a question that a GPU does not support, and no fault of it."""
    error = NVMLError("GPU is lost")
    error.value = value
    module = FakeNvml(Chip(), broken=dict.fromkeys(["nvmlDeviceGetUUID", "nvmlDeviceGetUtilizationRates"], error))
    nvml = Nvml(module)
    assert nvml.listing().gpus[0].fault == fault
    assert nvml.read((0, None), "cuda:0").fault == fault


def test_uncorrected_ecc_errors_are_read():
    chip = Chip(answers={"nvmlDeviceGetTotalEccErrors": 412})
    assert Nvml(FakeNvml(chip)).read((0, None), "cuda:0").ecc_errors == 412


def test_xids_by_address_from_the_kernel_log(tmp_path):
    log = tmp_path / "kmsg"
    log.write_text(
        "4,1,5,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=7, GPU has fallen off the bus.\n"
        "6,2,6,-;usb 1-1: new device\n4,3,7,-;NVRM: Xid (PCI:0000:3B:00): 154, GPU recovery action\n"
    )
    assert nvidia.read_xids(log) == {"0000:3b:00.0": (79, 154)}
    assert nvidia.read_xids(tmp_path / "missing") == {}


class SlowDriver:
    """A driver whose answers a test lets out one by one."""

    def __init__(self):
        self.given = threading.Semaphore(0)
        self.heard = 0

    def answer(self):
        self.given.acquire()
        self.heard += 1
        return self.heard


def test_nobody_waits_twice_for_a_late_answer():
    driver = SlowDriver()
    question = nvidia.Question(driver.answer)
    question.start()
    assert question.last(0.01) is None
    began = time.monotonic()
    question.start()  # is being asked: no second thread
    assert question.last(60.0) is None, "it was late before"
    assert time.monotonic() - began < 30
    driver.given.release()
    while question.last(1.0) is None:
        pass
    assert (question.last(1.0), driver.heard) == (1, 1)
    question.start()
    assert question.last(0.01) == 1, "the last answer, until there is another"
    driver.given.release()


def test_question_that_raised_is_asked_again(monkeypatch):
    monkeypatch.setattr(threading, "excepthook", lambda raised: None)
    asked = Mock(side_effect=[RuntimeError("once"), 7])
    question = nvidia.Question(asked)
    question.start()
    assert question.last(60.0) is None
    question.start()
    assert question.last(60.0) == 7


def test_listing_of_a_late_driver_says_so(monkeypatch):
    driver = SlowDriver()
    nvml = Nvml(FakeNvml(Chip()))
    monkeypatch.setattr(nvml, "listing", driver.answer)
    late = NvmlThreads(nvml).listing(0.01)
    assert late.late
    assert late.gpus == ()
    assert "does not answer" in late.problem
    driver.given.release()


def test_integers_that_mean_not_available_are_unknown():
    chip = Chip(answers={"nvmlDeviceGetPowerUsage": 0xFFFFFFFF, "nvmlDeviceGetClockInfo": 0xFFFFFFFF})
    reading = Nvml(FakeNvml(chip)).read((0, None), "cuda:0")
    assert (reading.power_watts, reading.clock_hertz) == (None, None)


def split_gpu():
    instance = Chip(name="NVIDIA H200 MIG 1g.18gb", uuid="MIG-1", used=2 * GIB, total=16 * GIB)
    instance.answers["nvmlDeviceGetUtilizationRates"] = NOT_SUPPORTED
    instance.answers["nvmlDeviceGetPciInfo"] = NOT_SUPPORTED
    chip = Chip(mig=[instance])
    chip.answers["nvmlDeviceGetUtilizationRates"] = NOT_SUPPORTED
    return chip


def test_an_instance_has_its_memory_and_its_chips_address():
    nvml = Nvml(FakeNvml(split_gpu()))
    (gpu,) = nvml.listing().gpus
    (instance,) = gpu.mig
    assert gpu.mig_enabled is True
    assert instance.uuid == "MIG-1"
    assert instance.memory_limit_bytes == 16 * GIB
    assert (instance.pci_bus_id, instance.compute_capability) == (gpu.pci_bus_id, "9.0")
    reading = nvml.read(instance.nvml_key, "cuda:0")
    assert (reading.memory_used_bytes, reading.memory_limit_bytes) == (2 * GIB, 16 * GIB)
    assert reading.temperature_celsius == 64.0
    assert reading.utilisation is None
    assert reading.power_watts is None


def test_processes_are_told_with_name_and_user_once_each():
    own = os.getpid()
    chip = Chip(
        answers={
            "nvmlDeviceGetComputeRunningProcesses": [
                SimpleNamespace(pid=own, usedGpuMemory=3 * GIB),
                SimpleNamespace(pid=2**22 + 7, usedGpuMemory=None),
            ],
            "nvmlDeviceGetGraphicsRunningProcesses": [SimpleNamespace(pid=own, usedGpuMemory=3 * GIB)],
        }
    )
    processes = Nvml(FakeNvml(chip)).read((0, None), "cuda:0").processes
    me = psutil.Process()
    assert processes == [
        {"pid": own, "name": me.name(), "user": me.username(), "memory_bytes": 3 * GIB},
        {"pid": 2**22 + 7, "name": None, "user": None, "memory_bytes": None},
    ]


def test_a_process_is_asked_for_its_name_once(monkeypatch):
    asked = []
    monkeypatch.setattr(nvidia, "_who", lambda pid: asked.append(pid) or ("python", "me"))
    listed = [[SimpleNamespace(pid=pid, usedGpuMemory=GIB)] for pid in (7, 8)]
    nvml = Nvml(FakeNvml(*(Chip(answers={"nvmlDeviceGetComputeRunningProcesses": each}) for each in listed)))
    for index in (0, 1, 0, 1):
        nvml.read((index, None), f"cuda:{index}")
    assert asked == [7, 8]


def test_pci_addresses_are_written_one_way():
    for text, normal in rows("""
        00000000:1B:00.0  0000:1b:00.0
        1B:00.0           0000:1b:00.0
        00010000:1B:00.0  10000:1b:00.0
        nonsense          -
        -                 -
    """):
        assert normal_pci_bus_id(text or None) == (normal or None)


def test_wiring_names_the_way_to_each_other_gpu():
    links = {"nvlink_peers": [b"00000000:2B:00.0"] * 4}
    chips = [Chip(bus=b"00000000:1B:00.0", **links), Chip(bus=b"00000000:2B:00.0"), Chip(bus=b"00000000:9B:00.0")]
    wiring = Nvml(FakeNvml(*chips)).wiring(0)
    assert [(each.gpu, each.over) for each in wiring.connections] == [("1", "NV4"), ("2", "SYS")]
    assert wiring.nvlinks_up == 4
    assert wiring.nvlinks_down == 2
    assert wiring.nvlinks_to_switch == 0
    assert wiring.pcie_generation == 1
    assert wiring.pcie_generation_limit == 5
    assert wiring.pcie_lanes == 16
    assert wiring.performance_state == 0


def test_wiring_of_a_driver_that_answers_nothing_is_unknown():
    broken = dict.fromkeys(WIRING_QUESTIONS, NOT_SUPPORTED)
    wiring = Nvml(FakeNvml(Chip(), Chip(), broken=broken)).wiring(0)
    assert wiring == Wiring()
