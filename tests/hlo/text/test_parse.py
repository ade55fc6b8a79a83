"""Texts that XLA prints, and texts that people write; all made for these tests. Strings, brackets, attributes and
operand lists. Files: what is read, what is refused, and by which name."""

import gzip
import textwrap
from pathlib import Path

import pytest

from jaxprof.base.errors import HloError
from jaxprof.hlo import files
from jaxprof.hlo.kernels.notices import problems
from jaxprof.hlo.paths import modules_at
from jaxprof.hlo.text import attributes
from jaxprof.hlo.text.parse import module, modules

PRINTED = (Path(__file__).parents[1] / "printed.hlo").read_text()


def read(text):
    found = module(textwrap.dedent(text))
    assert problems(found) == ()
    return found


@pytest.fixture(scope="module")
def printed():
    return read(PRINTED)


def test_header(printed):
    assert printed.name == "jit_f"
    assert printed.is_scheduled is True
    assert printed.aliases == {(0,): 1, (1,): 0}
    assert printed.attributes["frontend_attributes"] == '{fingerprint="a,b"}'


def test_computations(printed):
    assert list(printed.computations) == ["fused_computation", "host_work", "main"]
    entry = printed.entry
    assert entry is printed["main"]
    assert [(one.name, one.parameter_number) for one in entry.parameters] == [("x", 0), ("y", 1)]
    assert entry.root is entry["tuple"]
    assert PRINTED.splitlines()[entry.line - 1] == "ENTRY %main (x: f32[8], y: f32[8]) -> (f32[8], f32[8]) {"


def test_instructions(printed):
    fusion = printed["main"]["loop_fusion"]
    assert (fusion.opcode, fusion.operands) == ("fusion", ("x", "y"))
    assert fusion.operand(1) is printed["main"]["y"]
    assert fusion.operand(2) is None
    assert fusion.callees() == (printed["fused_computation"],)
    assert [user.name for user in fusion.users] == ["call-start", "tuple"]
    assert fusion.shape.layout.memory_space == 1
    assert list(fusion.attributes) == ["kind", "calls", "metadata", "backend_config"]
    assert fusion.backend_config == {"fusion_backend_config": {"kind": "__triton", "n": ["1"]}}
    assert PRINTED.splitlines()[fusion.line - 1].strip() == fusion.text
    assert printed.callers["fused_computation"] == (fusion,)
    constant, done = printed["main"]["constant.5"], printed["main"]["call-done"]
    assert (constant.literal, constant.operands) == ("{ { 1, 2 }, { 3, 4 } }", ())
    assert done.opcode == "async-done"


def test_stack(printed):
    frames = printed["fused_computation"]["multiply.1"].stack
    assert [(frame.file, frame.function, frame.line) for frame in frames] == [
        ("/home/me/träin.py", "step.<locals>.loss", 7),
        ("<embedded module '_launcher'>", "main", 30),
    ]
    assert printed["main"]["x"].stack == ()


def test_short_form_of_async():
    found = read("""
        HloModule m
        ENTRY e {
          p = f32[128] parameter(0)
          s = ((f32[128]), f32[128], u32[]) custom-call-start(p), async_execution_thread="t", custom_call_target="foo"
          u = ((f32[128]), f32[128], u32[]) custom-call-update(s)
          ar = f32[128] all-reduce-start(p), replica_groups={}, to_apply=add
          ROOT d = f32[128] custom-call-done(u)
        }
        """)
    entry = found["e"]
    assert [one.opcode for one in entry] == [
        "parameter", "async-start", "async-update", "all-reduce-start", "async-done",
    ]  # fmt: skip
    assert [entry[name].wrapped_opcode for name in "sud"] == ["custom-call", "", ""]
    assert entry["s"].called == ("async_wrapped",)
    wrapped = found["async_wrapped"]
    assert wrapped.is_synthetic is True
    assert found.entry == entry
    assert (wrapped.root.opcode, wrapped.root.operands) == ("custom-call", ("async_param",))
    assert wrapped.root.string("custom_call_target") == "foo"
    assert str(wrapped.root.shape) == "f32[128]"
    assert "async_execution_thread" not in wrapped.root.attributes


