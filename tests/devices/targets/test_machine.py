"""The figures of devices, chips, hosts and slices: each has a document and a date, and they agree with each other."""

from __future__ import annotations

import re

import pytest

from jaxprof.devices.targets import CHIPS, TORI, Chip, machine_of
from jaxprof.hlo.analysis.cost.peaks import DEVICES, device


def of(row: Chip) -> object:
    return row.name


@pytest.mark.parametrize("name", DEVICES)
def test_every_figure_has_a_document_and_its_date(name: str) -> None:
    row = DEVICES[name]
    assert re.search(r"\b20[12]\d\b", row.source), row.source
    for level in machine_of(row).levels:
        assert re.search(r"\b20[12]\d\b", level.document), level.document
        assert level.name


@pytest.mark.parametrize("row", CHIPS, ids=of)
def test_what_is_compiled_for_has_ceilings_that_fit(row: Chip) -> None:
    known = device(row.name)
    assert row.devices == known.devices_per_chip
    if row.vendor == "nvidia":
        assert row.memory_bandwidth == pytest.approx(known.bandwidth, rel=0.05)
        assert 0.9 * known.memory_bytes < row.memory_bytes <= known.memory_bytes


@pytest.mark.parametrize(
    ("name", "dtype", "per_core", "clock"),
    [
        # Products of a tensor core a tick; Volta has eight of them in a core, the others four. The clock of H100 and
        # B200 under tensor load is XLA's (target_config/specs).
        ("v100", "f16", 8 * 64, 1.53e9),
        ("a100", "bf16", 4 * 256, 1.41e9),
        ("h100", "bf16", 4 * 512, 1.83e9),
        ("h200", "bf16", 4 * 512, 1.83e9),
        ("b200", "bf16", 4 * 1024, 1.835e9),
    ],
)
def test_tensor_flops_are_cores_times_products_times_clock(name: str, dtype: str, per_core: int, clock: float) -> None:
    (row,) = (row for row in CHIPS if row.name == name)
    assert device(name).matrix[dtype] == pytest.approx(row.cores * per_core * 2 * clock, rel=0.015)


@pytest.mark.parametrize(
    ("name", "devices", "bf16", "memory", "bandwidth", "ici_both_ways"),
    [
        # Of a chip: TFLOP/s, GiB, GB/s and GB/s, as Google's tables have them.
        ("tpu-v5e", 1, 197, 16, 819, 400),
        ("tpu-v5p", 1, 459, 95, 2765, 1200),
        ("tpu-v6e", 1, 918, 32, 1638, 800),
        ("tpu7x", 2, 2307, 192, 7380, 1200),
    ],
)
def test_a_chip_is_its_devices(
    name: str, devices: int, bf16: float, memory: float, bandwidth: float, ici_both_ways: float
) -> None:
    row = device(name)
    assert row.devices_per_chip == devices
    assert row.matrix["bf16"] * devices == pytest.approx(bf16 * 1e12)
    assert row.memory_bytes * devices == pytest.approx(memory * 2**30)
    assert row.bandwidth * devices == pytest.approx(bandwidth * 1e9)
    assert row.link_bandwidth is not None
    assert row.link_bandwidth * devices * 2 == pytest.approx(ici_both_ways * 1e9)


@pytest.mark.parametrize(
    ("name", "shape", "links", "rings"),
    [
        ("tpu-v5e", (2, 2), (2, 2.0, 2), (False, False)),
        ("tpu-v5e", (1, 4), (1, 1.5, 2), (False, False)),
        ("tpu-v5e", (8, 16), (3, 1.75 + 2, 4), (False, True)),
        ("tpu-v5e", (16, 16), (4, 4.0, 4), (True, True)),
        ("tpu-v5p", (2, 2, 1), (2, 2.0, 2), (False, False, False)),
        ("tpu-v5p", (2, 2, 4), (3, 3.5, 4), (False, False, False)),
        ("tpu-v5p", (4, 4, 8), (6, 6.0, 6), (True, True, True)),
        ("tpu-v3", (32, 32), (4, 4.0, 4), (True, True)),
    ],
)
def test_a_slice_closes_to_rings_only_in_its_whole_dimensions(
    name: str, shape: tuple[int, ...], links: tuple[int, float, int], rings: tuple[bool, ...]
) -> None:
    assert TORI[name].links(shape) == links
    assert TORI[name].rings(shape) == rings
