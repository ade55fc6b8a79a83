"""The words of a reason: the kind first, common names once, and nothing of what the recorder said lost."""

import re

from hypothesis import given
from hypothesis import strategies as st

from golden import held_cases
from jaxprof.analysis.programs.functions import brief, briefest

SAID = [
    "argument x: f32[4] → f32[8]",
    "argument batch['x']: f32[4,4] → f32[8,4]; argument batch['y']: f32[4] → f32[8]",
    "argument x: f32[4] → f32[8]; argument y: f32[4] → f32[8]; argument z: f32[1] → bf16[1]",
    "argument p.d[0].bias: f32[1] → bf16[1]; argument p.d[0].kernel: f32[2] → bf16[2]; and 110 more differences",
    "argument p: f32[1] → f32[2]; argument p['a']: f32[1] → f32[2]",
    "argument 0: f32[1] → f32[2]; argument 1: f32[1] → f32[2]",
    "static argument 0: 1 → 2",
    "argument t: weak type f32[] → f32[]",
    "argument g: other sharding: not committed → cpu:1",
    "static argument n: 1 → 2; static argument m: 3 → 4",
    "argument params['head'] (12 leaves): new",
    "argument mask: removed",
    "argument n: keyword → positional",
    "argument n: by name → by position",  # of an older session
    "make_step at train.py:30 makes a new function each time (defined at train.py:12), rate: 0.1 → 0.2",
    "make_step makes a new function each time (defined at train.py:12)",
    "config jax_enable_x64: False → True",
    "the same function and signature again: evicted",
    "argument x: f32[4] → f32[4]",
]


def test_the_kind_stands_first_and_common_names_once():
    held_cases("reasons.txt", {said: f"  {brief(said)}\n" for said in SAID})


@given(st.lists(st.sampled_from(["argument a['x']: ", "argument a.y: ", "f32[2] → ", "; ", "static ", "]", "é→"])))
def test_no_word_of_the_types_is_lost(pieces):
    said = "".join(pieces)
    for types in ("f32[2]", "é"):
        assert len(re.findall(re.escape(types), brief(said))) == len(re.findall(re.escape(types), said))


def test_the_first_change_stands_for_all_where_there_is_little_room():
    assert briefest("argument b['x']: f32[4] → f32[8]; argument b['y']: f32[4] → f32[8]") == (
        "shape f32[4] → f32[8] and 1 more"
    )
    assert briefest("new function object each time: jit at a.py:3") == ""
