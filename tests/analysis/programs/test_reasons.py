"""The words of a reason: the kind first, common names once, and nothing of what the recorder said lost."""

import re

from hypothesis import given
from hypothesis import strategies as st

from golden import cases, held_cases
from jaxprof.analysis.programs.functions import brief, briefest


def test_the_kind_stands_first_and_common_names_once():
    held_cases("reasons.txt", {said: f"  {brief(said)}\n" for said in cases("reasons.txt")})


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
