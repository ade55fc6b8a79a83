# ruff: noqa: E501 - an instruction of HLO is one line
"""Which instructions are kernels, in which order, and how often they run. Who takes part in a collective, in each of the
ways in which XLA writes it, and what is exchanged."""

import pytest

from hlo.kernels.programs import fused, written
from jaxprof.hlo.kernels.collectives import collectives
from jaxprof.hlo.kernels.kernels import kernels, totals, with_running
from tables import rows

_COUNTED_LOOP = """
    body {{
      state = (s32[], f32[8]) parameter(0)
      i = s32[] get-tuple-element(state), index=0
      x = f32[8] get-tuple-element(state), index=1
      step = s32[] constant({step})
      next = s32[] add(i, step)
      y = f32[8] negate(x)
      ROOT out = (s32[], f32[8]) tuple(next, y)
    }}

    condition {{
      state = (s32[], f32[8]) parameter(0)
      i = s32[] get-tuple-element(state), index=0
      limit = s32[] constant({limit})
      ROOT go = pred[] compare({compared}), direction={direction}
    }}

    ENTRY main {{
      x = f32[8] parameter(0)
      zero = s32[] constant({start})
      first = (s32[], f32[8]) tuple(zero, x)
      loop = (s32[], f32[8]) while(first), condition=condition, body=body{known}
      ROOT result = f32[8] get-tuple-element(loop), index=1
    }}
"""


def _counts(text):
    return {kernel.name: kernel.count for kernel in kernels(written(text))}


_KNOWN = ', backend_config={"known_trip_count":{"n":"7"}}'
_KNOWN_AS_TEXT = r', backend_config="{\"known_trip_count\":{\"n\":\"6\"}}"'


@pytest.mark.parametrize(
    ("start", "step", "limit", "direction", "known", "expected"),
    [
        *rows("""
            0   1   10  LT  -  10
            0   3   10  LT  -  4
            10  -1  0   GT  -  10
            10  -2  1   GE  -  5
            0   2   10  NE  -  5
            0   1   -5  LT  -  0
            # never meets its limit
            0   3   10  NE  -  None
            # runs until it overflows
            0   -1  10  LT  -  None
            0   0   10  LT  -  None
        """),
        (0, 1, 10, "LT", _KNOWN, "7"),  # what XLA says comes first
        (0, 1, 10, "LT", _KNOWN_AS_TEXT, "6"),
    ],
)
def test_trip_counts(start, step, limit, direction, known, expected):
    def text(compared, direction):
        return _COUNTED_LOOP.format(
            start=start, step=step, limit=limit, direction=direction, compared=compared, known=known
        )

    assert str(_counts(text("i, limit", direction))["y"]) == expected
    turned = text("limit, i", direction.translate(str.maketrans("LG", "GL"))).replace("add(i, step)", "add(step, i)")
    assert str(_counts(turned)["y"]) == expected
    if not known:
        for unknown in ("add(i, i)", "add(step, half)", "add(half, half)", "add(step, i, i)", "add(step)"):
            damaged = turned.replace("next =", "half = f32[] constant(0.5)\n      next =").replace(
                "add(step, i)", unknown
            )
            assert _counts(damaged)["y"] is None
        assert _counts(turned.replace("limit, i)", "limit, i, i)"))["y"] is None


def test_nested_loops_multiply_and_conditions_run_once_more():
    text = """
        inner_body {
          p = (s32[], f32[8]) parameter(0)
          a = s32[] get-tuple-element(p), index=0
          x = f32[8] get-tuple-element(p), index=1
          deep = f32[8] negate(x)
          ROOT t = (s32[], f32[8]) tuple(a, deep)
        }

        inner_condition {
          p = (s32[], f32[8]) parameter(0)
          x = f32[8] get-tuple-element(p), index=1
          ROOT again = pred[] custom-call(x), custom_call_target="ask"
        }

        outer_body {
          p = (s32[], f32[8]) parameter(0)
          inner = (s32[], f32[8]) while(p), condition=inner_condition, body=inner_body, backend_config={"known_trip_count":{"n":"5"}}
          ROOT done = (s32[], f32[8]) tuple(inner, inner)
        }

        outer_condition {
          p = (s32[], f32[8]) parameter(0)
          x = f32[8] get-tuple-element(p), index=1
          ROOT more = pred[] custom-call(x), custom_call_target="ask"
        }

        ENTRY main {
          p = (s32[], f32[8]) parameter(0)
          ROOT outer = (s32[], f32[8]) while(p), condition=outer_condition, body=outer_body, backend_config={"known_trip_count":{"n":"3"}}
        }
    """
    assert _counts(text) == {"more": 4, "again": 18, "deep": 15}
    # The runtime of a GPU counts: in a profile of an H100 no condition was launched.
    assert _counts(text.replace('"ask"', '"__cublas$gemm"')) == {"deep": 15}


