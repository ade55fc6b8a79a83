"""Live sizes by hand; `test_totals.py` has them against what XLA assigned to real programs."""

import pytest

from hlo.analysis.programs import written
from jaxprof.hlo.analysis.liveness import liveness
from jaxprof.hlo.read.parse import module

KIB = 1024

CHAIN = """HloModule chain, is_scheduled=true

%inside (p: f32[256]) -> f32[256] {
  %p = f32[256]{0} parameter(0)
  ROOT %n = f32[256]{0} negate(%p)
}

ENTRY %main (x: f32[256], y: f32[512]) -> f32[256] {
  %x = f32[256]{0} parameter(0), metadata={op_name="x"}
  %y = f32[512]{0} parameter(1)
  %big = f32[512]{0} custom-call(%y), custom_call_target="f", \
metadata={op_name="jit(f)/f" source_file="me.py" source_line=7}
  %seen = f32[512]{0} bitcast(%big)
  %small = f32[256]{0} custom-call(%seen), custom_call_target="g"
  %loop = f32[256]{0} fusion(%small), kind=kLoop, calls=%inside
  ROOT %out = f32[256]{0} custom-call(%loop, %x), custom_call_target="h"
}
"""

LOOP = """HloModule loop, is_scheduled=true

%body (p: (s32[], f32[256])) -> (s32[], f32[256]) {
  %p = (s32[], f32[256]{0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %v = f32[256]{0} get-tuple-element(%p), index=1
  %scratch = f32[1024]{0} custom-call(%v), custom_call_target="f"
  %next = f32[256]{0} custom-call(%scratch), custom_call_target="g"
  ROOT %t = (s32[], f32[256]{0}) tuple(%i, %next)
}

%condition (q: (s32[], f32[256])) -> pred[] {
  %q = (s32[], f32[256]{0}) parameter(0)
  ROOT %true = pred[] constant(true)
}

ENTRY %main (x: f32[256]) -> f32[256] {
  %x = f32[256]{0} parameter(0)
  %zero = s32[] constant(0)
  %start = f32[256]{0} copy(%x)
  %state = (s32[], f32[256]{0}) tuple(%zero, %start)
  %while = (s32[], f32[256]{0}) while(%state), condition=%condition, body=%body
  ROOT %out = f32[256]{0} get-tuple-element(%while), index=1
}
"""


def test_values_live_from_their_instruction_to_their_last_use():
    found = liveness(module(CHAIN))
    arguments = 3 * KIB
    # y goes in; `big` is 2 KiB and lives until `small` is made of it; the fusion takes the place of `small`.
    assert found.live_bytes == tuple(arguments + size for size in (0, 0, 2 * KIB, 2 * KIB, 3 * KIB, KIB, 2 * KIB))
    assert found.peak_bytes == max(found.live_bytes)
    assert found.parts == {"argument": 3 * KIB, "output": 0, "temporary": 3 * KIB, "constant": 0}
    big = next(value for value in found.values if value.instruction == "big")
    assert (big.bytes, big.kind, big.shape, big.at_peak) == (2 * KIB, "temporary", "f32[512]{0}", True)
    assert (big.op_name, big.file, big.line) == ("jit(f)/f", "me.py", 7)
    assert found.points[found.peak_at].instruction == "small"
    assert [value.instruction for value in found.alive(found.peak_at)] == ["y", "big", "x", "small"]
    assert [value.instruction for value in found.alive(5)] == ["y", "x", "loop"], "the loop has the place of small"


def test_a_loop_keeps_its_state_in_place_and_adds_what_its_body_needs():
    found = liveness(module(LOOP))
    # x, the two constants, the state (which is the output), and the body's scratch: the next state is where it was.
    assert found.peak_bytes == KIB + 5 + KIB + 4 * KIB
    assert found.parts == {"argument": KIB, "output": KIB, "temporary": 4 * KIB, "constant": 5}
    assert {value.instruction for value in found.values if value.at_peak} >= {"x", "start", "scratch"}
    scratch = next(value for value in found.values if value.instruction == "scratch")
    assert found.points[found.peak_at].instruction == "while"
    assert scratch.spans == ((4, 4),), "what the body needs is alive where the loop runs, and nowhere else"


def test_a_donated_argument_is_its_output_too():
    donated = "is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }"
    assert liveness(module(LOOP.replace("is_scheduled=true", donated))).parts["output"] == 0


SCATTER = """
zeros {
  c = f32[] constant(0)
  ROOT b = f32[256] broadcast(c), dimensions={}
}

fused {
  t = f32[256] parameter(0)
  i = s32[4,1] parameter(1)
  u = f32[4] parameter(2)
  zero = f32[256] negate(t)
  ROOT scattered = f32[256] scatter(%s, i, u), to_apply=add, update_window_dims={}, inserted_window_dims={0}, \
scatter_dims_to_operand_dims={0}, index_vector_dim=1
}

ENTRY main {
  i = s32[4,1] parameter(0)
  u = f32[4] parameter(1)
  gradient = f32[256] fusion(), kind=kLoop, calls=zeros
  ROOT out = f32[256] fusion(gradient, i, u), kind=kInput, calls=fused
}
"""


@pytest.mark.parametrize(("updated", "more"), [("t", KIB), ("zero", 2 * KIB)])
def test_a_fused_update_in_place_takes_the_place_of_what_it_updates(updated, more):
    assert liveness(written(SCATTER % updated)).peak_bytes == 4 * 4 + 4 * 4 + more


@pytest.mark.parametrize("text", [CHAIN.replace(", is_scheduled=true", ""), "HloModule empty, is_scheduled=true\n"])
def test_without_a_schedule_nothing_is_said(text):
    assert liveness(module(text)) is None
