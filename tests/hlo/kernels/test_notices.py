"""What was not seen of a module is said, and nothing is said to be missing of a module that is whole."""

import pytest

from hlo.kernels.programs import compiled, lowered, only_kernel, parameters, written
from jaxprof.hlo.kernels.execution import Execution
from jaxprof.hlo.kernels.kernels import kernels
from jaxprof.hlo.kernels.notices import notices, problems, shapes_if_whole
from jaxprof.hlo.text.parse import module
from tables import rows

_ADD = """
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
"""
_WHOLE = f"""HloModule m, is_scheduled=true, entry_computation_layout={{(f32[8,16]{{1,0}})->f32[8]{{0}}}}
{_ADD}
ENTRY main {{
  x = f32[8,16]{{1,0}} parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[8]{{0}} reduce(x, z), dimensions={{1}}, to_apply=add
}}
"""


def codes(found, *, serious=True):
    return {notice.code for notice in notices(found) if notice.serious or not serious}


def test_whole_module_has_no_notices():
    def program(x):
        return (x @ x).sum()  # type: ignore[operator]

    found = compiled(program, "f32[64,64]")
    assert notices(module(_WHOLE)) == notices(found) == ()
    assert codes(lowered(program, "f32[64,64]"), serious=False) == {"not-optimised"}
    assert all(shapes_if_whole(one) for one in found.computations.values())
    broken = module(_WHOLE.replace("constant(0)", "constant"))["main"]
    assert shapes_if_whole(broken) is None
    assert problems(broken.module)


def test_computations_are_whole_in_small_parts(monkeypatch):
    main = module(_WHOLE)["main"]
    whole = shapes_if_whole(main)
    monkeypatch.setattr("jaxprof.hlo.kernels.notices._AT_ONCE", 10)
    assert shapes_if_whole(main) == whole
    for there, broken in (("reduce(x, z)", "reduce(x, y)"), ("=add", "=sub"), ("constant(0)\n", "constant(0)\n\n")):
        assert shapes_if_whole(module(_WHOLE.replace(there, broken))["main"]) is None, broken


def test_open_comment_in_a_layout_is_unreadable():
    assert "unreadable" in codes(module(_WHOLE.replace("x = f32[8,16]{1,0}", "x = f32[8,16]{/*1,0}")))


def test_text_that_is_cut_off_anywhere_is_truncated():
    for end in range(len("HloModule m"), len(_WHOLE.rstrip()), 3):
        assert codes(module(_WHOLE[:end])) & {"truncated", "no-entry"}, end


def test_notices_of_a_text_without_an_entry():
    before = module(_WHOLE[: _WHOLE.index("ENTRY")])
    assert (codes(before), kernels(before)) == ({"no-entry"}, ())
    by_hand = _WHOLE.replace("ENTRY ", "")
    assert codes(module(by_hand), serious=False) == {"entry-assumed"}
    assert [kernel.name for kernel in kernels(module(by_hand))] == ["r"]
    without_layout = "HloModule m, is_scheduled=true\n" + _ADD + _ADD.replace("add {", "other {")
    assert codes(module(without_layout)) == {"no-entry"}


@pytest.mark.parametrize(
    "sizes",
    [
        "999999999999,999999999999,999999999",
        "99999999999999999999",
        ",".join(["999999999999999"] * 40),
        "8,,2",
        "8,",
        ",8",
        "<=",
        "=8",
        "<8",
    ],
)
def test_impossible_array_has_a_notice_and_no_figures(sizes):
    found = written(parameters(f"f32[{sizes}]") + f"ROOT r = f32[{sizes}] add(p0, p0)")
    assert codes(found) == {"unreadable"}
    assert [(kernel.flops, kernel.bytes) for kernel in kernels(found)] == [(None, 0)]


def test_cost_beyond_the_range_of_a_float_is_unknown():
    window, shape = "x".join(["999999999999999999"] * 20), f"f32[{','.join(['2'] * 20)}]"
    inside = f"z = f32[] constant(0)\nROOT r = {shape} reduce-window(p0, z), window={{size={window}}}, to_apply=add"
    assert only_kernel(parameters(shape) + inside).flops is None


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (1, "1 part cannot be read (line 11)"),
        (2, "2 parts cannot be read (line 11, 12)"),
        (5, "5 parts cannot be read (line 11, 12, 13 and 2 more)"),
    ],
)
def test_parts_that_cannot_be_read(lines, message):
    line = "z = f32[] constant(0)"
    (found,) = notices(module(_WHOLE.replace(line, "what is this\n  " * lines + line)))
    assert found.code == "unreadable"
    assert found.serious is True
    assert found.message.startswith(message)


_PRINTED = """HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[8,16]{1,0})->f32[8]{0}}

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %s = f32[] add(%a, %b), metadata={op_name="jit(f)/calls=%nobody"}
}

%inner (p: f32[8,16]) -> f32[8] {
  %p = f32[8,16]{1,0} parameter(0)
  %z = f32[] constant(0)
  ROOT %r = f32[8]{0} reduce(%p, %z), dimensions={1}, to_apply=%add
}

%one (t: (s32[], f32[8])) -> (s32[], f32[8]) {
  %t = (s32[], f32[8]{0}) parameter(0)
  ROOT %again = (s32[], f32[8]{0}) copy(%t)
}

ENTRY %main (x: f32[8,16], c: s32[]) -> f32[8] {
  %x = f32[8,16]{1,0} parameter(0)
  %c = s32[] parameter(1)
  %f = f32[8]{0} fusion(%x), kind=kInput, calls=%inner
  %pair = (s32[], f32[8]{0}) tuple(%c, %f)
  %chosen = (s32[], f32[8]{0}) conditional(%c, %pair, %pair), branch_computations={%one, %one}
  ROOT %g = f32[8]{0} get-tuple-element(%chosen), index=1
}
"""


def test_notices_of_a_whole_module_read_no_instruction(monkeypatch):
    monkeypatch.setattr(Execution, "launches", lambda execution: pytest.fail("the kernels were read"))
    # Only reading would show that the string that looks like a call is none.
    assert notices(module(_PRINTED.replace("%nobody", "%add"))) == ()


@pytest.mark.parametrize(
    ("old", "new", "code"),
    rows("""
        f32[8]{0} fusion  f99[8]{0} fusion             unknown-size
        copy(%t)          copy(%other)                 missing
        calls=%inner      calls=%outer                 missing
        {%one, %one}      {%one, %two}                 missing
        {%one, %one}      {%one, /*index=1*/%two}      missing
        add(%a, %b)       add(%a, %b                   unreadable
        fusion(%x)        fusion(f32[8,16]{1,0} %y)    missing
    """),
)
def test_scan_finds_each_wrong_word(old, new, code):
    assert old in _PRINTED
    assert codes(module(_PRINTED.replace(old, new)), serious=False) == {code}


def test_missing_operand_in_an_uncalled_computation():
    uncalled = "apart {\n  ROOT r = f32[] negate(lost)\n}\n\nENTRY main"
    (found,) = notices(module(_WHOLE.replace("ENTRY main", uncalled)))
    assert (found.code, found.message) == ("missing", "'lost' is used, but not in the text")
