"""Attention against what else has two products around a softmax: routing in mixtures of experts, told by the axes; and
what is none in a kernel."""

import jax
import jax.numpy as jnp
import pytest

from hlo.kernels.programs import compiled, fused, lowered, only_kernel, written
from jaxprof.hlo.kernels.attention import scores_before
from jaxprof.hlo.kernels.cost.library import is_any_product, operand_axes, product_sizes
from jaxprof.hlo.kernels.dataflow import Value
from jaxprof.hlo.kernels.kinds import values_in


def _dot_product(q, k, v):
    return jax.nn.dot_product_attention(q, k, v)


def _causal(q, k, v):
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


def _two_dimensional(q, k, v):
    return jax.nn.softmax(q @ k.T / 8, axis=-1) @ v


def _turned(q, k, v):
    """The keys first: the softmax is over the rows."""
    return jnp.einsum("kq,kd->qd", jax.nn.softmax(k @ q.T, axis=0), v)


def _learned_queries(queries, x, weights):
    """As a Perceiver has it: all examples share the queries."""
    scores = jnp.einsum("sd,bmd->bsm", queries, x)
    return jnp.einsum("bsm,bmd->bsd", jax.nn.softmax(scores, axis=-1), x @ weights)


def _soft_mixture(x, slots, experts):
    """Puigcerver et al., From Sparse to Soft Mixtures of Experts (2023), algorithm 1, for a batch."""
    logits = jnp.einsum("bmd,ds->bms", x, slots)
    given = jnp.einsum("bmd,bms->bsd", x, jax.nn.softmax(logits, axis=1))
    made = jnp.tanh(jnp.einsum("bsd,sde->bse", given, experts))
    return jnp.einsum("bse,bms->bme", made, jax.nn.softmax(logits, axis=2))


def _soft_mixture_of_one(x, slots, experts):
    return _soft_mixture(x[None], slots, experts)[0]


def _gated_experts(x, router, experts):
    """Every expert for every token: a token has values of its own, and no keys."""
    return jnp.einsum("te,ted->td", jax.nn.softmax(x @ router), jnp.einsum("td,edf->tef", x, experts))


def _dispatch(x, router):
    """The softmax is over the experts, and the tokens are summed."""
    return jnp.einsum("te,td->ed", jax.nn.softmax(x @ router), x)


_PROGRAMS = {
    "jax.nn": (1, _dot_product, "f32[2,32,4,16] f32[2,48,4,16] f32[2,48,4,16]"),
    "two dimensions": (1, _two_dimensional, "f32[32,16] f32[48,16] f32[48,16]"),
    "as many queries as keys": (1, _two_dimensional, "f32[32,16] f32[32,16] f32[32,16]"),
    "keys first": (1, _turned, "f32[32,16] f32[48,16] f32[48,16]"),
    "learned queries": (1, _learned_queries, "f32[8,16] f32[2,48,16] f32[16,16]"),
    "grouped queries under a mask": (1, _causal, "f32[2,32,8,16] f32[2,32,2,16] f32[2,32,2,16]"),
    "a soft mixture": (0, _soft_mixture, "f32[2,40,16] f32[16,12] f32[12,16,16]"),
    "a soft mixture of one example": (0, _soft_mixture_of_one, "f32[40,16] f32[16,12] f32[12,16,16]"),
    "a soft mixture of equal sizes": (0, _soft_mixture, "f32[16,16,16] f32[16,16] f32[16,16,16]"),
    "gated experts": (0, _gated_experts, "f32[40,16] f32[16,12] f32[12,16,16]"),
    "dispatch": (0, _dispatch, "f32[40,16] f32[16,12]"),
}


def _products(module):
    for instruction in module.entry:
        values = values_in((instruction,)) if instruction.opcode == "fusion" else [Value(instruction)]
        yield from (value for value in values if is_any_product(value.instruction))


