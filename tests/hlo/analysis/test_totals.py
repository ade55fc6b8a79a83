"""Totals of modules against XLA's own `compiled.cost_analysis()`, over real programs. FLOPs and bytes of kernels
against a calculation by hand, from the sizes of the program alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from hlo.analysis.programs import bf16, compiled, f32, lowered, s32, written
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
def test_flops_and_transcendentals_are_those_of_xla_and_bytes_are_no_more(name: str) -> None:
    """Bytes are less by the constants that stand outside fusions (XLA counts their bytes twice), and by parts of
    operands that a fusion does not read."""
    ours, xla, _ = _both(_SAME[name][0], *_SAME[name][1])
    assert ours.complete
    assert ours.cost.flops == xla.get("flops", 0.0)
    assert ours.cost.transcendentals == xla.get("transcendentals", 0.0)
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


def test_selu_is_five_operations_and_one_exponential_for_each_of_a_million_elements() -> None:
    def selu(x: jax.Array) -> jax.Array:
        return 1.05 * jnp.where(x > 0, x, 1.67 * jnp.exp(x) - 1.67)

    (kernel,) = kernels(compiled(selu, f32(1_000_000)))
    assert kernel.flops == 5_000_000  # >, *, -, where, *
    assert kernel.transcendentals == 1_000_000
    assert (kernel.bytes_read, kernel.bytes_written) == (4_000_000, 4_000_000)
    assert kernel.intensity == 5 / 8
    assert (kernel.kind, kernel.opcode, kernel.count) == ("loop fusion", "fusion", 1)


def test_a_product_with_its_own_transpose_reads_the_matrix_once() -> None:
    product = next(k for k in kernels(compiled(lambda x: x @ x.T, f32(1000, 1000))) if k.kind == "GEMM")
    assert product.flops == 2 * 1000**3
    assert product.bytes_written == 4_000_000
    assert product.bytes_read in (4_000_000, 8_000_000)  # 8 where XLA writes the transpose out before


def test_a_grouped_strided_convolution() -> None:
    def convolve(x: jax.Array, k: jax.Array) -> jax.Array:
        return lax.conv_general_dilated(
            x, k, (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=4
        )

    (kernel,) = (k for k in kernels(lowered(convolve, f32(2, 9, 9, 16), f32(3, 3, 4, 8))) if k.kind == "convolution")
    assert kernel.flops == 2 * (2 * 4 * 4 * 8) * (3 * 3 * 4)


def test_an_update_in_place_touches_what_it_updates() -> None:
    def update(x: jax.Array, u: jax.Array, i: jax.Array) -> jax.Array:
        return lax.dynamic_update_slice(x, u, (i, 0))

    copy, kernel = kernels(compiled(update, f32(10_000, 16), f32(10, 16), s32()))
    assert copy.kind == "copy"
    assert copy.bytes == 2 * 640_000  # the argument is not donated
    assert (kernel.bytes_read, kernel.bytes_written) == (640 + 4, 640)


def test_a_slice_reads_its_slice() -> None:
    (kernel,) = kernels(compiled(lambda x, i: lax.dynamic_slice(x, (i, 0), (10, 16)) * 2, f32(10_000, 16), s32()))
    assert (kernel.bytes_read, kernel.bytes_written) == (640 + 4, 640)


def test_a_gather_reads_its_rows_and_its_indices() -> None:
    (kernel,) = kernels(compiled(lambda x, i: x[i], f32(10_000, 16), s32(100)))
    assert (kernel.bytes_read, kernel.bytes_written) == (100 * 16 * 4 + 400, 6400)


def test_a_sort_is_its_comparator_times_n_log_n() -> None:
    module = written("""
        less {
          a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT lt = pred[] compare(a, b), direction=LT
        }

        ENTRY main {
          x = f32[16,1000]{1,0} parameter(0)
          ROOT s = f32[16,1000]{1,0} sort(x), dimensions={1}, to_apply=less
        }
    """)
    (kernel,) = kernels(module)
    assert kernel.flops == 16 * 1000 * 10  # ceil(log2 1000)
    assert kernel.estimated


@pytest.mark.parametrize(("n", "kind", "flops"), [(1024, "fft", 5 * 1024 * 10), (1024, "rfft", 2.5 * 1024 * 10)])
def test_a_fourier_transform(n: int, kind: str, flops: float) -> None:
    dtype = jnp.complex64 if kind == "fft" else jnp.float32
    module = lowered(getattr(jnp.fft, kind), jax.ShapeDtypeStruct((n,), dtype))
    (kernel,) = (k for k in kernels(module) if k.kind == "FFT")
    assert kernel.flops == flops


def test_packed_integers_take_half_a_byte() -> None:
    module = written("""
        ENTRY main {
          x = s4[1000]{0:E(4)} parameter(0)
          ROOT c = s8[1000]{0} convert(x)
        }
    """)
    (kernel,) = kernels(module)
    assert (kernel.bytes_read, kernel.bytes_written) == (500, 1000)


def test_complex_multiplications_are_six_operations_and_complex_products_eight() -> None:
    module = written("""
        ENTRY main {
          a = c64[10,20]{1,0} parameter(0)
          b = c64[20,30]{1,0} parameter(1)
          d = c64[10,30]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
          ROOT m = c64[10,30]{1,0} multiply(d, d)
        }
    """)
    product, square = kernels(module)
    assert product.flops == 8 * 10 * 20 * 30
    assert square.flops == 6 * 10 * 30
    assert square.bytes_read == 10 * 30 * 8  # the same operand twice
