"""Every reason has a pair: a program in which it appears, and the edit that removes it. Both are compiled here, but for
those that a CPU module cannot show."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from hlo.kernels.programs import compiled, parameters, result_of, written
from jaxprof.hlo.files import with_reasons
from jaxprof.hlo.kernels.barriers import REASONS, barriers


def _updated(x, u, i):
    return lax.dynamic_update_slice(jnp.tanh(x), u, (i, 0))


_UPDATE = "f32[512,512] f32[4,512] s32[]"
_PAIRS = {
    "control-flow": (
        (lambda x: lax.fori_loop(0, 100, lambda _, c: c * 2 + 1, jnp.sin(x)), "f32[512,512]"),
        (lambda x: (jnp.sin(x) * 2 + 1) * 2 + 1, "f32[512,512]"),
    ),
    "whole-array": (  # sorting to find the largest
        (lambda x: jnp.sort(x)[:, -1], "f32[512,512]"),
        (lambda x: jnp.max(x, 1), "f32[512,512]"),
    ),
    "buffer-copy": (  # the old value is returned as well
        (lambda x, u, i: (jnp.tanh(x), _updated(x, u, i)), _UPDATE),
        (_updated, _UPDATE),
    ),
    "scatter": (
        (lambda x, i, u: x.at[i].add(jnp.sin(u)), "f32[512,512] s32[100] f32[100,512]"),
        (lambda x, u: x + jnp.sin(u), "f32[512,512] f32[512,512]"),
    ),
    "several-users": (  # a softmax, or only its denominator
        (lambda x: (lambda e: e / e.sum(-1, keepdims=True))(jnp.exp(x)), "f32[512,512]"),
        (lambda x: jnp.exp(x).sum(-1), "f32[512,512]"),
    ),
    "program-output": (
        (lambda x: (lambda y: (y, jnp.tanh(y).sum()))(jnp.sin(x)), "f32[512,512]"),
        (lambda x: jnp.tanh(jnp.sin(x)).sum(), "f32[512,512]"),
    ),
    "recomputation": (  # one exponential for each row, or for each element
        (lambda x, y: jnp.exp(x)[:, None] * y, "f32[512] f32[512,512]"),
        (lambda x, y: jnp.exp(x) * y, "f32[512,512] f32[512,512]"),
    ),
    "not-told": ((lambda x: lax.associative_scan(jnp.add, x), "f32[64,8]"), (lambda x: x + x, "f32[64,8]")),
}


def _reasons(module):
    return {barrier.reason for barrier in barriers(module)}


@pytest.mark.parametrize("reason", _PAIRS)
def test_a_barrier_appears_and_the_edit_removes_it(reason):
    (with_it, arguments), (without_it, other_arguments) = _PAIRS[reason]
    assert reason in _reasons(compiled(with_it, arguments))
    assert reason not in _reasons(compiled(without_it, other_arguments))


_DUMP = """fusion_steps {
  update_priority {
    producer_name: "y"
    consumer_names: "z"
    us_fused: 1.5
    us_unfused: 4.5
  }
}
fusion_steps {
  producer_ineligible {
    producer_name: "y"
    reason: "%s"
  }
}
gpu_device_info {
}
"""
_BEHIND = "x = f32[64,64] parameter(0)\ny = f32[64,64] negate(x)\nROOT z = f32[64,64] "
_PRODUCT = "dot(y, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def _of_dump(dump, used="multiply(y, y)"):
    (barrier,) = barriers(written(with_reasons(f"ENTRY main {{\n{_BEHIND}{used}\n}}\n", dump)))
    return barrier


def test_the_last_word_of_xla_is_the_reason():
    barrier = _of_dump(_DUMP % "no valid tilings found")
    assert (barrier.reason, barrier.stated) == ("stated", "no valid tilings found")
    assert "XLA: no valid tilings found" in barrier.words
    barrier = _of_dump(_DUMP % "the consumer is not fusible", _PRODUCT)
    assert (barrier.reason, barrier.stated) == ("matrix-product", "the consumer is not fusible"), (
        "said of any such kernel"
    )


@pytest.mark.parametrize(
    "dump",
    [
        "",  # none
        _DUMP.partition("fusion_steps {\n  producer_ineligible")[0],  # fusing would have paid: no reason against it
        (_DUMP % "x").replace("gpu_device_info", 'fusion_steps {\n  fusion {\n    producer_name: "y"\n  }\n}\ngpu'),
        (_DUMP % "x").replace('"y"', '"other"'),
    ],
)
def test_without_its_word_the_reason_is_derived(dump):
    assert (_of_dump(dump).reason, _of_dump(dump).stated) == ("not-told", "")


_ON_CPU = ', backend_config={"outer_dimension_partitions":["2"]}'


def _sum_of_parts(
    primitive,
    made="dot(a, b), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, \
            rhs_contracting_dims={1}",
    end="abs(r)",
):
    """A sum over the first dimension of `made`, whose `primitive` may be that of a product, and what follows in it."""
    return f"""
        summing {{
          p = f32[16,8,8] parameter(0)
          zero = f32[] constant(0)
          r = f32[8,8] reduce(p, zero), dimensions={{0}}, to_apply=add, metadata={{op_name="jit(f)/{primitive}"}}
          ROOT e = f32[8,8] {end}, metadata={{op_name="jit(f)/abs"}}
        }}

        ENTRY main {{
          a = f32[16,8,32] parameter(0)
          b = f32[16,32,8] parameter(1)
          y = f32[16,8,8] {made}
          sum = f32[8,8] fusion(y), kind=kInput, calls=summing, metadata={{op_name="jit(f)/abs"}}
          ROOT out = f32[8,8] sort(sum), dimensions={{0}}, to_apply=less
        }}
    """


def _copied(width):
    """Rows written behind each other; of one element each, nothing moves."""
    row = f"f32[64,{width}]"
    return f"x = {row}{{1,0}} parameter(0)\ny = {row}{{1,0}} negate(x)\nROOT z = {row}{{0,1}} copy(y)"


def _joined(along, config):
    made = f"y = f32[128,128]{{1,0}} concatenate(x, x), dimensions={{{along}}}"
    return f"x = f32[64,64]{{1,0}} parameter(0)\n{made}\nROOT z = f32[128,128]{{1,0}} negate(y){config}"


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        (_sum_of_parts("dot_general"), {"split-k"}),
        (_sum_of_parts("reduce_sum"), {"matrix-product", "reduction"}),
        (
            _sum_of_parts("dot_general", "gather(a, b), slice_sizes={1,8,8}"),
            {"reduction", "not-told"},
        ),  # a sum of products itself
        (_copied(8), {"layout"}),
        (_copied(1), {"buffer-copy"}),
        (_joined(1, _ON_CPU), {"cpu-rule"}),
        (_joined(0, _ON_CPU), {"not-told"}),
        (_joined(1, ""), {"not-told"}),  # not known to be a CPU's
        (_BEHIND + "all-reduce(y), replica_groups={}, to_apply=add", {"communication"}),
        (_BEHIND + "add(y, y)", {"not-told"}),
        (_BEHIND + _PRODUCT, {"matrix-product"}),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(sorted(value)),
)
def test_reasons_that_a_cpu_does_not_show_and_their_pairs(text, reasons):
    assert _reasons(written(text)) == reasons


def test_every_reason_has_a_pair():
    by_hand = {"communication", "matrix-product", "stated", "split-k", "cpu-rule", "layout"}
    assert {*_PAIRS, *by_hand, "reduction", "library-call"} == set(REASONS)


def _only(module, reason):
    (found,) = (barrier for barrier in barriers(module) if barrier.reason == reason)
    return found


def test_barrier_bytes_are_what_one_kernel_would_save():
    """The only reader: written and read once less. One of two readers: read once less. A result: it is written."""
    alone = _only(compiled(lambda x: jnp.sort(jnp.sin(x)), "f32[512,512]"), "whole-array")
    assert alone.bytes == 2 * 512 * 512 * 4
    (with_it, arguments), _ = _PAIRS["several-users"]
    assert {b.bytes for b in barriers(compiled(with_it, arguments)) if b.reason == "several-users"} == {512 * 512 * 4}
    (with_it, arguments), _ = _PAIRS["program-output"]
    assert _only(compiled(with_it, arguments), "program-output").bytes == 512 * 512 * 4


def test_the_list_begins_with_what_costs_most_and_has_no_scalars():
    found = barriers(compiled(lambda x: jax.nn.softmax(jnp.sort(x)), "f32[512,512]"))
    assert [barrier.bytes for barrier in found] == sorted((barrier.bytes for barrier in found), reverse=True)
    assert all(barrier.shape.rank for barrier in found)


def test_a_module_before_optimisation_has_no_barriers():
    assert barriers(written(_BEHIND + "negate(y)", header="num_partitions=1")) == ()


_ZERO = "z = f32[] constant(0)\n"
_SUM = f"{_ZERO}r = ROW reduce(p0, z), dimensions={{1}}, to_apply=add\n"
_ONLY_SUM = _SUM.replace("r = ROW", "ROOT r = ROW")
_SPREAD = "b = BIG broadcast(p1), dimensions={0}\nROOT s = BIG subtract(p0, b)"
_FULL = "ROOT s = BIG multiply(p0, p1)"
_BOTH = f"{_SUM}e = BIG exponential(p0)\nROOT t = (ROW, BIG) tuple(r, e)"
_SEES_ALL = "window={size=1x511 pad=0_0x255_255}, to_apply=max"
_CALLED = """
inner {
 x = BIG parameter(0)
 z = f32[] constant(0)
 ROOT r = ROW reduce(x, z), dimensions={1}, to_apply=add
}

