"""What a session may say of the machine, and what it must not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from devices.making import facts, gpu
from jaxprof.devices.inventory.environment import container_hint, environment_facts, safe_variables


def test_settings_that_change_a_measurement_are_kept() -> None:
    settings = {
        "CUDA_VISIBLE_DEVICES": "GPU-aaaaaaaa-0000-0000-0000-000000000000,1",
        "JAX_ENABLE_X64": "1",
        "JAX_PLATFORMS": "cuda,cpu",
        "OMP_NUM_THREADS": "8",
        "OPENBLAS_NUM_THREADS": "4",
        "XLA_PYTHON_CLIENT_MEM_FRACTION": ".5",
        "XLA_FLAGS": "--xla_gpu_enable_command_buffer= --xla_force_host_platform_device_count=4 --xla_x",
    }
    assert safe_variables(settings) == settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HOME", "/home/secret"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("HF_TOKEN", "secret"),
        ("SECRET_JAX_PLATFORMS", "secret"),
        ("JAX_COMPILATION_CACHE_DIR", "gs://bucket/secret"),
        ("JAX_COORDINATOR_ADDRESS", "secret:1234"),
        ("JAX_DUMP_IR_TO", "/home/secret"),
        ("JAX_PLATFORMS", "/home/secret"),
        ("JAX_PLATFORMS", "user:secret@host"),
        ("OMP_NUM_THREADS", "secret" * 12),
        ("OMP_NUM_THREADS", "secret\x1b[31m"),
        ("XLA_FLAGS", "--xla_dump_to=/home/secret --xla_gpu_autotune_level=4"),
        ("XLA_FLAGS", "--xla_gpu_cuda_data_dir=/secret secret"),
        ("LIBTPU_INIT_ARGS", "--token=user:secret@host"),
    ],
)
def test_nothing_that_could_be_a_secret_gets_in(name: str, value: str) -> None:
    assert "secret" not in json.dumps(safe_variables({name: value}))


def test_flags_beside_a_hidden_one_are_kept() -> None:
    kept = safe_variables({"XLA_FLAGS": "--xla_dump_to=/tmp/x --xla_gpu_autotune_level=4"})
    assert kept == {"XLA_FLAGS": "--xla_dump_to=... --xla_gpu_autotune_level=4"}


def test_that_an_unlisted_setting_of_jax_is_there_is_told() -> None:
    assert safe_variables({"JAX_SOMETHING_NEW": "/path"}) == {"JAX_SOMETHING_NEW": "..."}


def test_the_machine_is_described_and_json_takes_it() -> None:
    found = environment_facts(facts(gpu(0), environment={"JAX_ENABLE_X64": "1"}))
    assert found["cpu_model"] == "AMD EPYC 9654"
    assert found["cores"] == 16.0
    assert found["gpus"] == [
        {"name": "NVIDIA H200", "uuid": "GPU-aaaa", "memory_bytes": 140 * 1024**3, "mig_enabled": False}
    ]
    assert found["nvidia_driver"] == "580.65.06"
    assert found["variables"] == {"JAX_ENABLE_X64": "1"}
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@pytest.mark.parametrize(
    ("path", "hint"), [(".dockerenv", "docker"), ("run/.containerenv", "podman"), ("anything", None)]
)
def test_containers_leave_marks(tmp_path: Path, path: str, hint: str | None) -> None:
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text("")
    assert container_hint({}, tmp_path) == hint
    assert container_hint({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path) == "kubernetes"
