"""What a session may say of the machine, and what it must not."""

from __future__ import annotations

import json

from devices.making import facts, gpu
from jaxprof.devices.inventory.environment import environment_facts


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