def test_free_instructions_are_not_kernels():
    text = """
        x = f32[8] parameter(0)
        c = f32[] constant(1)
        b = f32[2,4] bitcast(x)
        t = (f32[8], f32[2,4]) tuple(x, b)
        g = f32[8] get-tuple-element(t), index=0
        token = token[] after-all()
        id = u32[] partition-id()
        n = f32[8] negate(g)
        scratch = f32[8] custom-call(), custom_call_target="AllocateBuffer"
        j = f32[8] custom-call(n), custom_call_target="ConcatBitcast"
        ROOT o = (f32[8]) opt-barrier(j)
    """
    assert list(_counts(text)) == ["n"]


def test_half_of_a_complex_array_is_a_kernel_if_copied():
    text = """
        x = c64[8]{0:T(256)} parameter(0)
        here = f32[8]{0:T(256)} custom-call(x), custom_call_target="X64SplitLow"
        chip = f32[8]{0:T(256)S(1)} custom-call(x), custom_call_target="X64SplitHigh"
        ROOT both = c64[8]{0:T(256)} custom-call(chip, chip), custom_call_target="X64Combine"
    """
    assert list(_counts(text)) == ["chip", "both"]


def test_asynchronous_pairs_are_one_kernel():
    text = """
        wrapped {
          p = f32[64] parameter(0)
          ROOT gathered = f32[256] all-gather(p), replica_groups={{0,1,2,3}}, dimensions={0}
        }

        ENTRY main {
          x = f32[64] parameter(0)
          start = f32[64] all-reduce-start(x), replica_groups={{0,1,2,3}}, to_apply=add
          general = ((f32[64]), f32[256], u32[]) async-start(x), calls=wrapped
          move = (f32[64], f32[64], u32[]) copy-start(x)
          moved = f32[64] copy-done(move)
          g = f32[256] async-done(general)
          done = f32[64] all-reduce-done(start)
          sum = f32[64] add(done, moved)
          ROOT t = (f32[64], f32[256]) tuple(sum, g)
        }
    """
    found = {kernel.name: kernel for kernel in kernels(written(text))}
    assert {name: kernel.asynchronous for name, kernel in found.items()} == {
        "start": True, "general": True, "move": True, "sum": False,
    }  # fmt: skip
    assert [kernel.opcode for kernel in found.values()] == ["all-reduce", "all-gather", "copy", "add"]
    assert found["start"].kind == "all-reduce"
    assert found["start"].flops == 64
    assert found["start"].bytes == 512
    assert (found["general"].bytes_written, found["move"].bytes) == (1024, 512)


def collective(instruction, header="", shape="f32[1024]"):
    text = f"x = f32[1024]{{0}} parameter(0)\nROOT c = {shape}{{0}} {instruction}"
    (found,) = collectives(written(text, f"is_scheduled=true{header}"))
    return found


def test_how_groups_are_read():
    for groups, header, found in rows("""
        {{0,1,2,3},{4,5,6,7}}                      -  0 1 2 3, 4 5 6 7
        [2,4]<=[8]                                 -  0 1 2 3, 4 5 6 7
        [4,2]<=[2,4]T(1,0)                         -  0 4, 1 5, 2 6, 3 7
        mesh['data'=4,'model'=2] {'data'}          -  0 2 4 6, 1 3 5 7
        mesh['data'=4,'model'=2] {'data','model'}  -  0 1 2 3 4 5 6 7
        mesh['axis_0'=2,'axis_1'=4], device_ids=([4,2]T(1,0)) {'axis_0'}  -  0 1, 2 3, 4 5, 6 7
        {}  , replica_count=2, num_partitions=2    0 1 2 3
        {}                                         -  -
        [0,4]<=[0]                                 -  -
        [4,2]<=[2,4]T(0,0)                         -  -
        mesh['x'=2] {'x','x'}                      -  -
        mesh['x'=2,'y'=4], device_ids=([2,2]) {'x'}  -  -
        {{},{}}                                    -  -
    """):
        read = collective(f"all-reduce(x), channel_id=1, replica_groups={groups}, to_apply=add", header)
        expected = tuple(tuple(map(int, group.split())) for group in found.split(", ")) if found else None
        assert read.groups == expected
        assert read.group_size == (len(expected[0]) if expected else None)
        assert (read.opcode, read.bytes) == ("all-reduce", 4096)


def test_a_permute_has_its_pairs_and_no_group():
    for pairs, read in (("{{0,1},{1,0}}", ((0, 1), (1, 0))), ("{}", None)):
        found = collective(f"collective-permute(x), channel_id=1, source_target_pairs={pairs}")
        assert found.opcode == "collective-permute"
        assert found.groups == read
        assert found.group_size is None
        assert found.bytes == 4096


