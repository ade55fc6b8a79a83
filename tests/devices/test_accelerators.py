"""Why JAX does not use an accelerator, and the command that mends it."""

from dataclasses import replace

import pytest

from devices.making import PYTHON, gpu, on_bus, split, target
from jaxprof.devices.inventory.accelerators import (
    bus_accelerators,
    cuda_obstacle,
    gpu_obstacle,
)
from jaxprof.devices.inventory.hardware import AMD, GOOGLE, NVIDIA, MachineHardware
from jaxprof.devices.live.nvidia import NvidiaListing
from tables import rows

PIP = f"{PYTHON} -m pip install"


def found(machine, installed, environment=None):
    return bus_accelerators(machine, NvidiaListing(problem="NVML: Driver Not Loaded"), installed, environment or {})


def why(accelerator):
    assert accelerator.obstacle is not None
    return accelerator.obstacle


DRIVER = "580.65.06"


@pytest.mark.parametrize(
    ("driver", "capability", "plugin", "extras", "reason", "hint"),
    rows("""
        # a missing plugin is installed for the CUDA that the driver runs
        580.65.06   9.0  -              cuda12 cuda13  jax-cuda13-plugin is not installed  jax[cuda13]==0.10.2
        570.86.15   9.0  -              cuda12 cuda13  jax-cuda12-plugin is not installed  jax[cuda12]==0.10.2
        580.65.06   7.0  -              cuda12 cuda13  jax-cuda12-plugin is not installed  jax[cuda12]==0.10.2
        580.65.06   9.0  -              cuda12         jax-cuda12-plugin is not installed  jax[cuda12]==0.10.2
        -           9.0  -              cuda12 cuda13  jax-cuda12-plugin is not installed  jax[cuda12]==0.10.2
        550.54.15   9.0  cuda13=0.10.2  cuda12 cuda13  needs driver 580                    jax[cuda12]==0.10.2
        580.65.06   9.0  cuda13=0.9.0   cuda12 cuda13  jax-cuda13-plugin 0.9.0 does not fit jaxlib 0.10.2  jax[cuda13]
        470.256.02  9.0  -              cuda12 cuda13  470.256.02 is too old               -
    """),
)
def test_what_is_missing_is_named_with_what_mends_it(driver, capability, plugin, extras, reason, hint):
    listing = NvidiaListing(gpus=(gpu(0, capability=capability),), driver=driver or None)
    plugins = dict([plugin.split("=")] if plugin else [])
    obstacle = cuda_obstacle(listing, target(extras=tuple(extras.split()), **plugins), {})
    assert reason in obstacle.reason
    assert (f'{PIP} "{hint}' if hint else "driver") in obstacle.hint
    assert ("pip" in obstacle.hint) is bool(hint)


def test_a_variable_that_hides_gpus_is_named():
    listing = NvidiaListing(gpus=(gpu(0),), driver="580.65.06")
    for name, value, reason in rows("""
        JAX_PLATFORMS         cpu        JAX_PLATFORMS=cpu
        JAX_PLATFORMS         tpu, cpu   JAX_PLATFORMS=tpu, cpu
        CUDA_VISIBLE_DEVICES  -          CUDA_VISIBLE_DEVICES=''
        CUDA_VISIBLE_DEVICES  -1         CUDA_VISIBLE_DEVICES='-1'
        JAX_PLATFORMS         cuda       -
        JAX_PLATFORMS         gpu        -
        JAX_PLATFORMS         cpu,cuda   -
        JAX_PLATFORMS         CUDA       -
        JAX_PLATFORMS         -          -
    """):
        obstacle = cuda_obstacle(listing, target(cuda13="0.10.2"), {name: value})
        assert bool(obstacle) is bool(reason), (name, value)
        if obstacle is not None:
            assert reason in obstacle.reason
            assert obstacle.hint == f"unset {name}"


def test_a_split_gpu_points_to_its_instances_or_says_how_to_make_one():
    whole = split(0, 2)
    listing = NvidiaListing(gpus=(whole,))
    told = [gpu_obstacle(part, listing, {}) for part in (whole, *whole.mig)]
    assert "listed separately" in told[0].reason
    empty = replace(whole, mig=())
    obstacle = gpu_obstacle(empty, NvidiaListing(gpus=(empty,)), {})
    assert "nvidia-smi mig" in obstacle.hint


def test_a_gpu_without_a_driver_is_found_on_the_bus():
    (one,) = found(MachineHardware(pci=(on_bus(NVIDIA), on_bus(NVIDIA, 0x22A3, 0x068000, bus=2))), target())
    assert (one.platform, one.pci_bus_id) == ("cuda", "0000:01:00.0")
    assert "driver is not loaded" in why(one).reason
    assert f'{PIP} "jax[cuda12]==0.10.2"' in why(one).hint


@pytest.mark.parametrize("class_code", [0x030000, 0x120000])
def test_an_amd_gpu_wants_the_rocm_plugin_that_this_jax_offers(class_code):
    machine = MachineHardware(pci=(on_bus(AMD, class_code=class_code),))
    (one,) = found(machine, target())
    assert (one.platform, one.kind) == ("rocm", "AMD GPU")
    assert why(one).hint == f'{PIP} "jax[rocm7-local]==0.10.2"'
    (older,) = found(machine, target(extras=("rocm",)))
    assert '"jax[rocm]==' in why(older).hint
    (usable,) = found(machine, target(rocm7="0.10.2"))
    assert usable.obstacle is None


def test_a_tpu_wants_libtpu():
    for device, kind in ((0x0063, "TPU v5e"), (0x006F, "TPU v6e"), (0x0062, "TPU v5p"), (0x005E, "TPU v4")):
        machine = MachineHardware(pci=(on_bus(GOOGLE, device, 0x088000),), tpu_nodes=("/dev/accel0",))
        (one,) = found(machine, target())
        assert (one.platform, one.kind) == ("tpu", kind)
        assert why(one).hint == f'{PIP} "jax[tpu]==0.10.2"'
    assert found(machine, target(libtpu="0.0.42"))[0].obstacle is None
    (hidden,) = found(machine, target(libtpu="0.0.42"), {"JAX_PLATFORMS": "cpu"})
    assert "JAX_PLATFORMS=cpu" in hidden.obstacle.reason