@pytest.mark.parametrize(
    ("name", "make"),
    [
        *((name, lowered) for name in _PROGRAMS if "grouped" not in name),
        *((name, compiled) for name in ("jax.nn", "a soft mixture", "grouped queries under a mask")),
    ],
)
def test_attention_by_axes_not_by_routing(name, make):
    attentions, function, arguments = _PROGRAMS[name]
    products = list(_products(make(function, arguments)))
    assert len(products) >= 2
    assert sum(scores_before(product) is not None for product in products) == attentions


def test_the_axes_of_products_of_all_kinds():
    entry = written("""
          a = f32[4,8,16]{2,1,0} parameter(0)
          b = f32[4,32,16]{2,1,0} parameter(1)
          d = f32[4,8,32]{2,1,0} dot(a, b), lhs_batch_dims={0}, lhs_contracting_dims={2}, \
            rhs_batch_dims={0}, rhs_contracting_dims={2}
          c = f32[4,8,32]{2,1,0} convolution(a, b), dim_labels=0bf_0oi->0bf, window={size=4 pad=3_3 rhs_reversal=1}
          w = f32[4,2,32]{2,1,0} convolution(a, b), dim_labels=b0f_io0->b0f, window={size=16}
          g = (f32[4,8,32]{2,1,0}, s8[64]{0}) custom-call(a, b), custom_call_target="__cublas$gemm", \
            backend_config={"gemm_backend_config":{"dot_dimension_numbers":{\
            "lhs_contracting_dimensions":["2"],"rhs_contracting_dimensions":["2"],\
            "lhs_batch_dimensions":["0"],"rhs_batch_dimensions":["0"]}}}
          o = f32[4,8,32]{2,1,0} custom-call(a, b), custom_call_target="__onednn$matmul"
          ROOT t = (f32[4,8,32]) tuple(d)
    """).entry  # fmt: skip
    for product in (Value(entry["d"]), Value(entry["c"]), Value(entry["g"], (0,))):
        assert product_sizes(product.instruction) == (4, 8, 32)
        for number in (0, 1):
            taken = operand_axes(product.instruction, number)
            assert (taken.contracting, taken.batch) == ((2,), (0,))
    for unknown in ("w", "o"):
        assert product_sizes(entry[unknown]) is None


_S, _V = "f32[64,64]{1,0}", "f32[64]{0}"
_DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
_FIRST = "s = S dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={1}"
_MAX = """i = f32[] constant(-inf)
 m = V reduce(LOGITS, i), dimensions={1}, to_apply=max
 mb = S broadcast(m), dimensions={0}
 d = S subtract(LOGITS, mb)"""
_EXP = "e = S exponential(d)"
_SUM = """z = f32[] constant(0)
 t = V reduce(e, z), dimensions={1}, to_apply=add
 tb = S broadcast(t), dimensions={0}"""
_RECIPROCAL = """z = f32[] constant(0)
 t = V reduce(e, z), dimensions={1}, to_apply=add
 one = f32[] constant(1)
 ones = V broadcast(one), dimensions={}
 tr = V divide(ones, t)
 tb = S broadcast(tr), dimensions={0}
 p = S multiply(e, tb)"""
_DIVIDE = "p = S divide(e, tb)"
_SECOND = f"ROOT o = S dot(WEIGHTS, p2), {_DOT}"
_SOFTMAX = (_MAX, _EXP, _SUM, _DIVIDE)
_SPREAD_MAX = """i = f32[] constant(-inf)
 w = S reduce-window(LOGITS, i), window={size=1x127 pad=0_0x63_63}, to_apply=max
 d = S subtract(LOGITS, w)"""
_MASKED = """c = S iota(), iota_dimension=0
 a = S iota(), iota_dimension=1
 l = pred[64,64]{1,0} compare(c, a), direction=GE
 n = S select(l, s, a)"""
