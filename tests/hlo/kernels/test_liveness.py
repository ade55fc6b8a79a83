"""What shares memory, in modules made for it: operands of calls, and operands that a library overwrites."""

import pytest

from jaxprof.hlo.kernels.liveness import liveness
from jaxprof.hlo.text.parse import module

_CALL = """HloModule m, is_scheduled=true

%inside (p: f32[1024]) -> f32[4] {
  %p = f32[1024]{0} parameter(0)
  %short = f32[4]{0} slice(%p), slice={[0:4]}
  %wide = f32[1024]{0} broadcast(%short), dimensions={0}
  ROOT %end = f32[4]{0} slice(%wide), slice={[0:4]}
}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %large = f32[1024]{0} broadcast(%x), dimensions={0}
  %first = f32[4]{0} call(%large), to_apply=%inside
  ROOT %last = f32[4]{0} LAST
}
"""
_USED_AGAIN = "slice(%large), slice={[0:4]}"
_CALLED_AGAIN = "call(%large), to_apply=%inside"
_LIBRARY = """HloModule m, is_scheduled=true

ENTRY %main (x: f32[1024]) -> f32[1024] {
  %x = f32[1024]{0} parameter(0)
  %copied = f32[1024]{0} copy(%x)
  %both = (f32[1024]{0}, s32[]) custom-call(%copied), custom_call_target="lib"ALIASING
  ROOT %result = f32[1024]{0} get-tuple-element(%both), index=0
}
"""


@pytest.mark.parametrize(
    ("text", "temporaries"),
    [
        (_CALL.replace("LAST", "negate(%first)"), 4096 + 16),
        (_CALL.replace("LAST", _USED_AGAIN), 2 * 4096),
        (_CALL.replace("LAST", _CALLED_AGAIN), 2 * 4096),
        (_LIBRARY.replace("ALIASING", ", output_to_operand_aliasing={{0}: (0, {})}"), 4),
        (_LIBRARY.replace("ALIASING", ""), 4096 + 4),
        (_LIBRARY.replace("ALIASING", ", output_to_operand_aliasing={{1}: (0, {})}"), 4096 + 4),
    ],
    ids=["call", "used again", "called again", "overwritten", "not overwritten", "other size"],
)
def test_memory_that_is_shared(text, temporaries):
    found = liveness(module(text))
    assert found.parts["temporary"] == pytest.approx(temporaries, abs=32)
    for number, point in enumerate(found.points):
        assert sum(value.bytes for value in found.alive(number)) == point.bytes


def entry(*lines, header=""):
    """A scheduled module of these instructions, and two fusions: one reads its operand in place, one turns it."""
    called = """same { p = f32[64,64]{1,0} parameter(0)\n ROOT n = f32[64,64]{1,0} negate(p) }
turned { p = f32[64,64]{1,0} parameter(0)\n ROOT t = f32[64,64]{1,0} transpose(p), dimensions={1,0} }
"""
    body = "\n".join(lines)
    return module(f"HloModule m, is_scheduled=true{header}\n{called}ENTRY e {{\n{body}\n}}\n")


ARRAY = "f32[64,64]{1,0}"
SIZE = 64 * 64 * 4
X = f"x = {ARRAY} parameter(0)"
MADE = f'a = {ARRAY} custom-call(x), custom_call_target="f"'


@pytest.mark.parametrize(("called", "arrays"), [("same", 2), ("turned", 3)])
def test_a_fusion_takes_over_what_it_reads_where_it_writes_it(called, arrays):
    """The result is read once more, so that it is not the output."""
    fused = f"b = {ARRAY} fusion(a), kind=kLoop, calls={called}"
    last = 'ROOT c = f32[] custom-call(b), custom_call_target="g"'
    assert liveness(entry(X, MADE, fused, last)).peak_bytes == arrays * SIZE + 4


def test_output_is_reserved_and_lent_until_it_is_made():
    small = 's = f32[] custom-call(a), custom_call_target="g"'
    last = f'ROOT d = {ARRAY} custom-call(s), custom_call_target="h"'
    found = liveness(entry(X, MADE, small, last))
    assert found.parts == {"argument": SIZE, "output": SIZE, "temporary": 4, "constant": 0}
    assert found.live_bytes[0] == 2 * SIZE
    assert found.points[found.peak_at].instruction != "x", "where it is needed"


def test_carry_of_a_loop_has_its_own_memory():
    """The body reads its state after it has begun to make the next one."""
    text = f"""HloModule m, is_scheduled=true
same {{ p = {ARRAY} parameter(0)
 ROOT n = {ARRAY} negate(p) }}
body {{ s = ({ARRAY}) parameter(0)
 x = {ARRAY} get-tuple-element(s), index=0
 a = {ARRAY} custom-call(x), custom_call_target="f"
 b = {ARRAY} fusion(a), kind=kLoop, calls=same
 ROOT t = ({ARRAY}) tuple(b) }}
condition {{ s = ({ARRAY}) parameter(0)
 ROOT c = pred[] custom-call(s), custom_call_target="c" }}
ENTRY e {{ x = {ARRAY} parameter(0)
 y = {ARRAY} copy(x)
 s = ({ARRAY}) tuple(y)
 w = ({ARRAY}) while(s), condition=condition, body=body
 ROOT r = {ARRAY} get-tuple-element(w), index=0 }}
"""
    assert liveness(module(text)).parts["temporary"] == pytest.approx(SIZE, abs=8)
