"""Collectives on machines, calculated by hand; and which of two figures is the bound."""

from __future__ import annotations

import pytest

from jaxprof.devices.targets import Machine, exchange, machine_for, machine_of, parse_target
from jaxprof.hlo.analysis.collectives import Collective, collectives
from jaxprof.hlo.analysis.cost.peaks import device
from jaxprof.hlo.read.parse import module

MIB = 1 << 20
_ADD = """
%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}
"""


def of(instruction: str, size: int = 4 * MIB) -> Collective:
    """The collective of `x`, an array of float32 of that many elements (16 MiB)."""
    text = (
        f"HloModule m, is_scheduled=true, num_partitions=32\n{_ADD}\nENTRY %main (x: f32[{size}]) -> f32[{size}] {{\n"
        f"  %x = f32[{size}]{{0}} parameter(0)\n  ROOT %c = {instruction}\n}}\n"
    )
    (found,) = collectives(module(text))
    return found


def all_reduce(groups: str) -> Collective:
    return of(f"f32[{4 * MIB}]{{0}} all-reduce(%x), channel_id=1, replica_groups={groups}, to_apply=%add")


def on(target: str) -> Machine:
    return machine_for(parse_target(target))


def bound(collective: Collective, target: str) -> float:
    found = exchange(collective, on(target))
    assert found.bound_seconds is not None
    assert found.estimate_seconds is not None
    assert found.estimate_seconds >= found.bound_seconds
    return found.bound_seconds


S = 16 * MIB
NVLINK, NICS = 450e9, 8 * 50e9


def test_an_all_reduce_over_four_hosts_is_as_fast_as_their_eight_interfaces() -> None:
    found = exchange(all_reduce("[1,32]<=[32]"), on("4xh100:8"))
    # Each host sends 2 (4 - 1) / 4 of the array over 400 GB/s; within the host the switch adds up, which is faster.
    assert found.bound_seconds == pytest.approx(2 * 3 / 4 * S / NICS)
    assert found.bound_seconds == pytest.approx(62.9e-6, rel=1e-3)
    assert found.link == "network, 8 × 400 Gb/s a host"
    # A ring of all 32 without latency is 81 us; with NCCL's latencies it is more, and no longer 650 us.
    assert found.estimate_seconds is not None
    assert 81e-6 < found.estimate_seconds < 250e-6


def test_within_a_host_the_switch_adds_up() -> None:
    found = exchange(all_reduce("[4,8]<=[32]"), on("4xh100:8"))
    assert found.bound_seconds == pytest.approx(S / NVLINK)
    assert found.link == "NVLink 4, 18 links"
    # The switches of an A100 do not: 2 (8 - 1) / 8 of the array over 300 GB/s.
    assert bound(all_reduce("[4,8]<=[32]"), "4xa100:8") == pytest.approx(2 * 7 / 8 * S / 300e9)


def test_gathering_and_scattering_send_the_array_once() -> None:
    gather = of(
        f"f32[{4 * MIB}]{{0}} all-gather(%x), channel_id=1, replica_groups=[1,32]<=[32], dimensions={{0}}", MIB // 8
    )
    assert gather.bytes == S
    # A device gets 31 of 32 parts over NVLink and its own interface; the hosts get 3 of 4 over all of theirs, sooner.
    assert bound(gather, "4xh100:8") == pytest.approx(31 / 32 * S / (NVLINK + 50e9))
    assert 31 / 32 * S / (NVLINK + 50e9) > 3 / 4 * S / NICS
    assert bound(gather, "4xa100:8") == pytest.approx(3 / 4 * S / (8 * 25e9))
    scatter = of(
        f"f32[{MIB // 8}]{{0}} reduce-scatter(%x), channel_id=1, replica_groups=[1,32]<=[32], dimensions={{0}}, "
        "to_apply=%add"
    )
    assert scatter.bytes == S
    assert bound(scatter, "4xa100:8") == pytest.approx(3 / 4 * S / (8 * 25e9))
    inside = of(
        f"f32[{4 * MIB}]{{0}} all-gather(%x), channel_id=1, replica_groups=[4,8]<=[32], dimensions={{0}}", MIB // 2
    )
    assert bound(inside, "4xh100:8") == pytest.approx(7 / 8 * S / NVLINK)


def test_an_all_to_all_sends_to_the_devices_of_other_hosts() -> None:
    found = of(f"f32[{4 * MIB}]{{0}} all-to-all(%x), channel_id=1, replica_groups=[1,32]<=[32], dimensions={{0}}")
    # Eight devices of a host each send 24 of 32 parts of their 16 MiB to other hosts.
    assert bound(found, "4xh100:8") == pytest.approx(8 * 24 / 32 * S / NICS)
    inside = of(f"f32[{4 * MIB}]{{0}} all-to-all(%x), channel_id=1, replica_groups=[4,8]<=[32], dimensions={{0}}")
    assert bound(inside, "4xh100:8") == pytest.approx(7 / 8 * S / NVLINK)


def permute(pairs: str) -> Collective:
    return of(f"f32[{4 * MIB}]{{0}} collective-permute(%x), channel_id=1, source_target_pairs={{{pairs}}}")


def test_a_permute_takes_the_links_between_its_pairs() -> None:
    ring = ",".join(f"{{{at},{(at + 1) % 32}}}" for at in range(32))
    # One pair leaves each host, which has all its interfaces for it.
    assert bound(permute(ring), "4xh100:8") == pytest.approx(S / NICS)
    shift = ",".join(f"{{{at},{(at + 8) % 32}}}" for at in range(32))
    assert bound(permute(shift), "4xh100:8") == pytest.approx(8 * S / NICS)
    assert bound(permute("{0,1},{1,0}"), "4xh100:8") == pytest.approx(S / NVLINK)


@pytest.mark.parametrize(
    ("target", "seconds"),
    [
        # 2x2 of v5e: each chip has 2 links of 50 GB/s. 16x16 is a torus: 4 links.
        ("tpu-v5e:2x2", 2 * 3 / 4 * S / 100e9),
        ("tpu-v5e:16x16", 2 * 255 / 256 * S / 200e9),
        ("tpu-v6e:16x16", 2 * 255 / 256 * S / 400e9),
        # 4x4 is open: 24 links of 50 GB/s each way carry 2 (16 - 1) arrays; a corner has 2 links, and its own array.
        ("tpu-v5e:4x4", 2 * 15 * S / (2 * 24 * 50e9)),
        # 4x4x4 of v5p is a torus: 6 links of 100 GB/s; 2x2x1: 2 links.
        ("tpu-v5p:4x4x4", 2 * 63 / 64 * S / 600e9),
        ("tpu-v5p:2x2x1", 2 * 3 / 4 * S / 200e9),
        # Eight devices on four chips of TPU7x: chips exchange over 2 links of 100 GB/s.
        ("tpu-v7:2x2x1", 2 * 3 / 4 * S / 200e9),
    ],
)
def test_an_all_reduce_over_a_slice(target: str, seconds: float) -> None:
    count = parse_target(target).devices
    assert bound(all_reduce(f"[1,{count}]<=[{count}]"), target) == pytest.approx(seconds)


def test_what_is_not_known_is_unknown() -> None:
    assert exchange(all_reduce("mesh['a'=4] {'b'}"), on("4xh100:8")).bound_seconds is None
    assert exchange(all_reduce("[1,8]<=[8]"), on("l4:8")).bound_seconds is None
    assert machine_of(device("h100-pcie")).levels == ()
