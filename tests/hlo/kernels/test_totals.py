"""Totals of modules against XLA's own `compiled.cost_analysis()`, over real programs. FLOPs and bytes of kernels
against a calculation by hand, from the sizes of the program alone. Live sizes by hand, and against what XLA assigns."""

from math import log2

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from hlo.agreement import COMPILED_BY_H100
from hlo.kernels.programs import IN_HASTE, compiled, lowered, parameters, shapes, written
from jaxprof.hlo.kernels.kernels import kernels, totals
from jaxprof.hlo.kernels.liveness import liveness
from jaxprof.hlo.text.parse import module, modules


def _both(function, arguments):
    stage = jax.jit(function).lower(*shapes(arguments)).compile(IN_HASTE)
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
def test_totals_agree_with_xla(name):
    """Bytes are less by the constants that stand outside fusions (XLA counts their bytes twice), and by parts of
    operands that a fusion does not read."""
    function, arguments = _SAME[name]
    ours, xla, read, stage = _both(function, arguments)
    assert not ours.opaque
    assert ours.flops == xla.get("flops", 0.0)
    assert ours.transcendentals == xla.get("transcendentals", 0.0)
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
    assert held / 1.51 - 4096 <= found.peak_bytes <= held + 4096
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
        (lambda x: jnp.linalg.eigvalsh(x + x.T), "f32[128,128]", ()),
        (lambda x: lax.fori_loop(0, 10, lambda i, x: x.at[i].set(1.0), x), "f32[65536]", ()),
    ],
    ids=["train", "recurrent", "branches", "cholesky", "overwritten", "called"],
)  # fmt: skip
def test_live_sizes_of_what_loops_branches_and_donates(function, arguments, donated):
    stage = jax.jit(function, donate_argnums=donated).lower(*shapes(arguments)).compile(IN_HASTE)
    assert_live_sizes(module(stage.as_text()), stage)


def test_xla_counts_the_body_of_a_loop_once():
    def recurrence(xs, w):
        return lax.scan(lambda c, x: (jnp.tanh(c @ w + x), None), xs[0], xs)[0]

    ours, xla, read, _ = _both(recurrence, "f32[50,8,64] f32[64,64]")
    assert not ours.opaque
    assert ours.transcendentals == 50 * xla["transcendentals"]
    once = sum(kernel.flops or 0 for kernel in kernels(read))
    assert once == xla["flops"]
    assert ours.flops > 49 * xla["flops"]


def test_totals_of_an_unknown_loop_are_incomplete():
    ours, xla, read, _ = _both(lambda x: lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2 + 1, x), "f32[1000]")
    assert ours.opaque
    assert ours.flops == xla["flops"]
    assert any(kernel.count is None and kernel.total_flops is None for kernel in kernels(read))


def test_of_a_conditional_both_take_the_branch_that_costs_most():
    def either(p, x):
        return lax.cond(p, lambda y: jnp.sin(y @ y), lambda y: y * 2, x)

    ours, xla, read, _ = _both(either, "pred[] f32[64,64]")
    assert ours.flops == xla["flops"]
    assert {kernel.conditional for kernel in kernels(read) if kernel.kind == "GEMM"} == {True}


def test_an_opaque_call_is_unknown_and_not_nothing():
    ours, _, read, _ = _both(lambda x: jax.pure_callback(lambda y: y, x, x) * 2, "f32[10]")
    assert ours.opaque
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


KIB = 1024

CHAIN = """HloModule chain, is_scheduled=true

%inside (p: f32[256]) -> f32[256] {
  %p = f32[256]{0} parameter(0)
  ROOT %n = f32[256]{0} negate(%p)
}

ENTRY %main (x: f32[256], y: f32[512]) -> f32[256] {
  %x = f32[256]{0} parameter(0), metadata={op_name="x"}
  %y = f32[512]{0} parameter(1)
  %big = f32[512]{0} custom-call(%y), custom_call_target="f", \
metadata={op_name="jit(f)/f" source_file="me.py" source_line=7}
  %seen = f32[512]{0} bitcast(%big)
  %small = f32[256]{0} custom-call(%seen), custom_call_target="g"
  %loop = f32[256]{0} fusion(%small), kind=kLoop, calls=%inside
  ROOT %out = f32[256]{0} custom-call(%loop, %x), custom_call_target="h"
}
"""

LOOP = """HloModule loop, is_scheduled=true

%body (p: (s32[], f32[256])) -> (s32[], f32[256]) {
  %p = (s32[], f32[256]{0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %v = f32[256]{0} get-tuple-element(%p), index=1
  %scratch = f32[1024]{0} custom-call(%v), custom_call_target="f"
  %next = f32[256]{0} custom-call(%scratch), custom_call_target="g"
  ROOT %t = (s32[], f32[256]{0}) tuple(%i, %next)
}

%condition (q: (s32[], f32[256])) -> pred[] {
  %q = (s32[], f32[256]{0}) parameter(0)
  ROOT %true = pred[] constant(true)
}

ENTRY %main (x: f32[256]) -> f32[256] {
  %x = f32[256]{0} parameter(0)
  %zero = s32[] constant(0)
  %start = f32[256]{0} copy(%x)
  %state = (s32[], f32[256]{0}) tuple(%zero, %start)
  %while = (s32[], f32[256]{0}) while(%state), condition=%condition, body=%body
  ROOT %out = f32[256]{0} get-tuple-element(%while), index=1
}
"""


