"""Attention against what else has two products around a softmax: routing in mixtures of experts, told by the axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from hlo.analysis.programs import compiled, f32, lowered, written
from jaxprof.hlo.analysis.attention import (
    attention_before,
    is_any_product,
    operand_axes,
    product_sizes,
)
from jaxprof.hlo.analysis.dataflow import Value
from jaxprof.hlo.analysis.kinds import values_in
from jaxprof.hlo.model import Module


def _dot_product(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.dot_product_attention(q, k, v)


def _causal(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


def _two_dimensional(q: Any, k: Any, v: Any) -> Any:
    return jax.nn.softmax(q @ k.T / 8, axis=-1) @ v


def _turned(q: Any, k: Any, v: Any) -> Any:
    """The keys first: the softmax is over the rows."""
    return jnp.einsum("kq,kd->qd", jax.nn.softmax(k @ q.T, axis=0), v)


def _learned_queries(queries: Any, x: Any, weights: Any) -> Any:
    """As a Perceiver has it: all examples share the queries."""
    scores = jnp.einsum("sd,bmd->bsm", queries, x)
    return jnp.einsum("bsm,bmd->bsd", jax.nn.softmax(scores, axis=-1), x @ weights)


def _soft_mixture(x: Any, slots: Any, experts: Any) -> Any:
    """Puigcerver et al., From Sparse to Soft Mixtures of Experts (2023), algorithm 1, for a batch."""
    logits = jnp.einsum("bmd,ds->bms", x, slots)
    given = jnp.einsum("bmd,bms->bsd", x, jax.nn.softmax(logits, axis=1))
    made = jnp.tanh(jnp.einsum("bsd,sde->bse", given, experts))
    return jnp.einsum("bse,bms->bme", made, jax.nn.softmax(logits, axis=2))


def _soft_mixture_of_one(x: Any, slots: Any, experts: Any) -> Any:
    return _soft_mixture(x[None], slots, experts)[0]


def _gated_experts(x: Any, router: Any, experts: Any) -> Any:
    """Every expert for every token: a token has values of its own, and no keys."""
    return jnp.einsum("te,ted->td", jax.nn.softmax(x @ router), jnp.einsum("td,edf->tef", x, experts))


def _dispatch(x: Any, router: Any) -> Any:
    """The softmax is over the experts, and the tokens are summed."""
    return jnp.einsum("te,td->ed", jax.nn.softmax(x @ router), x)


_ATTENTION: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "jax.nn": (_dot_product, (f32(2, 32, 4, 16), f32(2, 48, 4, 16), f32(2, 48, 4, 16))),
    "two dimensions": (_two_dimensional, (f32(32, 16), f32(48, 16), f32(48, 16))),
    "as many queries as keys": (_two_dimensional, (f32(32, 16), f32(32, 16), f32(32, 16))),
    "keys first": (_turned, (f32(32, 16), f32(48, 16), f32(48, 16))),
    "learned queries": (_learned_queries, (f32(8, 16), f32(2, 48, 16), f32(16, 16))),
}
_ROUTING: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a soft mixture": (_soft_mixture, (f32(2, 40, 16), f32(16, 12), f32(12, 16, 16))),
    "a soft mixture of one example": (_soft_mixture_of_one, (f32(40, 16), f32(16, 12), f32(12, 16, 16))),
    "a soft mixture of equal sizes": (_soft_mixture, (f32(16, 16, 16), f32(16, 16), f32(16, 16, 16))),
    "gated experts": (_gated_experts, (f32(40, 16), f32(16, 12), f32(12, 16, 16))),
    "dispatch": (_dispatch, (f32(40, 16), f32(16, 12))),
}


def _products(module: Module) -> Iterator[Value]:
    assert module.entry is not None
    for instruction in module.entry:
        values = values_in((instruction,)) if instruction.opcode == "fusion" else [Value(instruction)]
        yield from (value for value in values if is_any_product(value.instruction))


def _count(module: Module) -> int:
    return sum(attention_before(product) is not None for product in _products(module))


@pytest.mark.parametrize(
    ("name", "make"), [*((name, lowered) for name in _ATTENTION), ("jax.nn", compiled), ("learned queries", compiled)]
)
def test_attention_is_found_whatever_its_axes_are_called(name: str, make: Callable[..., Module]) -> None:
    function, arguments = _ATTENTION[name]
    assert _count(make(function, *arguments)) == 1


def test_grouped_queries_under_a_mask_are_attention() -> None:
    assert _count(compiled(_causal, f32(2, 32, 8, 16), f32(2, 32, 2, 16), f32(2, 32, 2, 16))) == 1


@pytest.mark.parametrize(
    ("name", "make"), [*((name, lowered) for name in _ROUTING), ("a soft mixture", compiled), ("dispatch", compiled)]
)
def test_routing_is_no_attention(name: str, make: Callable[..., Module]) -> None:
    function, arguments = _ROUTING[name]
    module = make(function, *arguments)
    assert len(list(_products(module))) >= 2
    assert _count(module) == 0


def test_the_axes_of_products_of_all_kinds() -> None:
    entry = written("""
        ENTRY main {
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
        }
    """).entry  # fmt: skip
    for product in (Value(entry["d"]), Value(entry["c"]), Value(entry["g"], (0,))):
        assert product_sizes(product.instruction) == (4, 8, 32)
        for number in (0, 1):
            taken = operand_axes(product.instruction, number)
            assert (taken.contracting, taken.batch) == ((2,), (0,))
    for unknown in ("w", "o"):
        assert product_sizes(entry[unknown]) is None
