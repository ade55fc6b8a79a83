"""Who takes part in a collective, over which link it goes, and how long that takes at the least."""

from __future__ import annotations

import pytest

from jaxprof.hlo.analysis import DEVICES, Collective, collectives
from jaxprof.hlo.analysis.collectives import NETWORK
from jaxprof.hlo.parse import module

TEXT = """HloModule jit_f, is_scheduled=true{header}

%add (a: f32[], b: f32[]) -> f32[] {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}}

ENTRY %main (x: f32[1024]) -> f32[1024] {{
  %x = f32[1024]{{0}} parameter(0)
  ROOT %all-reduce = f32[1024]{{0}} all-reduce(%x), channel_id=1, replica_groups={groups}, to_apply=%add
}}
"""


def collective(groups: str, header: str = "") -> Collective:
    (found,) = collectives(module(TEXT.format(groups=groups, header=header)))
    return found


@pytest.mark.parametrize(
    ("groups", "header", "size"),
    [
        ("{{0,1,2,3},{4,5,6,7}}", "", 4),
        ("[2,4]<=[8]", "", 4),
        ("[4,2]<=[2,4]T(1,0)", "", 2),
        ("mesh['data'=4,'model'=2] {'data'}", "", 4),
        ("mesh['data'=4,'model'=2] {'data','model'}", "", 8),
        ("mesh['data'=4] {'other'}", "", None),
        ("{}", ", num_partitions=8", 8),
        ("{}", ", replica_count=2, num_partitions=4", 8),
        ("{}", "", None),
    ],
)
def test_how_many_take_part(groups: str, header: str, size: int | None) -> None:
    assert collective(groups, header).group_size == size


def test_an_all_reduce_sends_twice_what_is_not_its_own() -> None:
    found = collective("[1,8]<=[8]")
    assert found.bytes == 4096
    assert found.sent_fraction == pytest.approx(2 * 7 / 8)
    link = DEVICES["h100"].link_bandwidth
    assert link is not None
    assert found.least_seconds(DEVICES["h100"]) == pytest.approx(4096 * 1.75 / link)


def test_a_group_that_is_larger_than_a_host_crosses_the_network() -> None:
    found = collective("[1,32]<=[32]")
    inside, across = found.least_seconds(DEVICES["h100"]), found.least_seconds(DEVICES["h100"], 8)
    assert inside is not None
    assert across is not None
    assert across > inside
    assert found.link(DEVICES["h100"], 8) == NETWORK
    assert "assumed" in NETWORK[1]
    assert collective("[4,8]<=[32]").link(DEVICES["h100"], 8)[1] == DEVICES["h100"].link