def test_values_live_from_their_instruction_to_their_last_use():
    found = liveness(module(CHAIN))
    arguments = 3 * KIB
    # y goes in; `big` is 2 KiB and lives until `small` is made of it; the fusion takes the place of `small`, and the
    # output is reserved.
    assert found.live_bytes == tuple(arguments + KIB * size for size in (1, 1, 3, 3, 4, 2, 2))
    assert found.peak_bytes == max(found.live_bytes)
    assert found.parts == {"argument": 3 * KIB, "output": KIB, "temporary": 3 * KIB, "constant": 0}
    big = next(value for value in found.values if value.instruction == "big")
    assert big.bytes == 2 * KIB
    assert big.kind == "temporary"
    assert big.shape == "f32[512]{0}"
    assert big.at_peak is True
    assert (big.op_name, big.file, big.line) == ("jit(f)/f", "me.py", 7)
    assert found.points[found.peak_at].instruction == "small"
    assert [value.instruction for value in found.alive(found.peak_at)] == ["y", "big", "x", "small", "out"]
    assert [value.instruction for value in found.alive(5)] == ["y", "x", "loop", "out"], (
        "the loop has the place of small"
    )


def test_liveness_of_a_loop():
    found = liveness(module(LOOP))
    # x, the two constants, the state (which is the output), and the body's scratch: the next state is where it was.
    assert found.peak_bytes == KIB + 5 + KIB + 4 * KIB
    assert found.parts == {"argument": KIB, "output": KIB, "temporary": 4 * KIB, "constant": 5}
    assert {value.instruction for value in found.values if value.at_peak} >= {"x", "start", "scratch"}
    scratch = next(value for value in found.values if value.instruction == "scratch")
    assert found.points[found.peak_at].instruction == "while"
    assert scratch.spans == ((4, 4),), "what the body needs is alive where the loop runs, and nowhere else"


def test_a_donated_argument_is_its_output_too():
    donated = "is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }"
    assert liveness(module(LOOP.replace("is_scheduled=true", donated))).parts["output"] == 0


SCATTER = """
zeros {
  c = f32[] constant(0)
  ROOT b = f32[256] broadcast(c), dimensions={}
}

fused {
  t = f32[256] parameter(0)
  i = s32[4,1] parameter(1)
  u = f32[4] parameter(2)
  zero = f32[256] negate(t)
  ROOT scattered = f32[256] scatter(%s, i, u), to_apply=add, update_window_dims={}, inserted_window_dims={0}, \
scatter_dims_to_operand_dims={0}, index_vector_dim=1
}

ENTRY main {
  i = s32[4,1] parameter(0)
  u = f32[4] parameter(1)
  gradient = f32[256] fusion(), kind=kLoop, calls=zeros
  ROOT out = f32[256] fusion(gradient, i, u), kind=kInput, calls=fused
}
"""


@pytest.mark.parametrize(("updated", "more"), [("t", KIB), ("zero", 2 * KIB)])
def test_liveness_of_a_fused_update_in_place(updated, more):
    assert liveness(written(SCATTER % updated)).peak_bytes == 4 * 4 + 4 * 4 + more


@pytest.mark.parametrize("text", [CHAIN.replace(", is_scheduled=true", ""), "HloModule empty, is_scheduled=true\n"])
def test_without_a_schedule_nothing_is_said(text):
    assert liveness(module(text)) is None


_H100 = {
    "jit_product": ("GEMM", 2 * 1024**3, 3 * 4 * 1024**2, 46_137_344),
    "jit_conv": ("transpose, convolution", 36_192_256, 36_864 + 804_864, 823_296),
    "jit_sort": ("loop fusion, sort", 1_600_000 + 200_000 * log2(200_000), 1_600_000 + 3_200_000, 4_840_447),
    "jit_mean_product": ("GEMM, Triton fusion", 62_256_600, 26_404_880, 14_546_480),
    "jit_attention": ("GEMM, Triton fusion, GEMM, Triton fusion", 68_614_144, 7_340_032, 3_145_728),
    "jit_rnn": (
        "copy, loop fusion, loop fusion, GEMM, GEMM, loop fusion, loop fusion",
        25_296_896 + 32, 5_136_776, 250_380,
    ),
}  # fmt: skip
"""Kernels, FLOPs, bytes, and XLA's `peak_memory_in_bytes`. FLOPs and bytes are those of XLA's `cost_analysis()` where
it counts what there is: it has -1 for a module with a call of cuBLAS or cuDNN, nothing for a sort of CUB, and a loop's
body once. The FLOPs of the loop are those that it counts for the same steps unrolled, and the steps of its counter,
whose test never runs on a GPU."""


def test_modules_that_an_h100_compiled():
    read = modules(COMPILED_BY_H100.read_text())
    assert [each.name for each in read] == list(_H100)
    for each in read:
        kinds, flops, moved, peak = _H100[each.name]
        assert ", ".join(kernel.kind for kernel in kernels(each)) == kinds
        assert totals(each).flops == pytest.approx(flops)
        assert totals(each).bytes == moved
        assert totals(each).opaque is False
        assert liveness(each).peak_bytes == peak
