# ruff: noqa: E501 - an instruction of HLO is one line
"""Where kernels came from: paths, directions, scopes, source lines; and the origins of all kernels at once, which are
those that each kernel has, whether its text is plain or not."""

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from hlo.kernels.programs import compiled, only_kernel, written
from jaxprof.base.files import is_own
from jaxprof.hlo.kernels.kernels import kernels
from jaxprof.hlo.kernels.origin import HloSourceLocation, OpPath, op_path, origin_columns, source_of
from jaxprof.hlo.source import Frame, own_and_library, own_files
from jaxprof.hlo.source_lines import LineOrigin, without_locations
from jaxprof.hlo.text.parse import module
from jaxprof.tui.hlo.modules import HloDocument
from tables import rows


def test_paths_are_taken_apart():
    for op_name, functions, scopes, primitive, direction in rows("""
        jit(f)/add                                    f          -                     add          -
        jit(f)/jit(main)/add                          f          -                     add          -
        jit(f)/transpose(jvp(attn))/dot_general       f          attn                  dot_general  backward
        jit(f)/model/layer_0/jit(softmax)/exp         f softmax  model layer_0 softmax  exp         -
        jit(f)/while/body/closed_call/mul             f          -                     mul          -
        jit(f)/vmap(jvp(a/b))/sin                     f          a b                   sin          forward
        jit(f)/transpose(jvp())/checkpoint/rematted_computation/dot_general  f  -      dot_general  backward
        jit(f)/bhqd,bhkd->bhqk/dot_general            f          bhqd,bhkd->bhqk       dot_general  -
        params['w']                                   -          -                     -            -
        -                                             -          -                     -            -
        # broken: never an error
        a(b/c(/d)                                     -          b c( d                -            -
    """):
        taken_apart = (tuple(functions.split()), tuple(scopes.split()), primitive, direction, "rematted" in op_name)
        assert op_path(op_name) == OpPath(*taken_apart)


def test_operation_is_named_by_its_layer():
    for op_name, label in (
        ("jit(f)/transpose(jvp(Model))/Dense_3/dot_general", "Model/Dense_3 ∂ matmul"),
        ("jit(f)/model/layer_0/jit(softmax)/exp", "layer_0/softmax exp"),
        ("jit(f)/jvp()/reduce_sum", "f reduce_sum"),
        ("params['w']", ""),
        ("", ""),
    ):
        assert op_path(op_name).label == label


def _line_of(marker):
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.rstrip().endswith(f"# {marker}"))


def test_origin_direction_of_a_scope():
    def loss(w, x):
        with jax.named_scope("hidden"):
            h = jnp.tanh(x @ w)  # the layer
        return (h**2).sum()

    found = kernels(compiled(jax.value_and_grad(loss), "f32[128,256] f32[64,128]"))
    products = [kernel for kernel in found if kernel.kind == "GEMM"]
    assert {kernel.path.direction for kernel in products} == {"forward", "backward"}
    assert {kernel.path.scopes for kernel in products} == {("hidden",)}
    for kernel in products:
        assert (Path(kernel.source.file).name, kernel.source.line) == ("test_origin.py", _line_of("the layer"))


def test_origins_of_a_fusion_begin_with_its_own():
    def several(x):
        y = x * 2  # doubled
        z = y + 1  # and one
        return jnp.sin(z)  # and its sine

    (kernel,) = kernels(compiled(several, "f32[1000]"))
    lines = [origin.source.line for origin in kernel.origins if origin.source]
    assert set(lines) == {_line_of("doubled"), _line_of("and one"), _line_of("and its sine")}
    assert lines[0] == _line_of("and its sine")
    assert kernel.op_name.endswith("/sin")
    assert kernel.origins[0].frame.function.endswith("several")


