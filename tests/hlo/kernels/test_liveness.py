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
