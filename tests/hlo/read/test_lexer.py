"""Colours: nothing is lost, and the words get the kinds that they should."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jaxprof.hlo.read.lexer import Language, SpanKind, lex


def kinds(line: str, language: Language = Language.HLO) -> dict[str, SpanKind]:
    return {span.text: span.kind for span in lex(line, language)}


@given(st.text() | st.text('%"\\{}[]()=,:;<>#/* \taf32.', max_size=200), st.sampled_from(Language))
def test_the_spans_are_the_line(line: str, language: Language) -> None:
    assert "".join(span.text for span in lex(line, language)) == line


def test_hlo() -> None:
    found = kinds(
        "  ROOT %dot.1 = f32[8,4]{1,0:T(8,128)} dot(%a, b), lhs_contracting_dims={1}, "
        'metadata={op_name="jit(f)/dot"} // x'
    )
    assert found["ROOT"] is SpanKind.KEYWORD
    assert found["%dot.1"] is found["%a"] is SpanKind.NAME
    assert found["f32[8,4]"] is SpanKind.SHAPE
    assert found["{1,0:T(8,128)}"] is SpanKind.LAYOUT
    assert found["dot"] is SpanKind.OPCODE
    assert found["lhs_contracting_dims"] is found["metadata"] is found["op_name"] is SpanKind.ATTRIBUTE
    assert found["1"] is SpanKind.NUMBER
    assert found['"jit(f)/dot"'] is SpanKind.STRING
    assert found["// x"] is SpanKind.COMMENT


def test_stablehlo() -> None:
    line = "    %0 = stablehlo.add %arg0, %arg1 : tensor<8x4xf32> loc(#loc3)"
    found = kinds(line, Language.STABLEHLO)
    assert found["stablehlo.add"] is SpanKind.OPCODE
    assert found["%0"] is found["%arg0"] is SpanKind.NAME
    assert found["tensor<8x4xf32>"] is SpanKind.SHAPE


def test_jaxpr() -> None:
    found = kinds("    b:f32[3] = pjit[name=f] a 2.0:f32[]", Language.JAXPR)
    assert found["f32[3]"] is SpanKind.SHAPE
    assert found["pjit"] is SpanKind.OPCODE
    assert found["name"] is SpanKind.ATTRIBUTE