_LIBRARY = "/home/me/.venv/lib/python3.11/site-packages/flax/nnx/nn/linear.py"
_OWN = "/home/me/train.py"
_LAYERED = f"""
FileNames
1 "{_LIBRARY}"
2 "{_OWN}"

FunctionNames
1 "__call__"
2 "loss"

FileLocations
1 {{file_name_id=1 function_name_id=1 line=1194 end_line=1194 column=1 end_column=2}}
2 {{file_name_id=2 function_name_id=2 line=12 end_line=12 column=1 end_column=2}}
3 {{file_name_id=2 function_name_id=2 line=15 end_line=15 column=1 end_column=2}}
4 {{file_name_id=1 function_name_id=1 line=77 end_line=77 column=1 end_column=2}}

StackFrames
1 {{file_location_id=2 parent_frame_id=1}}
2 {{file_location_id=1 parent_frame_id=2}}
3 {{file_location_id=3 parent_frame_id=1}}
4 {{file_location_id=4 parent_frame_id=1}}

fused {{
  p = f32[8] parameter(0)
  a = f32[8] negate(p), metadata={{op_name="jit(f)/neg" stack_frame_id=4}}
  b = f32[8] exponential(a), metadata={{op_name="jit(f)/exp" stack_frame_id=2}}
  c = f32[8] sine(b), metadata={{op_name="jit(f)/sin" stack_frame_id=2}}
  ROOT d = f32[8] add(c, b), metadata={{op_name="jit(f)/add" stack_frame_id=3}}
}}

ENTRY main {{
  x = f32[8] parameter(0)
  ROOT f = f32[8] fusion(x), kind=kLoop, calls=fused, metadata={{op_name="jit(f)/neg" stack_frame_id=4}}
}}
"""


def test_a_fused_kernel_has_all_its_lines_the_users_own_first():
    kernel = only_kernel(_LAYERED)
    assert kernel.sources == (HloSourceLocation(_OWN, 12), HloSourceLocation(_OWN, 15), HloSourceLocation(_LIBRARY, 77))
    assert kernel.source == HloSourceLocation(_OWN, 12)
    assert kernel.op_name == "jit(f)/neg"
    assert [(origin.is_own, origin.frame.line if origin.frame else None) for origin in kernel.origins] == [
        (False, 77), (True, 12), (True, 12), (True, 15),
    ]  # fmt: skip
    assert [origin.library for origin in kernel.origins] == [None, *[HloSourceLocation(_LIBRARY, 1194)] * 2, None]


def test_what_only_started_the_program_is_no_line_of_it():
    engine, frozen = (Frame(file, "run", 9) for file in ("/x/jaxprof/engine/measure/stages.py", "<frozen runpy>"))
    library, own = (Frame(file, "call", 9) for file in (_LIBRARY, _OWN))
    assert own_and_library((engine, frozen)) == (None, None)
    assert own_and_library((library, engine)) == (library, None)
    assert own_and_library((library, own, engine)) == (own, library)


def test_line_origins_are_the_users_with_the_library():
    """As kernels have it: the text of the HLO, StableHLO with whole stacks."""
    document = HloDocument([module(_LAYERED)])
    line = next(at for at in range(document.line_count) if "exponential" in document.line(at))
    own, library = HloSourceLocation(_OWN, 12), HloSourceLocation(_LIBRARY, 1194)
    assert document.origin(line) == LineOrigin(own, "jit(f)/exp", library)
    stack = f"""    %0 = stablehlo.exp %arg0 : tensor<8xf32> loc(#loc7)
    %1 = stablehlo.exp %arg0 : tensor<8xf32> loc(#loc4)
#loc1 = loc("{_LIBRARY}":1194:4 to :37)
#loc2 = loc("{_OWN}":12:4 to :9)
#loc3 = loc("__call__"(#loc1))
#loc4 = loc("loss"(#loc2))
#loc5 = loc(callsite(#loc3 at #loc4))
#loc7 = loc("jit(f)/exp"(#loc5))"""
    assert without_locations(stack)[1] == {0: LineOrigin(own, "jit(f)/exp", library), 1: LineOrigin(own, "loss")}


def test_whose_file_it_is():
    for file, own in rows("""
        /home/me/train.py                                  True
        <ipython-input-3-abc>                              True
        # installed for editing: it is worked on
        /opt/src/flax/linear.py                            True
        /opt/conda/lib/python3.12/functools.py             False
        C:\\env\\Lib\\site-packages\\flax\\a.py              False
        <frozen runpy>                                     False
        /home/me/src/jaxprof/engine/measure/stages.py      False
        /home/jaxprof/train.py                             True
        # an example of an installed jaxprof has lines to show
        /v/lib/python3.12/site-packages/jaxprof/workloads/catalogue/arrays.py  True
    """):
        assert str(is_own(file)) == own