def test_computations_in_one_line_and_called_by_any_attribute():
    found = read("""
        HloModule m
        a { p = f32[2]{0} parameter(0) ROOT a = f32[2] add(p,p) } ENTRY e {
          p = f32[4] parameter(0)
          z = f32[] constant(0)
          r = f32[] reduce(p, z), dimensions={0}, to_apply={
            a = f32[] parameter(0)
            ROOT c = f32[] add(a, a)
          }
          q = f32[] reduce(p, z), to_apply=a
          i = f32[] conditional(p, q, r), true_computation=%yes, false_computation=%no
          j = f32[] conditional(i, q, r, z), branch_computations={%one, /*index=1*/%two, %three}
          g = f32[2] all-reduce(p), replica_groups=mesh['x'=4,'y'=2] {'x'}, to_apply=%add
          ROOT s = f32[] add(r, q)
        }
        """)
    assert list(found.computations) == ["a", "e"]
    assert found["a"]["a"].opcode == "add", "a computation and its instruction may have one name"
    assert {one.name: one.called for one in found["e"]} == {
        "p": (), "z": (), "r": (), "q": ("a",), "i": ("yes", "no"), "j": ("one", "two", "three"), "g": ("add",),
        "s": (),
    }  # fmt: skip
    assert found["e"]["g"].attributes["replica_groups"] == "mesh['x'=4,'y'=2] {'x'}"


def test_oldest_style_without_percent_and_with_shapes():
    found = read("""
        HloModule old

        body.3 {
          t.4 = (s32[], f32[2,3]{1,0}) parameter(0)
          i.5 = s32[] get-tuple-element((s32[], f32[2,3]{1,0}) t.4), index=0
          ROOT n.6 = (s32[], f32[2,3]{1,0}) tuple(s32[] i.5, f32[2,3]{1,0} x.9)
        }

        ENTRY main.7 {
          t.8 = (s32[], f32[2,3]{1,0}) parameter(0)
          ROOT w.9 = (s32[], f32[2,3]{1,0}) while((s32[], f32[2,3]{1,0}) t.8), condition=cond.1, body=body.3,
            metadata={op_type="While" op_name="w" source_file="a \\"b\\".py" source_line=12}
        }
        """)
    assert found["body.3"]["n.6"].operands == ("i.5", "x.9")
    assert found["body.3"]["i.5"].integers("index") == (0,)
    loop = found["main.7"]["w.9"]
    assert loop.called == ("body.3", "cond.1")
    assert [(frame.file, frame.line) for frame in loop.stack] == [('a "b".py', 12)]


def test_several_lines_strings_and_comments():
    found = module((Path(__file__).parents[1] / "written.hlo").read_text())
    assert problems(found) == ()
    assert found.is_scheduled
    assert [one.name for one in found["e"]] == ["p", "c", "k", "g"]
    call = found["e"]["k"]
    assert call.operands == ("p", "p")
    assert call.string("api_version") == "API_VERSION_TYPED_FFI"
    assert call.backend_config == {"deep": {"er": [{"x": "}"}]}}
    assert found["e"]["c"].literal.split() == ["{", "{", "1,", "2", "},", "{", "3,", "4", "}", "}"]
    assert found["e"]["g"].is_root
    assert found["e"]["g"].line == 22


@pytest.mark.parametrize(
    "text", [PRINTED.replace("\n", "\r\n"), textwrap.indent(PRINTED, "    ")], ids=["CRLF", "indented"]
)
def test_other_line_ends_and_indentation(text):
    found = modules(text + "\n// -----\nHloModule b\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n")
    assert [[one.name for one in computation] for computation in found[0].computations.values()] == [
        [one.name for one in computation] for computation in module(PRINTED).computations.values()
    ]
    assert found[0]["main"]["loop_fusion"].called == ("fused_computation",)
    assert found[0].tables.frames, "each has its own"
    assert not found[1].tables.frames, "each has its own"


def test_frames_in_a_circle_end():
    text = PRINTED.replace("2 {file_location_id=2 parent_frame_id=2}", "2 {file_location_id=2 parent_frame_id=3}")
    assert len(module(text)["fused_computation"]["multiply.1"].stack) == 1