argmax {
  v0 = f32[] parameter(0)
  i0 = s32[] parameter(1)
  v1 = f32[] parameter(2)
  i1 = s32[] parameter(3)
  g = pred[] compare(v0, v1), direction=GT
  v = f32[] select(g, v0, v1)
  i = s32[] select(g, i0, i1)
  ROOT t = (f32[], s32[]) tuple(v, i)
}
"""


def _two(made, used, way="made"):
    """A fusion of these lines, another of what it makes beside the array that both read, and what lies on the way."""
    taken, on_the_way = (result_of(made), "") if way == "made" else (way.split(" ", 1)[0], f"way = {way}")
    return f"""{_CALLED}
producer {{
{parameters("BIG")}{made}
}}

consumer {{
{parameters("BIG", taken)}{used}
}}

ENTRY main {{
  x = BIG parameter(0)
  made = {result_of(made)} fusion(x), kind=kLoop, calls=producer
  {on_the_way}
  ROOT used = {result_of(used)} fusion(x, {"way" if on_the_way else "made"}), kind=kLoop, calls=consumer
}}
""".replace("BIG", "f32[64,256]").replace("ROW", "f32[64]")


_REDUCED = {
    "scaled and its root taken": _two(f"{_SUM}m = ROW multiply(r, r)\nROOT q = ROW rsqrt(m)", _SPREAD),
    "under another shape of as many": _two(f"{_SUM}ROOT q = f32[8,8] reshape(r)", _SPREAD, "ROW bitcast(made)"),
    "cast": _two(f"{_SUM}ROOT q = bf16[64] convert(r)", "c = ROW convert(p1)\n" + _SPREAD.replace("p1", "c")),
    "the first of two results": _two(_BOTH, _SPREAD, "ROW get-tuple-element(made), index=0"),
    "of a nested fusion": _two("ROOT f = ROW fusion(p0), kind=kLoop, calls=inner", _SPREAD),
    "in two steps": _two(
        f"{_ZERO}h = f32[64,16,16] bitcast(p0)\np = f32[64,16] reduce(h, z), dimensions={{2}}, to_apply=add\n"
        "ROOT r = ROW reduce(p, z), dimensions={1}, to_apply=add", _SPREAD
    ),
    "the place of the greatest": _two(
        f"{_ZERO}k = s32[] constant(0)\ni = s32[64,256] iota(), iota_dimension=1\n"
        "r = (ROW, s32[64]) reduce(p0, i, z, k), dimensions={1}, to_apply=argmax\n"
        "ROOT g = ROW get-tuple-element(r), index=0", _SPREAD
    ),
    "used by another reduction": _two(
        _ONLY_SUM, f"{_ZERO}ROOT q = f32[] reduce(p1, z), dimensions={{0}}, to_apply=add"
    ),
    "spread as TPUs have it": _two(f"{_ZERO}ROOT w = BIG reduce-window(p0, z), {_SEES_ALL}", _FULL),
}  # fmt: skip
_NOT_REDUCED = {
    "a softmax's numerator": _two(
        f"{_SUM}b = BIG broadcast(r), dimensions={{0}}\nd = BIG subtract(p0, b)\nROOT e = BIG exponential(d)", _FULL
    ),
    "the reduction is spread inside": _two(f"{_SUM}ROOT b = BIG broadcast(r), dimensions={{0}}", _FULL),
    "the other of two results": _two(_BOTH, _FULL, "BIG get-tuple-element(made), index=1"),
    "pooling": _two(
        f"{_ZERO}ROOT w = f32[64,128] reduce-window(p0, z), window={{size=1x2 stride=1x2}}, to_apply=max",
        "ROOT q = f32[64,128] exponential(p1)",
    ),
    "a running sum": _two(
        f"{_ZERO}ROOT w = BIG reduce-window(p0, z), window={{size=1x256 pad=0_0x255_0}}, to_apply=add", _FULL
    ),
    "the consumer reduces": _two("ROOT e = BIG exponential(p0)", _ONLY_SUM.replace("p0", "p1")),
    "a scalar of a reduction scales": _two(
        f"{_ZERO}r = f32[] reduce(p0, z), dimensions={{0,1}}, to_apply=add\nb = BIG broadcast(r), dimensions={{}}\n"
        "ROOT m = BIG multiply(p0, b)", _FULL
    ),
    "a spread reduction is taken off": _two(
        f"{_ZERO}w = BIG reduce-window(p0, z), {_SEES_ALL}\nROOT d = BIG subtract(p0, w)", _FULL
    ),
    "a reduction whose result nobody takes": _two(f"{_SUM}ROOT n = BIG negate(p0)", _FULL),
}  # fmt: skip

_SQUARE = "f32[64,64]{1,0}"
_DOT = "dot(made, made), lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def _beside(second, result=_SQUARE, computation=""):
    """An elementwise kernel, and another one that takes its result."""
    made = f"x = {_SQUARE} parameter(0)\nmade = {_SQUARE} exponential(x)"
    return f"{computation}\nENTRY main {{\n{made}\nROOT used = {result} {second}\n}}\n"


_DOT_INSIDE = _DOT.replace("made", "p0")


def _generated(kind, inside=_DOT_INSIDE, name="kCustom"):
    config = f', backend_config={{"fusion_backend_config":{{"kind":"{kind}"}}}}' if kind else ""
    held = f"held {{\n{parameters(_SQUARE)}ROOT r = {_SQUARE} {inside}\n}}\n"
    return _beside(f"fusion(made), kind={name}, calls=held{config}", computation=held)


_LIBRARY = {
    **{
        target: _beside(f'custom-call(made), custom_call_target="{target}"')
        for target in ("__cublas$gemm", "lapack_spotrf_ffi", "cusolver_getrf_ffi", "__cub$DeviceRadixSort")
    },
    **{kind: _generated(kind) for kind in ("__ynn_fusion", "__onednn_fusion", "__cudnn$fusion")},
    "an elementwise graph for a library": _generated("__ynn_fusion", "negate(p0)"),
}  # fmt: skip
_NO_LIBRARY = {
    "a Triton product": _generated("__triton_gemm"),
    "a Triton softmax": _generated("__triton", "negate(p0)"),
    "XLA's own copy": _generated("dynamic_memcpy", "copy(p0)"),
    "a product of a TPU": _generated("", name="kOutput"),
    "a product": _beside(_DOT),
    "a convolution": _beside("convolution(made, made), dim_labels=bf_io->bf"),
    "a sort": _beside("sort(made), dimensions={1}, to_apply=max"),
    "a factorisation that XLA writes out": _beside("cholesky(made), lower=true"),
    "elementwise": _beside("negate(made)"),
    "a copy in another order": _beside("copy(made)", "f32[64,64]{0,1}"),
}


def _between(text):
    return {barrier.reason for barrier in barriers(written(text)) if barrier.producer == "made"}


@pytest.mark.parametrize("name", [*_REDUCED, *_LIBRARY])
def test_the_array_results_from_a_reduction_or_a_library(name):
    assert _between((_REDUCED | _LIBRARY)[name]) == {"reduction" if name in _REDUCED else "library-call"}


@pytest.mark.parametrize("name", [*_NOT_REDUCED, *_NO_LIBRARY])
def test_and_what_only_looks_like_it_does_not(name):
    found = _between((_NOT_REDUCED | _NO_LIBRARY)[name])
    assert found
    assert ("reduction" if name in _NOT_REDUCED else "library-call") not in found
