"""Strings, brackets, attributes and operand lists. Colours: nothing is lost, and the words get the kinds that they
should. Files: what is read, what is refused, and by which name."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.errors import HloError
from jaxprof.hlo.read import files
from jaxprof.hlo.read.lexer import Language, SpanKind, lex
from jaxprof.hlo.read.syntax import attributes, items, operand_names


def read(text: str) -> tuple[dict[str, str], str, bool]:
    listed = attributes(text, 0, len(text))
    return {item.name: text[item.start : item.end] for item in listed.found}, text[listed.end :], listed.closed


def test_values_of_all_kinds() -> None:
    found, rest, closed = read(
        ", kind=kLoop, calls=%f.1, window={size=3x3 pad=0_1x-1_0}, dim_labels=b01f_01io->b01f, slice={[0:1], [2:4:2]},"
        ' metadata={op_name="a, b={(" source_line=3}, sharding={devices=[2,1]<=[2]}, x-y.z=1 // end\n'
        ", /*index=5*/ replica_groups=[2,4]<=[4,2]T(1,0), groups=mesh['a'=2,'b'=4] {'a'}, path=a/b, last=\"\\\"}\" ROOT"
    )
    assert found == {
        "kind": "kLoop", "calls": "%f.1", "window": "{size=3x3 pad=0_1x-1_0}", "dim_labels": "b01f_01io->b01f",
        "slice": "{[0:1], [2:4:2]}", "metadata": '{op_name="a, b={(" source_line=3}',
        "sharding": "{devices=[2,1]<=[2]}", "x-y.z": "1", "replica_groups": "[2,4]<=[4,2]T(1,0)",
        "groups": "mesh['a'=2,'b'=4] {'a'}", "path": "a/b", "last": r'"\"}"',
    }  # fmt: skip
    assert rest == " ROOT"
    assert closed


def test_deep_json_and_several_lines() -> None:
    config = '{"a":{"b":[{"c":{"d":[[{}]]}}]},\n  "e":"}"}'
    assert read(f", backend_config={config}, after=1\n")[0] == {"backend_config": config, "after": "1"}


@pytest.mark.parametrize("text", [", a={", ', a="x', ", a={[(}", ', a={"x}', ", a={{{{{{{{1}"])
def test_an_open_bracket_is_told(text: str) -> None:
    found, _, closed = read(text)
    assert not closed
    assert list(found) == ["a"]


def test_items() -> None:
    assert items('{0}: (1, {}, may-alias), {1}: (2, {}), "a,b"') == ["{0}: (1, {}, may-alias)", "{1}: (2, {})", '"a,b"']
    assert items("") == []


@pytest.mark.parametrize(
    ("inside", "names"),
    [
        ("%a, %b.1", ("a", "b.1")),
        ("a, b-2 , c_3", ("a", "b-2", "c_3")),
        ("f32[2,3]{1,0:T(8,128)} %a, (f32[], s32[]) %b, /*index=2*/token[] %c", ("a", "b", "c")),
        ("f32[2,3]{1,0} a, (f32[], s32[]) b, /*index=2*/token[] c", ("a", "b", "c")),
        ("%a, b", ("a", "b")),
        ("f32[10] %p0#0", ("p0",)),
        ("\n   s32[] %x,\n   s32[] %y", ("x", "y")),
        ("f32[] constant(1), x", ("x",)),
        ("", ()),
        ("0", ()),
    ],
)
def test_operand_names(inside: str, names: tuple[str, ...]) -> None:
    assert operand_names(inside) == names


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


TEXT = "HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"


def packed(data: bytes) -> bytes:
    """Without the time of day: it would be in the test's name, and differ between processes that share the tests."""
    return gzip.compress(data, mtime=0)


@pytest.mark.parametrize(
    "data",
    [TEXT.encode(), packed(TEXT.encode()), TEXT.encode("utf-8-sig"), TEXT.encode("utf-16"),
     TEXT.replace("m\n", "m\x00\n", 1).encode(), TEXT.encode() + b"// \xff\xfe\n"],
)  # fmt: skip
def test_forms_of_text(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "module.txt"
    path.write_bytes(data)
    (module,) = files.load(path)
    assert [one.opcode for one in module["e"]] == ["parameter"]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "the file is empty"),
        (packed(b""), "the file is empty"),
        (packed(TEXT.encode())[:-9], "truncated"),
        (b"\x1f\x8b\x08broken", "gzip"),
        (b"ML\xefR\r\x00", "MLIR bytecode"),
        (b"\x7fELF" + bytes(50), "ELF"),
        (b"\x89PNG\r\n", "PNG"),
        (bytes(range(256)) * 8, "binary file"),
        (b"\x0a\x05hello\x12\x04\x08\x01\x10\x02", "not HLO"),
        (b"module @jit_f {\n}\n", "StableHLO"),
    ],
)
def test_what_is_refused(data: bytes, what: str, tmp_path: Path) -> None:
    path = tmp_path / "thing.bin"
    path.write_bytes(data)
    with pytest.raises(HloError, match=what) as caught:
        files.load(path)
    assert str(path) in caught.value.what


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(HloError, match="No such file"):
        files.load(tmp_path / "absent.txt")
    with pytest.raises(HloError, match="directory"):
        files.load(tmp_path)
