"""Strings, brackets, attributes and operand lists. Colours: nothing is lost, and the words get the kinds that they
should. Files: what is read, what is refused, and by which name."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxprof.errors import HloError
from jaxprof.hlo.read import files
from jaxprof.hlo.read.lexer import Language, lex
from jaxprof.hlo.read.syntax import attributes
from tables import rows


def read(text):
    listed = attributes(text, 0, len(text))
    return {item.name: text[item.start : item.end] for item in listed.found}, text[listed.end :], listed.closed


def test_values_of_all_kinds():
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


def test_deep_json_and_several_lines():
    config = '{"a":{"b":[{"c":{"d":[[{}]]}}]},\n  "e":"}"}'
    assert read(f", backend_config={config}, after=1\n")[0] == {"backend_config": config, "after": "1"}


@pytest.mark.parametrize("text", [", a={", ', a="x', ", a={[(}", ', a={"x}', ", a={{{{{{{{1}"])
def test_an_open_bracket_is_told(text):
    found, _, closed = read(text)
    assert not closed
    assert list(found) == ["a"]


@given(st.text() | st.text('%"\\{}[]()=,:;<>#/* \taf32.', max_size=200), st.sampled_from(Language))
def test_the_spans_are_the_line(line, language):
    assert "".join(span.text for span in lex(line, language)) == line


@pytest.mark.parametrize(
    ("language", "line", "kinds"),
    [
        (
            Language.HLO,
            "  ROOT %dot.1 = f32[8,4]{1,0:T(8,128)} dot(%a, b), lhs_contracting_dims={1}, "
            'metadata={op_name="jit(f)/dot"} // x',
            """
                KEYWORD    ROOT
                NAME       %dot.1
                NAME       %a
                SHAPE      f32[8,4]
                LAYOUT     {1,0:T(8,128)}
                OPCODE     dot
                ATTRIBUTE  lhs_contracting_dims
                ATTRIBUTE  op_name
                NUMBER     1
                STRING     "jit(f)/dot"
                COMMENT    // x
            """,
        ),
        (
            Language.STABLEHLO,
            "    %0 = stablehlo.add %arg0, %arg1 : tensor<8x4xf32> loc(#loc3)",
            """
                OPCODE  stablehlo.add
                NAME    %0
                NAME    %arg0
                SHAPE   tensor<8x4xf32>
            """,
        ),
        (
            Language.JAXPR,
            "    b:f32[3] = pjit[name=f] a 2.0:f32[]",
            """
                SHAPE      f32[3]
                OPCODE     pjit
                ATTRIBUTE  name
            """,
        ),
    ],
)
def test_words_have_their_kinds(language, line, kinds):
    assert {(kind, word) for kind, word in rows(kinds)} <= {(span.kind.name, span.text) for span in lex(line, language)}


TEXT = "HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"


def packed(data):
    """Without the time of day: it would be in the test's name, and differ between processes that share the tests."""
    return gzip.compress(data, mtime=0)


@pytest.mark.parametrize(
    "data",
    [TEXT.encode("utf-8-sig"), TEXT.replace("m\n", "m\x00\n", 1).encode(), TEXT.encode() + b"// \xff\xfe\n"],
)
def test_forms_of_text(data, tmp_path):
    path = tmp_path / "module.txt"
    path.write_bytes(data)
    (module,) = files.load(path)
    assert [one.opcode for one in module["e"]] == ["parameter"]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (packed(b""), "the file is empty"),
        (packed(TEXT.encode())[:-9], "truncated"),
        (b"\x0a\x05hello\x12\x04\x08\x01\x10\x02", "not HLO"),
        (b"ML\xefR\r\x00", "MLIR bytecode"),
        (b"\x7fELF" + bytes(50), "ELF"),
        (bytes(range(256)) * 8, "binary file"),
    ],
)
def test_what_is_refused(data, what, tmp_path):
    path = tmp_path / "thing.bin"
    path.write_bytes(data)
    with pytest.raises(HloError, match=what) as caught:
        files.load(path)
    assert str(path) in caught.value.what


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(HloError, match="No such file"):
        files.load(tmp_path / "absent.txt")
    with pytest.raises(HloError, match="directory"):
        files.load(tmp_path)