def test_unreadable_lines_are_kept_and_told():
    found = module(
        "HloModule m\nENTRY e {\n  p = f32[2] parameter(0)\n  what is this\n  q = f32[2 add(p\n"
        "  ROOT r = f32[2] negate(p)\n}\n"
    )
    assert [(one.name, one.opcode) for one in found["e"]] == [("p", "parameter"), ("", ""), ("q", ""), ("r", "negate")]
    assert [(problem.line, problem.text) for problem in problems(found)] == [
        (4, "what is this"),
        (5, "q = f32[2 add(p"),
    ]
    assert not found["e"]["q"].readable
    assert found["e"]["q"].text == "q = f32[2 add(p"
    assert found["e"]["q"].called == found["e"]["q"].operands == ()
    assert found["e"]["r"].is_root


NOT_READ = """HloModule m
ENTRY e {
  p = (f32[10], f16[10]) parameter(0)
  %a = f32[10]{0} negate(f32[10]{0} %p#0)
  c = f32[] constant(1), metadata={op_name="step#1"}
  %b = f32[10]{0} add(%a, /*index=1 of #2*/%a)
  s = ((), (), s32[]) negate-start()
  u = ((f32[10]), f32[10], s32[]) negate-update(s, b)
  ROOT d = f32[10] negate-done(u)
}
"""


def test_problems_of_compact_elements_and_late_operands():
    short, late = problems(module(NOT_READ))
    assert (short.line, short.text) == (4, "%a = f32[10]{0} negate(f32[10]{0} %p#0)")
    assert "--xla_dump_compact_gte" in short.message
    assert late.line == 8
    assert problems(module(NOT_READ.replace("%p#0", "%p").replace("(s, b)", "(s)"))) == ()


def test_a_missing_brace_ends_at_the_next_header():
    found = module(PRINTED.replace("stack_frame_id=2}\n}\n", "stack_frame_id=2}\n", 1))
    assert list(found.computations) == ["fused_computation", "host_work", "main"]
    assert problems(found)[0].message == "another computation begins inside the computation 'fused_computation'"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "empty"),
        ("module @jit_f attributes {x = 1 : i32} {\n  func.func public @main() {\n  }\n}\n", "StableHLO"),
        ("{ lambda ; a:f32[3]. let b:f32[3] = mul a 2.0 in (b,) }", "jaxpr"),
        ("; ModuleID = 'x'\ndefine void @f() {\n}\n", "LLVM"),
        ('{"a": 1}', "JSON"),
        ("<!DOCTYPE html><html>", "HTML"),
        ("def f(x):\n    return {\n        1: 2\n    }\n", "no HloModule line"),
        ("hello", "no computation was found"),
    ],
)
def test_what_is_not_hlo_is_named(text, what):
    with pytest.raises(HloError, match=what) as refused:
        modules(text)
    assert not text or text not in str(refused.value)


def attributes_of(text):
    listed = attributes(text, 0, len(text))
    return {item.name: text[item.start : item.end] for item in listed.found}, text[listed.end :], listed.closed


def test_values_of_all_kinds():
    found, rest, closed = attributes_of(
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


@pytest.mark.parametrize("text", [", a={", ', a="x', ", a={[(}", ', a={"x}', ", a={{{{{{{{1}"])
def test_an_open_bracket_is_told(text):
    found, _, closed = attributes_of(text)
    assert not closed
    assert list(found) == ["a"]


TEXT = "HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"


def packed(data):
    """Without the time of day: it would be in the test's name, and differ between processes that share the tests."""
    return gzip.compress(data, mtime=0)


@pytest.mark.parametrize(
    "data", [TEXT.encode("utf-8-sig"), TEXT.replace("m\n", "m\x00\n", 1).encode(), TEXT.encode() + b"// \xff\xfe\n"]
)
def test_forms_of_text(data, tmp_path):
    path = tmp_path / "module.txt"
    path.write_bytes(data)
    (module,) = modules(files.read_text(path))
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
        modules_at(path)
    assert str(path) in caught.value.what