_INNER = """inner {
 s = S parameter(0)
 i = f32[] constant(-inf)
 m = V reduce(s, i), dimensions={1}, to_apply=max
 mb = S broadcast(m), dimensions={0}
 d = S subtract(s, mb)
 ROOT e = S exponential(d)
}

"""
_SIGMOID = """n = S negate(s)
 e = S exponential(n)
 one = f32[] constant(1)
 ob = S broadcast(one), dimensions={}
 a = S add(e, ob)
 p = S divide(ob, a)"""


def _kernel(*lines, logits="s", weights="p"):
    text = _INNER + fused("\n".join(lines), "S", "S", "S", kind="kCustom")
    return (
        text.replace("LOGITS", logits).replace("WEIGHTS", weights).replace(" S ", f" {_S} ").replace(" V ", f" {_V} ")
    )


_ATTENTION = {
    "plain": _kernel(_FIRST, *_SOFTMAX, _SECOND),
    "masked": _kernel(_FIRST, _MASKED, *_SOFTMAX, _SECOND, logits="n"),
    "probabilities cast": _kernel(
        _FIRST, *_SOFTMAX, "pc = bf16[64,64]{1,0} convert(p)\npf = S convert(pc)", _SECOND, weights="pf"
    ),
    "by the reciprocal": _kernel(_FIRST, _MAX, _EXP, _RECIPROCAL, _SECOND),
    "divided at the end": _kernel(_FIRST, _MAX, _EXP, _SUM, f"u = S dot(e, p2), {_DOT}\nROOT o = S divide(u, tb)"),
    "turned before the second product": _kernel(
        _FIRST, *_SOFTMAX, f"pt = S transpose(p), dimensions={{1,0}}\nROOT o = S dot(p2, pt), {_DOT}"
    ),
    "with dropout": _kernel(_FIRST, *_SOFTMAX, "g = S multiply(p, p0)", _SECOND, weights="g"),
    "a part in a nested fusion": _kernel(
        _FIRST, "e = S fusion(s), kind=kLoop, calls=inner", _SUM, _DIVIDE, _SECOND
    ),
    "as TPUs write it": _kernel(
        "s = S convolution(p0, p1), dim_labels=bf_oi->bf", _SPREAD_MAX, _EXP, _SUM, _DIVIDE,
        "ROOT o = S convolution(p, p2), dim_labels=bf_io->bf",
    ),
}  # fmt: skip
_NO_ATTENTION = {
    "one product": _kernel(_FIRST, "ROOT o = S exponential(s)"),
    "a sigmoid written out": _kernel(_FIRST, _SIGMOID, _SECOND),
    "no greatest is taken off": _kernel(_FIRST, "e = S exponential(s)", _SUM, _DIVIDE, _SECOND),
    "nothing is divided": _kernel(_FIRST, _MAX, _EXP, _SECOND, weights="e"),
    "a softmax of the input before two products": _kernel(
        *_SOFTMAX, f"a = S dot(p, p1), {_DOT}\nROOT o = S dot(a, p2), {_DOT}", logits="p0"
    ),
    "a softmax behind two products": _kernel(
        _FIRST, f"a = S dot(s, p2), {_DOT}", _MAX, _EXP, _SUM, f"ROOT {_DIVIDE}", logits="a"
    ),
    "two products side by side": _kernel(_FIRST, *_SOFTMAX, f"a = S dot(p0, p2), {_DOT}\nROOT o = S add(a, p)"),
    "the gradient of a classifier": _kernel(_FIRST, *_SOFTMAX, "g = S subtract(p, p0)", _SECOND, weights="g"),
    "divided by the sum of something else": _kernel(_FIRST, _MAX, _EXP, _SUM.replace("(e,", "(p0,"), _DIVIDE, _SECOND),
}


@pytest.mark.parametrize("name", [*_ATTENTION, *_NO_ATTENTION])
def test_attention_needs_a_softmax_between_products(name):
    kernel = only_kernel((_ATTENTION | _NO_ATTENTION)[name])
    assert kernel.kind == ("attention" if name in _ATTENTION else "GEMM")
