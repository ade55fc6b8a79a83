"""Totals of modules against XLA's own `compiled.cost_analysis()`, over real programs. FLOPs and bytes of kernels
against a calculation by hand, from the sizes of the program alone."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from hlo.analysis.programs import compiled, lowered, parameters, shapes, written
from jaxprof.hlo.analysis.kernels import kernels, totals
from jaxprof.hlo.analysis.liveness import liveness
from jaxprof.hlo.read.parse import module


def _both(function, arguments):
    stage = jax.jit(function).lower(*shapes(arguments)).compile()
    read = module(stage.as_text())
    return totals(read), stage.cost_analysis() or {}, read, stage


def _step(*given):
    *parameters, x, y = given

    def loss(p):
        return ((jax.nn.gelu(x @ p[0] + p[1]) @ p[2] + p[3] - y) ** 2).mean()

    value, gradient = jax.value_and_grad(loss)(parameters)
    return value, [p - 0.1 * g for p, g in zip(parameters, gradient, strict=True)]


def _convolve(x, k):
    return jax.nn.relu(
        lax.conv_general_dilated(x, k, (2, 1), "SAME", rhs_dilation=(1, 2), dimension_numbers=("NHWC", "HWIO", "NHWC"))
    )


_SAME = {
    "elementwise": (lambda x: 1.05 * jnp.where(x > 0, x, 1.67 * jnp.exp(x) - 1.67), "f32[100000]"),
    "product-and-bias": (lambda x, w, b: jax.nn.relu(x @ w + b), "f32[64,128] f32[128,256] f32[256]"),
    "train-step": (_step, "f32[128,512] f32[512] f32[512,10] f32[10] f32[64,128] f32[64,10]"),
    "convolution-gradient": (jax.grad(lambda k, x: _convolve(x, k).sum()), "f32[3,3,8,12] f32[4,17,16,8]"),
    "cumulative-sum": (lambda x: jnp.cumsum(x, 0), "f32[1000,64]"),
    "pooling": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        "f32[8,32,32,16]",
    ),
    "update-in-place": (lambda x, u, i: lax.dynamic_update_slice(x, u, (i, 0)), "f32[1000,16] f32[10,16] s32[]"),
    "pad": (lambda a: jnp.pad(a, ((1, 1), (2, 2))), "f32[100,64]"),
    "bfloat16": (lambda a, b: jnp.tanh(a @ b), "bf16[256,256] bf16[256,256]"),
}


@pytest.mark.parametrize("name", _SAME)
def test_flops_and_transcendentals_are_those_of_xla_and_bytes_are_no_more(name):
    """Bytes are less by the constants that stand outside fusions (XLA counts their bytes twice), and by parts of
    operands that a fusion does not read."""
    function, arguments = _SAME[name]
    ours, xla, read, stage = _both(function, arguments)
    assert ours.complete
    assert ours.cost.flops == xla.get("flops", 0.0)
    assert ours.cost.transcendentals == xla.get("transcendentals", 0.0)
    assert ours.bytes <= xla["bytes accessed"]
    assert ours.bytes == pytest.approx(xla["bytes accessed"], rel=0.02)
    assert_live_sizes(read, stage)


def assert_live_sizes(read, stage):
    """The peak is below what XLA holds and not by much: it holds the outputs all the time and keeps branches apart, and
    here a value counts only while it is needed."""
    known, found = stage.memory_analysis(), liveness(read)
    held = (
        known.argument_size_in_bytes + known.output_size_in_bytes - known.alias_size_in_bytes + known.temp_size_in_bytes
    )
    assert found.parts["argument"] == known.argument_size_in_bytes
    assert held / 1.36 - 4096 <= found.peak_bytes <= held + 4096
    assert sum(found.parts.values()) == found.peak_bytes == max(found.live_bytes)
    for number, point in enumerate(found.points):
        assert sum(value.bytes for value in found.alive(number)) == point.bytes, point.instruction


def _recurrent(w, x):
    def step(carry, xi):
        carry = jnp.tanh(carry @ w + xi)
        return carry, carry

    return (lax.scan(step, jnp.zeros((32, 64)), x)[1] ** 2).mean()


@pytest.mark.parametrize(
    ("function", "arguments", "donated"),
    [
        (lambda *given: _step(*given)[1], _SAME["train-step"][1], (0, 1, 2, 3)),
        (jax.grad(_recurrent), "f32[64,64] f32[16,32,64]", ()),
        (lambda p, x: lax.cond(p, lambda x: (x @ x) @ x, lambda x: jnp.sin(x).T, x),
         "pred[] f32[128,128]", ()),
        (lambda x: jnp.linalg.cholesky(x @ x.T), "f32[128,128]", ()),
    ],
    ids=["train", "recurrent", "branches", "cholesky"],
)  # fmt: skip
def test_live_sizes_of_what_loops_branches_and_donates(function, arguments, donated):
    stage = jax.jit(function, donate_argnums=donated).lower(*shapes(arguments)).compile()
    assert_live_sizes(module(stage.as_text()), stage)


def test_xla_counts_the_body_of_a_loop_once():
    def recurrence(xs, w):
        return lax.scan(lambda c, x: (jnp.tanh(c @ w + x), None), xs[0], xs)[0]

    ours, xla, read, _ = _both(recurrence, "f32[50,8,64] f32[64,64]")
    assert ours.complete
    assert ours.cost.transcendentals == 50 * xla["transcendentals"]
    once = sum(kernel.flops or 0 for kernel in kernels(read))
    assert once == xla["flops"]
    assert ours.cost.flops > 49 * xla["flops"]


def test_of_an_unknown_loop_the_body_is_counted_once_and_the_total_says_that_it_is_not_complete():
    ours, xla, read, _ = _both(lambda x: lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2 + 1, x), "f32[1000]")
    assert not ours.complete
    assert ours.cost.flops == xla["flops"]
    assert any(kernel.count is None and kernel.total_flops is None for kernel in kernels(read))


def test_of_a_conditional_both_take_the_branch_that_costs_most():
    def either(p, x):
        return lax.cond(p, lambda y: jnp.sin(y @ y), lambda y: y * 2, x)

    ours, xla, read, _ = _both(either, "pred[] f32[64,64]")
    assert ours.cost.flops == xla["flops"]
    assert {kernel.conditional for kernel in kernels(read) if kernel.kind == "GEMM"} == {True}


def test_an_opaque_call_is_unknown_and_not_nothing():
    ours, _, read, _ = _both(lambda x: jax.pure_callback(lambda y: y, x, x) * 2, "f32[10]")
    assert not ours.complete
    callback = next(kernel for kernel in kernels(read) if kernel.kind == "host callback")
    assert callback.flops is None
    assert callback.intensity is None


def _grouped(x, k):
    return lax.conv_general_dilated(
        x, k, (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=4
    )


_COMPLEX = "lhs_contracting_dims={1}, rhs_contracting_dims={0}\nROOT m = c64[10,30] multiply(d, d)"
_KERNELS = {
    # five operations (>, *, -, where, *) and one exponential for each of a million elements
    "selu": (
        lambda: compiled(_SAME["elementwise"][0], "f32[1000000]"), "loop fusion",
        {"flops": 5_000_000, "transcendentals": 1_000_000, "bytes_read": 4_000_000, "bytes_written": 4_000_000,
         "intensity": 5 / 8, "opcode": "fusion", "count": 1},
    ),
    "a grouped strided convolution": (
        lambda: lowered(_grouped, "f32[2,9,9,16] f32[3,3,4,8]"), "convolution",
        {"flops": 2 * (2 * 4 * 4 * 8) * (3 * 3 * 4)},
    ),
    "a gather": (
        lambda: compiled(lambda x, i: x[i], "f32[10000,16] s32[100]"), "",
        {"bytes_read": 100 * 16 * 4 + 400, "bytes_written": 6400},
    ),
    "a sort": (
        lambda: written(parameters("f32[16,1000]") + "ROOT s = f32[16,1000] sort(p0), dimensions={1}, to_apply=less"),
        "sort", {"flops": 16 * 1000 * 10, "estimated": True},  # ceil(log2 1000)
    ),
    "a Fourier transform": (
        lambda: lowered(jnp.fft.fft, "c64[1024]"), "FFT", {"flops": 5 * 1024 * 10}
    ),
    "a complex product": (
        lambda: written(parameters("c64[10,20]", "c64[20,30]") + f"d = c64[10,30] dot(p0, p1), {_COMPLEX}"), "GEMM",
        {"flops": 8 * 10 * 20 * 30},
    ),
    "a complex multiplication": (  # which has the same operand twice
        lambda: written(parameters("c64[10,20]", "c64[20,30]") + f"d = c64[10,30] dot(p0, p1), {_COMPLEX}"),
        "elementwise", {"flops": 6 * 10 * 30, "bytes_read": 10 * 30 * 8},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", _KERNELS)
def test_figures_of_a_kernel_by_hand(name):
    make, kind, facts = _KERNELS[name]
    (kernel,) = (kernel for kernel in kernels(make()) if kind in ("", kernel.kind))
    assert {fact: getattr(kernel, fact) for fact in facts} == facts