def assert_columns(found):
    columns = origin_columns(kernel.instruction for kernel in found)
    for number, kernel in zip(columns.which, found, strict=True):
        places = columns.different[number]
        assert places == tuple((origin.op_name, origin.source) for origin in kernel.origins), kernel
        assert source_of(places) == kernel.source


_FUSION = """
    inner {
      p = f32[8]{0} parameter(0), metadata={op_name="a parameter is no origin"}
      ROOT e = f32[8]{0} exponential(p), metadata={op_name="jit(f)/exp" source_file="/a.py" source_line=4}
    }

    outer {
      %p = f32[8]{0} parameter(0)
      %t = f32[8]{0} tanh(%p), METADATA
      ROOT %n = f32[8]{0} fusion(%t), kind=kLoop, calls=%inner, metadata={op_name="a nested fusion is no origin"}
    }

    ENTRY main {
      %x = f32[8]{0} parameter(0)
      ROOT %f = f32[8]{0} fusion(%x), OWN
    }
"""
_CALLED = 'kind=kLoop, calls=%outer, metadata={op_name="jit(f)/own" source_file="/b.py" source_line=7}'
_HELD = 'metadata={op_name="jit(f)/tanh" source_file="/lib/python3.11/site-packages/c.py" source_line=9}'


@pytest.mark.parametrize(
    ("own", "held", "expected"),
    [
        (_CALLED, _HELD, ["jit(f)/own", "jit(f)/tanh", "jit(f)/exp"]),
        ("kind=kLoop, calls=%no_such_computation", _HELD, []),
        ("output_to_operand_aliasing={{}: (0, {})}, " + _CALLED, _HELD, ["jit(f)/own", "jit(f)/tanh", "jit(f)/exp"]),
        (_CALLED, 'metadata={op_name="a \\"b\\" {c}" source_line=3}', ["jit(f)/own", 'a "b" {c}', "jit(f)/exp"]),
        (_CALLED, 'sharding={replicated}, metadata={op_name="a;b"}, frontend_attributes={x="metadata={y}"}', ["jit(f)/own", "a", "jit(f)/exp"]),
        (_CALLED, 'frontend_attributes={x=", metadata={op_name=y}"}, metadata={op_name="z"}', ["jit(f)/own", "z", "jit(f)/exp"]),
        (_CALLED, 'frontend_attributes={x="a",y="b"}', ["jit(f)/own", "jit(f)/exp"]),
        (_CALLED, 'metadata={op_name="a"}\n      this is no instruction, metadata={op_name="b"}', ["jit(f)/own", "a", "jit(f)/exp"]),
        (_CALLED, 'frontend_attributes={\n        x="y"\n      }, metadata={op_name="a"}', ["jit(f)/own", "a", "jit(f)/exp"]),
    ],
)  # fmt: skip
def test_however_they_are_written(own, held, expected):
    found = kernels(written(_FUSION.replace("OWN", own).replace("METADATA", held)))
    assert_columns(found)
    assert sorted(origin.op_name for origin in found[-1].origins) == sorted(expected)


def test_origins_of_a_kernel_with_damaged_metadata():
    damaged = _FUSION.replace('{op_name="jit(f)/exp"', '{op_)ame="jit(f)/exp"')
    found = kernels(written(damaged.replace("OWN", _CALLED).replace("METADATA", _HELD)))
    assert [origin.op_name for origin in found[-1].origins] == ["jit(f)/own", "jit(f)/tanh"]


TABLES = """HloModule m

FileNames
1 "/home/me/model.py"
2 "/usr/lib/python3.11/site-packages/flax/core.py"
3 "notes.txt"

FunctionNames
1 "step"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3}

StackFrames
1 {file_location_id=1 parent_frame_id=1}


ENTRY %main (x: f32[8]) -> f32[8] {
  ROOT %x = f32[8]{0} parameter(0), metadata={op_name="x \\n7 \\"/home/me/other.py\\"" stack_frame_id=1}
}
"""


def test_the_users_files_that_a_module_names():
    inline = f'{TABLES.partition("FileNames")[0]}  %y = f32[8]{{0}} sine(%x), metadata={{source_file="/home/me/a.py"}}'
    assert own_files(TABLES) == {"/home/me/model.py"}
    assert own_files(inline) == {"/home/me/a.py"}
    assert own_files("") == set()
