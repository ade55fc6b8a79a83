"""A diff of HLO that says what was changed, and not what was renumbered, moved or reordered. Fingerprints that do not
depend on names, ids or order; and what changed between two modules."""

import re

import pytest

from hlo.kernels.programs import parameters, written
from jaxprof.hlo.fingerprint import Fingerprints
from jaxprof.hlo.text import parse
from jaxprof.hlo.text_difference import text_difference
from tables import rows

TEXT = """HloModule jit_f, is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }

%inner (p: f32[8], q: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %q = f32[8]{0} parameter(1)
  %s.1 = f32[8]{0} subtract(%p, %q)
  ROOT %t = f32[8]{0} tanh(%s.1)
}

%outer (p: f32[8]) -> f32[8] {
  %p.1 = f32[8]{0} parameter(0)
  ROOT %n = f32[8]{0} negate(%p.1)
}

ENTRY %main (x: f32[8], y: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  %y = f32[8]{0} parameter(1)
  %fusion.1 = f32[8]{0} fusion(%x, %y), kind=kLoop, calls=%inner, metadata={op_name="jit(f)/tanh"}
  %fusion.2 = f32[8]{0} fusion(%y), kind=kLoop, calls=%outer
  %a = f32[8]{0} add(%fusion.1, %fusion.2)
  %b = f32[8]{0} exponential(%a)
  ROOT %c = f32[8]{0} sine(%b)
}
"""


def _diff(after, before=TEXT):
    return text_difference(parse.modules(before)[0], parse.modules(after)[0])


def _said(found):
    return [
        (line.status, line.before.name if line.before else "", line.after.name if line.after else "")
        for computation in found.computations
        for line in computation.lines
        if line.status != "same"
    ]


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        (r"%fusion\.1", "%fusion.70"),
        (r"%inner", "%inner.clone.3"),
        (r'op_name="jit\(f\)/tanh"', 'op_name="jit(g)/tanh"'),
        (r"%(a|b)\b", r"%\1.9"),
        (r"is_scheduled=true, ", ""),
        (r"(  %x = .*\n)(  %y = .*\n)", r"\2\1"),
        (r"(  %fusion\.1 = .*\n)(  %fusion\.2 = .*\n)", r"\2\1"),
        (r"(%a = [^\n]*)\n", r'\1, backend_config={"operation_queue_id":"7"}, frontend_attributes={k="v"}' + "\n"),
    ],
)
def test_names_numbers_places_and_order_are_no_difference(pattern, replacement):
    other = re.sub(pattern, replacement, TEXT)
    assert other != TEXT
    assert not _diff(other).differs
    assert _print(parse.module(other)) == _print(parse.module(TEXT))


def test_another_schedule_is_told_where_both_have_one():
    other = re.sub(r"(  %fusion\.1 = .*\n)(  %fusion\.2 = .*\n)", r"\2\1", TEXT)
    assert _diff(other).reordered == (("main", "fusion.1", "fusion.2"),)
    assert _diff(other, TEXT.replace("is_scheduled=true, ", "")).reordered == ()
    assert _diff(re.sub(r"(  %x = .*\n)(  %y = .*\n)", r"\2\1", TEXT)).reordered == (), "parameters do not run"


def test_tiles_are_a_setting_and_no_other_computation():
    config = ', backend_config={"fusion_backend_config":{"kind":"__triton","block":{"num_warps":"%s"}}}'
    one, other = (TEXT.replace("calls=%inner", "calls=%inner" + config % warps) for warps in (4, 8))
    found = _diff(other, one)
    assert not found.differs
    assert [(each.kernel, each.name, each.before, each.after) for each in found.settings] == [
        ("fusion.1", "fusion_backend_config.block.num_warps", "4", "8")
    ]
    assert _diff(one, one + "\n").settings == ()


_WITH_CODE = {
    "tpu": '{{"custom_call_config": {{"body": "{code}", "grid": "{grid}"}}}}',
    "triton": '{{grid_x = {grid} : i32, ir = "{code}", name = "add", num_warps = 4 : i32}}',
    "quoted": '"{{grid_x = {grid} : i32, ir = \\"{code}\\", num_warps = 4 : i32}}"',
    "long": '{{"grid":"{grid}","kernel":"{code}"}}',
}
"""How custom kernels hold their code, which has line numbers in it, beside their settings."""


