"""CUDA_VISIBLE_DEVICES as CUDA reads it."""

from __future__ import annotations

import pytest

from jaxprof.devices.inventory.visible import settled_order, visible_gpus
from jaxprof.devices.live.nvidia import Gpu

ALIKE = tuple(Gpu(index=n, name="H200", uuid=f"GPU-{letter}0-{letter}") for n, letter in enumerate("abcd"))
MIXED = (Gpu(index=0, name="T4", uuid="GPU-a"), Gpu(index=1, name="H200", uuid="GPU-b"))
INSTANCES = tuple(Gpu(index=0, mig_index=n, name="H200 MIG", uuid=f"MIG-{n}f") for n in range(2))
SPLIT = (Gpu(index=0, name="H200", uuid="GPU-a", mig_enabled=True, mig=INSTANCES),)


@pytest.mark.parametrize(
    ("value", "indices"),
    [
        (None, [0, 1, 2, 3]),
        ("2,0", [2, 0]),
        (" 3 , 1 ", [3, 1]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("1,-1,2", [1]),
        ("0,9,1", [0]),
        ("1,1,2", [1]),
        ("GPU-c0-c,GPU-a", [2, 0]),
        ("gpu-B", [1]),
        ("GPU-", []),
        ("GPU-zz,0", []),
        ("MIG-0,0", []),
    ],
)
def test_the_list_is_read_up_to_its_first_bad_entry(value: str | None, indices: list[int]) -> None:
    environment = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    visible = visible_gpus(ALIKE, environment)
    assert [gpu.index for gpu in visible.gpus] == indices
    assert visible.certain


@pytest.mark.parametrize(
    ("environment", "certain"),
    [
        ({}, False),
        ({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, True),
        ({"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}, False),
        ({"CUDA_VISIBLE_DEVICES": "0"}, False),
        ({"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, True),
        ({"CUDA_VISIBLE_DEVICES": "GPU-b,GPU-a"}, True),
    ],
)
def test_different_gpus_are_numbered_by_speed_which_only_cuda_knows(environment: dict[str, str], certain: bool) -> None:
    assert visible_gpus(MIXED, environment).certain is certain


@pytest.mark.parametrize(("value", "numbers"), [(None, [0]), ("MIG-1f", [1]), ("MIG-1f,MIG-0", [1, 0]), ("0", [0])])
def test_instances_are_named_by_uuid(value: str | None, numbers: list[int]) -> None:
    environment = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    found = visible_gpus(SPLIT, environment).gpus
    assert [gpu.mig_index for gpu in found] == numbers


def test_the_order_is_settled_only_where_the_user_did_not_choose() -> None:
    assert settled_order({}) == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    assert settled_order({"CUDA_VISIBLE_DEVICES": "1"}) == {}
    assert settled_order({"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}) == {}
