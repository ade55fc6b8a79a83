"""Totals of modules against XLA's own `compiled.cost_analysis()`, over real programs.

Where they agree they must agree exactly. Where they differ, the test names why, and holds the difference itself
against the program's sizes, so that neither side can move unseen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from hlo.analysis.programs import bf16, f32, s32
from jaxprof.hlo.analysis.kernels import ModuleTotals, kernels, totals
from jaxprof.hlo.model import Module
from jaxprof.hlo.read.parse import module


def _both(function: Callable[..., Any], *arguments: Any) -> tuple[ModuleTotals, dict[str, float], Module]:
    stage = jax.jit(function).lower(*arguments).compile()
    read = module(stage.as_text())
    return totals(read), stage.cost_analysis() or {}, read


def _attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", q, k) / 8), v)


def _step(parameters: list[jax.Array], x: jax.Array, y: jax.Array) -> tuple[jax.Array, list[jax.Array]]:
    def loss(p: list[jax.Array]) -> jax.Array:
        return ((jax.nn.gelu(x @ p[0] + p[1]) @ p[2] + p[3] - y) ** 2).mean()

    value, gradient = jax.value_and_grad(loss)(parameters)
    return value, [p - 0.1 * g for p, g in zip(parameters, gradient, strict=True)]


def _convolve(x: jax.Array, k: jax.Array) -> jax.Array:
    return jax.nn.relu(
        lax.conv_general_dilated(x, k, (2, 1), "SAME", rhs_dilation=(1, 2), dimension_numbers=("NHWC", "HWIO", "NHWC"))
    )


_SAME: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "elementwise": (lambda x: 1.05 * jnp.where(x > 0, x, 1.67 * jnp.exp(x) - 1.67), (f32(100_000),)),
    "product": (lambda x, y: x @ y, (f32(100, 200), f32(200, 300))),
    "product-and-bias": (lambda x, w, b: jax.nn.relu(x @ w + b), (f32(64, 128), f32(128, 256), f32(256))),
    "batched-product-and-mean": (lambda a, b: (a @ b).mean(0), (f32(10, 61, 32), f32(10, 32, 97))),
    "softmax": (jax.nn.softmax, (f32(512, 1024),)),
    "layer-norm": (lambda x: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True)), (f32(64, 512),)),
    "attention": (_attention, (f32(2, 4, 128, 64),) * 3),
    "train-step": (_step, ([f32(128, 512), f32(512), f32(512, 10), f32(10)], f32(64, 128), f32(64, 10))),
    "convolution": (_convolve, (f32(4, 17, 16, 8), f32(3, 3, 8, 12))),
    "convolution-gradient": (jax.grad(lambda k, x: _convolve(x, k).sum()), (f32(3, 3, 8, 12), f32(4, 17, 16, 8))),
    "cumulative-sum": (lambda x: jnp.cumsum(x, 0), (f32(1000, 64),)),
    "pooling": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        (f32(8, 32, 32, 16),),
    ),
    "update-in-place": (lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 0)), (f32(1000, 16), f32(10, 16), s32())),
    "concatenate": (lambda a, b: jnp.concatenate([a, b * 2]), (f32(100, 64), f32(50, 64))),
    "pad": (lambda a: jnp.pad(a, ((1, 1), (2, 2))), (f32(100, 64),)),
    "bfloat16": (lambda a, b: jnp.tanh(a @ b), (bf16(256, 256), bf16(256, 256))),
    "reduce": (lambda x: x.sum(), (f32(1_000_000),)),
}


@pytest.mark.parametrize("name", _SAME)
def test_flops_and_transcendentals_are_those_of_xla(name: str) -> None:
    ours, xla, _ = _both(_SAME[name][0], *_SAME[name][1])
    assert ours.complete
    assert ours.cost.flops == xla.get("flops", 0.0)
    assert ours.cost.transcendentals == xla.get("transcendentals", 0.0)


@pytest.mark.parametrize("name", _SAME)
def test_bytes_are_those_of_xla_or_less(name: str) -> None:
    """Less by the constants that stand outside fusions (XLA counts their bytes twice), and by parts of operands that
    a fusion does not read. Never more."""
    ours, xla, _ = _both(_SAME[name][0], *_SAME[name][1])
    assert ours.bytes <= xla["bytes accessed"]
    assert ours.bytes == pytest.approx(xla["bytes accessed"], rel=0.02)


def test_xla_counts_the_body_of_a_loop_once() -> None:
    def recurrence(xs: jax.Array, w: jax.Array) -> jax.Array:
        return lax.scan(lambda c, x: (jnp.tanh(c @ w + x), None), xs[0], xs)[0]

    ours, xla, read = _both(recurrence, f32(50, 8, 64), f32(64, 64))
    assert ours.complete
    assert ours.cost.transcendentals == 50 * xla["transcendentals"]
    once = sum(kernel.flops or 0 for kernel in kernels(read))
    assert once == xla["flops"]
    assert ours.cost.flops > 49 * xla["flops"]


def test_of_an_unknown_loop_the_body_is_counted_once_and_the_total_says_that_it_is_not_complete() -> None:
    ours, xla, read = _both(lambda x: lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2 + 1, x), f32(1000))
    assert not ours.complete
    assert ours.cost.flops == xla["flops"]
    assert any(kernel.count is None and kernel.total_flops is None for kernel in kernels(read))


def test_of_a_conditional_both_take_the_branch_that_costs_most() -> None:
    def either(p: jax.Array, x: jax.Array) -> jax.Array:
        return lax.cond(p, lambda y: jnp.sin(y @ y), lambda y: y * 2, x)

    ours, xla, read = _both(either, jax.ShapeDtypeStruct((), jnp.bool_), f32(64, 64))
    assert ours.cost.flops == xla["flops"]
    assert {kernel.conditional for kernel in kernels(read) if kernel.kind == "GEMM"} == {True}


def test_an_opaque_call_is_unknown_and_not_nothing() -> None:
    def call(x: jax.Array) -> jax.Array:
        return jax.pure_callback(lambda y: y, f32(10), x) * 2

    ours, _, read = _both(call, f32(10))
    assert not ours.complete
    callback = next(kernel for kernel in kernels(read) if kernel.kind == "host callback")
    assert callback.flops is None
    assert callback.intensity is None