@pytest.mark.parametrize("grid", ["2", "4"])
@pytest.mark.parametrize("form", _WITH_CODE)
def test_difference_of_a_custom_kernels_code_and_settings(form, grid):
    def kernel(code, grid):
        config = _WITH_CODE[form].format(code=code * (100 if form == "long" else 1), grid=grid)
        call = f'custom-call(%a), custom_call_target="kernel", backend_config={config}'
        return TEXT.replace("exponential(%a)", call)

    found = _diff(kernel("line14", grid), kernel("line10", "2"))
    assert (found.differs, found.code) == (grid != "2", ("b",))


def test_difference_shows_where_a_change_was_made():
    found = _diff(TEXT.replace("exponential(", "log(").replace("%a = ", "%a.4 = ").replace("(%a)", "(%a.4)"))
    assert _said(found) == [("gone", "b", ""), ("new", "", "b")]
    (computation,) = found.computations
    assert computation.computation.either.name == "main"


def test_difference_inside_a_fusion_leaves_its_caller():
    found = _diff(TEXT.replace("subtract(%p, %q)", "subtract(%q, %p)"))
    assert [one.computation.either.name for one in found.computations] == ["inner"]
    assert _said(found) == [("changed", "s.1", "s.1")]


def test_a_lost_donation_is_in_the_header():
    found = _diff(TEXT.replace(", input_output_alias={ {}: (0, {}, may-alias) }", ""))
    assert [(one.name, bool(one.before), one.after) for one in found.header] == [("input_output_alias", True, "")]
    assert found.computations == ()


def test_a_new_and_a_gone_computation_are_listed_whole():
    without = re.sub(r"%outer .*?\n}\n\n", "", TEXT, flags=re.DOTALL)
    without = without.replace("fusion(%y), kind=kLoop, calls=%outer", "negate(%y)")
    found = {one.computation.either.name: one for one in _diff(TEXT, without).computations}
    assert found["outer"].computation.status == "new"
    assert [line.after.name for line in found["outer"].lines if line.after] == ["p.1", "n"]
    gone = {one.computation.either.name: one for one in _diff(without, TEXT).computations}
    assert gone["outer"].computation.status == "gone"


_TEXT = """
    added {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    ENTRY main {
      x = f32[8,4]{1,0} parameter(0)
      y = f32[8,4]{1,0} parameter(1)
      c = f32[] constant(0)
      m = f32[8,4]{1,0} multiply(x, y)
      n = f32[8,4]{1,0} negate(x)
      d = f32[8,4]{1,0} subtract(m, n)
      ROOT r = f32[8]{0} reduce(d, c), dimensions={1}, to_apply=added
    }
"""


def _print(module):
    return Fingerprints(module).of(module.entry.name)


def test_what_is_computed_counts():
    for old, new in rows("""
        negate          abs
        {1,0}           {0,1}
        f32[8,4]        f32[8,5]
        constant(0)     constant(1)
        subtract(m, n)  subtract(n, m)
        dimensions={1}  dimensions={0}
        # in the computation that is called
        add(a, b)       maximum(a, b)
        multiply(x, y)  multiply(x, x)
        parameter(1)    parameter(2)
    """):
        assert old in _TEXT
        assert _print(written(_TEXT.replace(old, new))) != _print(written(_TEXT))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ROOT n", "o = token[] outfeed(p0, t)\nROOT n"),  # nothing depends on it
        ('"mode":"a"', '"mode":"b"'),
    ],
)
def test_side_effects_and_the_settings_of_a_library_call_count(old, new):
    text = parameters("f32[8]") + (
        't = token[] after-all()\nc = f32[8] custom-call(p0), custom_call_target="f", backend_config={"mode":"a"}\n'
        "ROOT n = f32[8] negate(c)"
    )
    assert _print(written(text.replace(old, new))) != _print(written(text))
