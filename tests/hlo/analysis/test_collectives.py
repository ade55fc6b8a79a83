"""Who takes part in a collective, in each of the ways in which XLA writes it, and what is exchanged. Which collectives
move arrays between shardings, in programs that JAX partitions over four devices."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from jaxprof.hlo.analysis.collectives import Collective, collectives
from jaxprof.hlo.analysis.findings.catalogue import findings
from jaxprof.hlo.analysis.findings.finding import HloFinding
from jaxprof.hlo.read.parse import module

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
    ("groups", "header", "found"),
    [
        ("{{0,1,2,3},{4,5,6,7}}", "", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("[2,4]<=[8]", "", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("[4,2]<=[2,4]T(1,0)", "", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("[2,4]<=[2,2,2]T(1,0,2)", "", ((0, 1, 4, 5), (2, 3, 6, 7))),
        ("mesh['data'=4,'model'=2] {'data'}", "", ((0, 2, 4, 6), (1, 3, 5, 7))),
        ("mesh['data'=4,'model'=2] {'model'}", "", ((0, 1), (2, 3), (4, 5), (6, 7))),
        ("mesh['data'=4,'model'=2] {'data','model'}", "", (tuple(range(8)),)),
        (
            "mesh['axis_0'=2,'axis_1'=4], device_ids=([4,2]T(1,0)) {'axis_0'}",
            "",
            ((0, 1), (2, 3), (4, 5), (6, 7)),
        ),
        ("{}", ", num_partitions=4", ((0, 1, 2, 3),)),
        ("{}", ", replica_count=2, num_partitions=2", ((0, 1, 2, 3),)),
        ("{}", "", None),
        ("mesh['data'=4] {'other'}", "", None),
        ("[2,4]<=[9]", "", None),
        ("[999999999,9]<=[999999999,9]", "", None),
        ("[0,4]<=[0]", "", None),
        ("[4,2]<=[2,4]T(0,0)", "", None),
        ("mesh['x'=0] {'x'}", "", None),
        ("mesh['x'=2] {'x','x'}", "", None),
        ("mesh['x'=2,'y'=4], device_ids=([2,2]) {'x'}", "", None),
        ("{{},{}}", "", None),
    ],
)
def test_how_groups_are_read(groups: str, header: str, found: tuple[tuple[int, ...], ...] | None) -> None:
    read = collective(groups, header)
    assert read.groups == found
    assert read.group_size == (len(found[0]) if found else None)


def test_what_is_exchanged() -> None:
    found = collective("[1,8]<=[8]")
    assert (found.opcode, found.bytes) == ("all-reduce", 4096)


def test_a_permute_has_its_pairs_and_no_group() -> None:
    text = TEXT.replace("all-reduce(%x), channel_id=1, replica_groups={groups}, to_apply=%add", "{permute}")
    for pairs, read in (("{{0,1},{1,0}}", ((0, 1), (1, 0))), ("{}", None)):
        permute = f"collective-permute(%x), channel_id=1, source_target_pairs={pairs}"
        (found,) = collectives(module(text.format(header="", permute=permute)))
        assert (found.opcode, found.groups, found.group_size, found.bytes) == ("collective-permute", read, None, 4096)


FUSED = """HloModule jit_f, is_scheduled=true, num_partitions=4

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%all-reduce-scatter (p: f32[1024], at: u32[]) -> f32[256] {
  %p = f32[1024]{0} parameter(0)
  %at = u32[] parameter(1)
  %r = f32[1024]{0} all-reduce(%p), channel_id=1, replica_groups=[1,4]<=[4], use_global_device_ids=true, to_apply=%add
  ROOT %mine = f32[256]{0} dynamic-slice(%r, %at), dynamic_slice_sizes={256}
}

ENTRY %main (x: f32[1024], i: u32[]) -> f32[256] {
  %x = f32[1024]{0} parameter(0)
  %i = u32[] parameter(1)
  ROOT %fusion = f32[256]{0} fusion(%x, %i), kind=kCustom, calls=%all-reduce-scatter
}
"""


def test_a_fusion_around_an_all_reduce_that_keeps_a_part_is_a_reduce_scatter() -> None:
    (found,) = collectives(module(FUSED))
    assert (found.opcode, found.bytes, found.groups) == ("reduce-scatter", 4096, ((0, 1, 2, 3),))
    whole = FUSED.replace("f32[256]", "f32[1024]").replace("{256}", "{1024}")
    (kept,) = collectives(module(whole))
    assert kept.opcode == "all-reduce"


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    script = Path(__file__).with_name("meshed.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def resharding(text: str) -> HloFinding | None:
    return next((finding for finding in findings(module(text)) if finding.code == "resharding"), None)


@pytest.mark.process
@pytest.mark.parametrize(
    ("program", "mended", "word"),
    [
        ("rows_and_columns", "rows_and_rows", "all-to-all"),
        ("split_argument", "whole_argument", "all-gather"),
        ("split_layer_then_whole", "split_layers_that_fit", "all-gather"),
        ("swapped_axes", "the_same_axes", "collective-permute"),
    ],
)
def test_shardings_that_do_not_fit_each_other(texts: dict[str, str], program: str, mended: str, word: str) -> None:
    found = resharding(texts[program])
    assert f"from one sharding to another ({word})" in found.message
    assert (found.bytes or 0) >= 1 << 20
    assert resharding(texts[mended]) is None


@pytest.mark.process
@pytest.mark.parametrize(
    ("program", "word"),
    [
        ("split_weights", "all-gather"),
        ("whole_result", "all-gather"),
        ("border", "collective-permute"),
        ("asked_for", "all-to-all"),
    ],
)
def test_collectives_that_are_meant(texts: dict[str, str], program: str, word: str) -> None:
    """Weights that are split to save memory, a result that was asked for whole, a border, and the program's own."""
    assert f" {word}(" in texts[program]
    assert resharding(texts[program]) is None
