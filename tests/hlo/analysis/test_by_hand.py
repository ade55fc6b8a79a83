"""FLOPs and bytes of kernels against a calculation by hand, from the sizes of the program alone."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from hlo.analysis.programs import compiled, f32, lowered, s32, written
from jaxprof.hlo.analysis.kernels import kernels


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


def test_a_batched_product() -> None:
    (product,) = (
        k
        for k in kernels(lowered(lambda a, b: jnp.einsum("bij,bjk->bik", a, b), f32(7, 11, 13), f32(7, 13, 17)))
        if k.kind == "GEMM"
    )
    assert product.flops == 2 * 7 * 11 * 13 * 17
    assert product.bytes == 4 * (7 * 11 * 13 + 7 * 13 * 17 + 7 * 11 * 17)


def test_a_convolution_does_not_multiply_with_its_padding() -> None:
    def convolve(x: jax.Array, k: jax.Array) -> jax.Array:
        return lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    (kernel,) = (
        k for k in kernels(lowered(convolve, f32(8, 32, 32, 16), f32(3, 3, 16, 32))) if k.kind == "convolution"
    )
    # In each of the two dimensions 3 * 32 pairs of window and output, of which 2 meet the padding.
    assert kernel.flops == 2 * (3 * 32 - 2) ** 2 * 8 * 16 * 32


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


def test_a_reduction_is_one_operation_less_than_it_has_elements() -> None:
    flops = sum(k.flops or 0 for k in kernels(lowered(lambda x: x.sum(1), f32(64, 1000))))
    assert flops == 64 * 999


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


def test_a_loop_runs_as_often_as_it_says() -> None:
    def recurrence(xs: jax.Array, w: jax.Array) -> jax.Array:
        return lax.scan(lambda c, x: (jnp.tanh(c @ w + x), None), xs[0], xs)[0]

    found = kernels(compiled(recurrence, f32(50, 8, 64), f32(64, 64)))
    product = next(k for k in found if k.kind == "GEMM")
    assert (product.count, product.flops) == (50, 2 * 8 * 64 * 64)
    assert product.total_flops == 50 * 2 * 8 * 64 * 64
    compare = next(k for k in found if k.dtype == "pred")
    assert compare.count == 51  # the condition is asked once more than the body runs


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