@pytest.mark.parametrize(("kept", "opcode"), [(256, "reduce-scatter"), (1024, "all-reduce")])
def test_fusion_keeping_a_part_is_a_reduce_scatter(kept, opcode):
    inside = f"""
        r = f32[1024]{{0}} all-reduce(p0), channel_id=1, replica_groups=[1,4]<=[4], to_apply=add
        ROOT mine = f32[{kept}]{{0}} dynamic-slice(r, p1), dynamic_slice_sizes={{{kept}}}
    """
    (found,) = collectives(written(fused(inside, "f32[1024]{0}", "u32[]", kind="kCustom")))
    assert found.opcode == opcode
    assert found.bytes == 4096
    assert found.groups == ((0, 1, 2, 3),)


_SMALL = """
    add {{
      a = f32[] parameter(0)
      ROOT b = f32[] negate(a)
    }}

    body {{
      state = (s32[], f32[8]) parameter(0)
      i = s32[] get-tuple-element(state), index=0
      x = f32[8] get-tuple-element(state), index=1
      one = s32[] constant(1)
      next = s32[] add(i, one)
      y = f32[8] {body}
      ROOT out = (s32[], f32[8]) tuple(next, y)
    }}

    condition {{
      state = (s32[], f32[8]) parameter(0)
      i = s32[] get-tuple-element(state), index=0
      limit = s32[] constant(200)
      ROOT go = pred[] compare(i, limit), direction=LT
    }}

    outlined {{
      first = (s32[], f32[8]) parameter(0)
      ROOT loop = (s32[], f32[8]) while(first), condition=condition, body=body, metadata={{op_name="jit(f)/while"}}, backend_config={{"known_trip_count":{{"n":"200"}}}}
    }}

    one {{
      p = f32[8] parameter(0)
      ROOT negated = f32[8] negate(p)
    }}

    two {{
      p = f32[8] parameter(0)
      ROOT kept = f32[8] {second}
    }}

    ENTRY main {{
      x = f32[8] parameter(0)
      zero = s32[] constant(0)
      first = (s32[], f32[8]) tuple(zero, x)
      call.16 = (s32[], f32[8]) call(first), to_apply=outlined{marks}, metadata={{op_name="jit(f)/while" source_file="/home/me/f.py" source_line=4}}
      ROOT result = f32[8] get-tuple-element(call.16), index=1
    }}
"""
_MARKS = ', frontend_attributes={xla_cpu_small_call="true"}'
_BRANCH = "conditional(i, x, x), branch_computations={one, two}"


def _named(text, *names):
    """The kernels, with the loops, branches and calls of these names."""
    return {kernel.name: kernel for kernel in with_running(written(text), names)}


def test_a_small_call_is_one_kernel_unless_it_has_loops():
    """XLA:CPU makes one function of each; what a loop does is listed."""
    for marks in (_MARKS, ""):
        text = _SMALL.format(body="negate(x)", second="negate(p)", marks=marks)
        assert [kernel.name for kernel in kernels(written(text))] == ["go", "next", "y"]
    text = """
        small {
          p = f32[8] parameter(0)
          a = f32[8] add(p, p)
          ROOT n = f32[8] negate(a)
        }

        ENTRY main {
          x = f32[8] parameter(0)
          ROOT call = f32[8] call(x), to_apply=small, frontend_attributes={xla_cpu_small_call="true"}
        }
    """
    (call,) = kernels(written(text))
    assert call.name == "call"
    assert call.count == 1
    assert call.flops == 16
    assert [kernel.name for kernel in kernels(written(text.replace("xla_cpu_small_call", "other")))] == ["a", "n"]


def test_cost_of_a_loop_in_a_capture_is_that_of_its_body():
    text = _SMALL.format(body="negate(x)", second="negate(p)", marks="")
    named = _named(text, "loop", "call.16", "y", "no such op")
    assert [*named] == ["go", "next", "y", "call.16", "loop"]
    inside = sum(named[name].total_flops for name in ("go", "next", "y"))
    assert named["loop"].flops == named["call.16"].flops == inside
    assert [name for name, kernel in named.items() if kernel.runs_kernels] == ["call.16", "loop"]
    assert named["loop"].computations_inside == ["condition", "body"]
    assert totals(named["loop"].instruction.computation.module).flops == inside


@pytest.mark.parametrize(("second", "flops"), [("negate(p)", 8.0), ("copy(p)", None)])
def test_the_cost_of_branches_is_known_if_they_are_alike(second, flops):
    named = _named(_SMALL.format(body=_BRANCH, second=second, marks=""), "y", "loop")
    assert named["y"].kind == "branch"
    assert named["y"].flops == flops
    assert named["y"].unsized == (flops is None)
    assert (named["loop"].flops is None) == (flops is None)
