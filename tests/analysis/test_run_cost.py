"""FLOPs and bytes of a call: each program beside a count made by hand."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from analysis.made_runs import program_text, run, session
from jaxprof.analysis.run_result import COUNTED, run_cost
from jaxprof.hlo.analysis.kernels import kernels
from jaxprof.hlo.open.parsed import modules

N = 16
PRODUCT = 2 * N**3
X = jnp.ones((N, N))


def cost_of(hlo):
    of = session(run(hlo=hlo))
    return run_cost(of, of.runs["r1"])


def compiled(function):
    return str(jax.jit(function).lower(X).compile().as_text())


def scan(x):
    return lax.scan(lambda c, _: (c @ x, None), x, None, length=1000)[0]


def nested(x):
    return lax.fori_loop(0, 3, lambda _, c: lax.fori_loop(0, 5, lambda _, d: d @ x, c), x)


def bounded_while(x):
    return lax.while_loop(lambda s: s[0] < 7, lambda s: (s[0] + 1, s[1] @ x), (0, x))[1]


@pytest.mark.parametrize(
    ("function", "products"),
    [(scan, 1000), (nested, 15), (bounded_while, 7)],
)
def test_a_loop_is_counted_as_often_as_it_runs(function, products):
    hlo = compiled(function)
    cost = cost_of(hlo)
    counters = 8 * products + 8 * N * N  # a few scalars each turn, and what is made before the loop
    assert products * PRODUCT <= cost.flops <= products * PRODUCT + counters
    assert cost.bytes_accessed >= (3 * products - 1) * 4 * N * N  # the first one may read x twice
    assert (cost.source, cost.note) == (COUNTED, "")
    listed = kernels(modules(hlo)[0])
    assert cost.flops == sum(kernel.total_flops or 0 for kernel in listed)
    assert cost.bytes_accessed == sum(kernel.total_bytes or 0 for kernel in listed)


def test_a_loop_whose_length_depends_on_the_data_is_unknown():
    cost = cost_of(compiled(lambda x: lax.while_loop(lambda c: jnp.sum(c) < 1e6, lambda c: c @ x, x) @ x))
    assert (cost.flops, cost.bytes_accessed, cost.transcendentals) == (None, None, None)
    assert "while" in cost.note


def test_of_a_conditional_the_dearest_branch_counts_and_it_is_said():
    cost = cost_of(compiled(lambda x: lax.cond(x[0, 0] > 0, lambda y: y @ y @ y, lambda y: y @ y, x)))
    assert cost.flops == pytest.approx(2 * PRODUCT, abs=8)
    assert cost.note.startswith("upper bound")


GEMM = ', backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}}'


@pytest.mark.parametrize(
    ("target", "result", "rest", "flops"),
    [
        ("__cublas$lt$matmul", "(f32[64,16]{1,0}, s8[33554432]{0})", GEMM, 2 * 64 * 32 * 16),
        ("__gpu$xla.gpu.triton", "f32[64,16]{1,0}", "", None),
        ("xla_ffi_python_gpu_callback", "()", ", custom_call_has_side_effect=true", 0),
    ],
    ids=["cublas-lt", "triton", "debug-callback"],
)
def test_a_library_call_is_counted_from_its_shapes_or_unknown(target, result, rest, flops):
    call = f'ROOT c = {result} custom-call(a, b), custom_call_target="{target}"{rest}'
    cost = cost_of(program_text("a = f32[64,32] parameter(0)", "b = f32[32,16] parameter(1)", call))
    assert cost.flops == flops
    assert (target in cost.note) is (flops is None)
    assert cost.bytes_accessed >= 4 * (64 * 32 + 32 * 16)
