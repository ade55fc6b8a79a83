"""Who takes part in a collective, in each of the ways in which XLA writes it, and what is exchanged."""

import pytest

from hlo.analysis.programs import fused, written
from jaxprof.hlo.analysis.collectives import collectives
from tables import rows


def collective(instruction, header="", shape="f32[1024]"):
    text = f"x = f32[1024]{{0}} parameter(0)\nROOT c = {shape}{{0}} {instruction}"
    (found,) = collectives(written(text, f"is_scheduled=true{header}"))
    return found


def test_how_groups_are_read():
    for groups, header, found in rows("""
        {{0,1,2,3},{4,5,6,7}}                      -  0 1 2 3, 4 5 6 7
        [2,4]<=[8]                                 -  0 1 2 3, 4 5 6 7
        [4,2]<=[2,4]T(1,0)                         -  0 4, 1 5, 2 6, 3 7
        mesh['data'=4,'model'=2] {'data'}          -  0 2 4 6, 1 3 5 7
        mesh['data'=4,'model'=2] {'data','model'}  -  0 1 2 3 4 5 6 7
        mesh['axis_0'=2,'axis_1'=4], device_ids=([4,2]T(1,0)) {'axis_0'}  -  0 1, 2 3, 4 5, 6 7
        {}  , replica_count=2, num_partitions=2    0 1 2 3
        {}                                         -  -
        [0,4]<=[0]                                 -  -
        [4,2]<=[2,4]T(0,0)                         -  -
        mesh['x'=2] {'x','x'}                      -  -
        mesh['x'=2,'y'=4], device_ids=([2,2]) {'x'}  -  -
        {{},{}}                                    -  -
    """):
        read = collective(f"all-reduce(x), channel_id=1, replica_groups={groups}, to_apply=add", header)
        expected = tuple(tuple(map(int, group.split())) for group in found.split(", ")) if found else None
        assert read.groups == expected
        assert read.group_size == (len(expected[0]) if expected else None)
        assert (read.opcode, read.bytes) == ("all-reduce", 4096)


def test_a_permute_has_its_pairs_and_no_group():
    for pairs, read in (("{{0,1},{1,0}}", ((0, 1), (1, 0))), ("{}", None)):
        found = collective(f"collective-permute(x), channel_id=1, source_target_pairs={pairs}")
        assert (found.opcode, found.groups, found.group_size, found.bytes) == ("collective-permute", read, None, 4096)


@pytest.mark.parametrize(("kept", "opcode"), [(256, "reduce-scatter"), (1024, "all-reduce")])
def test_a_fusion_around_an_all_reduce_that_keeps_a_part_is_a_reduce_scatter(kept, opcode):
    inside = f"""
        r = f32[1024]{{0}} all-reduce(p0), channel_id=1, replica_groups=[1,4]<=[4], to_apply=add
        ROOT mine = f32[{kept}]{{0}} dynamic-slice(r, p1), dynamic_slice_sizes={{{kept}}}
    """
    (found,) = collectives(written(fused(inside, "f32[1024]{0}", "u32[]", kind="kCustom")))
    assert (found.opcode, found.bytes, found.groups) == (opcode, 4096, ((0, 1, 2, 3),))
