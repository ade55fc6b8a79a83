"""Operations whose batched or differentiated form is slow: each program beside a mended twin and near ones."""

from functools import partial

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from hlo.kernels.programs import compiled, written
from jaxprof.findings.hlo import findings_on
from jaxprof.hlo.kernels.kernels import kernels
from jaxprof.hlo.kernels.kinds import instructions_in


def convolve(kernel, image, groups=1, order=("NHWC", "HWIO", "NHWC")):
    return lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=order, feature_group_count=groups)


convolve_first = partial(convolve, order=("NCHW", "OIHW", "NCHW"))


def looped(convolution):
    """A network of four layers, which are one in a loop."""
    return lambda kernel, image: lax.fori_loop(0, 4, lambda _, x: convolution(kernel, x) * 0.1, image)


def shifted(kernel, image):
    """A convolution of each channel by itself, written out."""
    h, w = image.shape[1:3]
    padded = jnp.pad(image, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return sum(padded[:, i : i + h, j : j + w] * kernel[i, j, 0] for i in range(3) for j in range(3))


def network(x):
    """The sort of a short last axis, written out."""
    c, n = [x[..., k] for k in range(x.shape[-1])], x.shape[-1]
    for r in range(n):
        for i in range(r % 2, n - 1, 2):
            c[i], c[i + 1] = jnp.minimum(c[i], c[i + 1]), jnp.maximum(c[i], c[i + 1])
    return jnp.stack(c, -1)


def grouped(weights, images):
    """A network whose own convolution has 32 groups, written for one image."""
    numbers = ("NCHW", "OIHW", "NCHW")
    one = partial(lax.conv_general_dilated, window_strides=(1, 1), padding="SAME", dimension_numbers=numbers)
    return jax.vmap(lambda image: one(image[None], weights, feature_group_count=32)[0])(images)


def sum_columns(x, ids):
    return jax.vmap(lambda c: jax.ops.segment_sum(c, ids, num_segments=800), in_axes=1, out_axes=1)(x)


def centres(points, labels):
    return jax.nn.one_hot(labels, 512).T @ points


def walk(key, x):
    return lax.scan(lambda x, key: (x + jax.random.normal(key, x.shape), None), x, jax.random.split(key, 100))[0]


def truncated(key, x):
    """Normal numbers above x, each drawn again until it is."""

    def again(state):
        key, value = state
        key, sub = jax.random.split(key)
        return key, jnp.where(value > x, value, jax.random.normal(sub, x.shape))

    return lax.while_loop(lambda state: jnp.any(state[1] <= x), again, (key, jnp.full_like(x, -jnp.inf)))[1]


def solved(key, x):
    """A solver that ends by its residual, and perturbs each step."""

    def step(state):
        turn, x = state
        return turn + 1, x * 0.5 + 1e-3 * jax.random.normal(jax.random.fold_in(key, turn), x.shape)

    return lax.while_loop(lambda state: jnp.sum(state[1]) > 1e-3, step, (0, x))[1]


def update(table, ids, targets, moments=None):
    gradient = jax.grad(lambda table: jnp.mean((table[ids] - targets) ** 2))(table)
    if moments is None:
        return table - 0.1 * gradient
    first, second = 0.9 * moments[0] + 0.1 * gradient, 0.99 * moments[1] + 0.01 * gradient**2
    return table - 0.1 * first / jnp.sqrt(second + 1e-8), first, second


def update_rows(table, ids, targets):
    return table.at[ids].add(-0.1 * jax.grad(lambda rows: jnp.mean((rows - targets) ** 2))(table[ids]))


def roughness(v, axes=(0, 1, 2)):
    return sum((jnp.diff(v, axis=axis) ** 2).sum() for axis in axes)


def summed(points, labels):
    """Sums and sizes of clusters: both read the one-hot array, which becomes a kernel of its own."""
    members = (labels[:, None] == jnp.arange(512)).astype(points.dtype)
    return members.T @ points, members.sum(0)


def roughness_gradient(v):
    return sum(-2 * jnp.diff(jnp.diff(v, axis=axis), axis=axis, prepend=0, append=0) for axis in range(3))


def pooled(x, pool):
    return (jnp.tanh(pool(x)) ** 2).sum()


def windows(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def reshaped(x):
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c).max((2, 4))


def curve(parameters, times):
    a, b, c = parameters
    return a * jnp.sin(b * times) * jnp.exp(-c * times)


def layers(weights, x):
    for w in weights:
        x = jnp.tanh(x @ w)
    return (x**2).mean()


_KERNELS = "f32[6,3,3,3,32] f32[6,8,16,16,3]"
_TABLE = "f32[4096,64] s32[512]"
_ROWS = "f32[6000,48] s32[6000]"
_THREE = "f32[500,500] f32[500,500] f32[500,4]"
_LOOKUP = "f32[100000,16] s32[64] f32[64,16]"
_VOLUME = "f32[96,96,96]"
_IMAGES = "f32[16,64,64,8]"

CASES = {
    "grouped_convolution": [
        (True, jax.vmap(convolve), _KERNELS),
        (False, lambda kernels, images: lax.map(lambda pair: convolve(*pair), (kernels, images)), _KERNELS),
        (False, jax.vmap(convolve, (0, None)), "f32[6,3,3,3,32] f32[8,16,16,3]"),  # one input for all kernels
        (False, grouped, "f32[64,2,3,3] f32[32,64,16,16]"),  # its groups are as many as its images
        (False, jax.vmap(jax.grad(lambda kernel, image: (convolve(kernel, image) ** 2).sum())), _KERNELS),
    ],
    "small_decompositions": [
        (True, jnp.linalg.inv, "f32[5000,3,3]"),
        (True, jax.vmap(lambda m: jnp.linalg.eigh(m)[0]), "f32[5000,2,2]"),
        (False, jnp.linalg.det, "f32[5000,3,3]"),  # which is a formula already
        (False, jnp.linalg.inv, "f32[50,100,100]"),
        (False, lambda m, a: jnp.linalg.inv(m).sum() * (a @ a), "f32[100,3,3] f32[512,512]"),  # little beside the rest
    ],
    "column_gather": [
        (True, sum_columns, _ROWS),
        (True, lambda x, ids: jnp.take(x, ids, axis=1), "f32[480,60000] s32[6000]"),
        (False, lambda x, ids: jnp.take(x, ids, axis=1), "f32[48,6000] s32[6000]"),  # which stays in the cache
        (False, lambda x, ids: jax.vmap(lambda c: c[ids], 1, 1)(x), "f32[60000,480] s32[6000]"),  # XLA reads rows
        (False, lambda x, ids: jax.ops.segment_sum(x, ids, num_segments=800), _ROWS),
        (False, lambda x, ids: x[ids], _ROWS),
        (False, lambda x, ids: jnp.take_along_axis(x, ids, 1), "f32[6000,48] s32[6000,4]"),
        (False, lambda x, ids, a: (sum_columns(x, ids).sum(), a @ a), "f32[60,48] s32[60] f32[512,512]"),
    ],
    "one_hot_product": [
        (True, lambda table, ids: jax.nn.one_hot(ids, 4096) @ table, _TABLE),
        (True, centres, "f32[4096,32] s32[4096]"),
        (False, lambda table, ids: table[ids], _TABLE),
        (False, lambda logits, ids: (jax.nn.one_hot(ids, 64) * logits).sum(), "f32[512,64] s32[512]"),
        (False, lambda a: jnp.eye(512) @ a, "f32[512,512]"),
        (False, lambda table, ids: jax.nn.one_hot(ids, 8) @ table, "f32[8,64] s32[512]"),  # eight experts
    ],
    "random_bits": [
        (True, lambda seed: jax.random.normal(jax.random.key(seed), (100_000,)).sum(), "s32[]"),
        (True, lambda seed, x: walk(jax.random.key(seed), x), "s32[] f32[512]"),
        (False, lambda seed, x: x.at[0].add(jax.random.normal(jax.random.key(seed))), "s32[] f32[100000]"),
        (False, lambda seed: jax.random.normal(jax.random.key(seed, impl="rbg"), (100_000,)).sum(), "s32[]"),
        (False, lambda seed, a, b: a @ b * jax.random.bernoulli(jax.random.key(seed), 0.9, (512, 512)),
         "s32[] f32[512,4096] f32[4096,512]"),
    ],
    "whole_sort": [
        (True, lambda x: jnp.sort(x)[:, -5:], "f32[64,4096]"),
        (True, lambda x: jnp.argsort(x)[:, ::-1][:, :5], "f32[64,4096]"),
        (True, lambda x: (lambda y: y[-1] - y[0])(jnp.sort(x, axis=0)), "f32[4096,64]"),  # a minimum and a maximum
        (True, lambda x: lax.fori_loop(0, 9, lambda _, c: jnp.tanh(c - jnp.sort(c)[-3]), x), "f32[4096]"),
        (False, lambda x: lax.top_k(x, 5), "f32[64,4096]"),
        (False, lambda x: jnp.sort(x)[:, -1000:], "f32[64,4096]"),
        (False, lambda x: (jnp.sort(x), jnp.sort(x)[:, -5:]), "f32[64,4096]"),
        (False, lambda x: jnp.sort(x)[:, ::512], "f32[64,4096]"),
        (False, lambda x: jnp.median(x, axis=-1), "f32[64,4096]"),
        (False, lambda x: lax.fori_loop(0, 9, lambda _, c: jnp.sort(c) * 2, x)[-5:], "f32[4096]"),
        (False, lambda x, a: jnp.sort(x)[-5:].sum() * (a @ a), "f32[64] f32[512,512]"),
    ],
    "inverse_product": [
        (True, lambda a, b: jnp.linalg.inv(a) @ b, "f32[256,256] f32[256]"),
        (True, lambda a, b: b @ jnp.linalg.inv(a + a.T) @ b, "f32[256,256] f32[256]"),
        (True, jax.vmap(lambda a, b: jnp.linalg.inv(a) @ b), "f32[9,64,64] f32[9,64,4]"),
        (False, jnp.linalg.solve, "f32[256,256] f32[256]"),
        (True, lambda a, b: jnp.linalg.inv(a) @ b, "f32[256,256] f32[256,256]"),
        (False, lambda a, b: jnp.linalg.inv(a) @ b, "f32[256,256] f32[256,1024]"),
        (False, lambda a, b: (jnp.linalg.inv(a), jnp.linalg.inv(a) @ b), "f32[256,256] f32[256]"),
        (False, lambda a, b: jnp.diag(jnp.linalg.inv(a)) * b, "f32[256,256] f32[256]"),
        (False, lambda a, b: lax.fori_loop(0, 99, lambda _, x: jnp.tanh(jnp.linalg.inv(a) @ x), b),
         "f32[256,256] f32[256]"),  # once for many products
        (False, lambda a, b, c: (jnp.linalg.inv(a) @ b, c @ c), "f32[16,16] f32[16] f32[512,512]"),
    ],
    "product_order": [
        (True, lambda a, b, v: jnp.tanh(a @ b @ v), _THREE),
        (True, lambda a, b, v: v.T @ (a @ b), _THREE),
        (True, jax.vmap(lambda q, k, v: q @ k.T @ v), "f32[4,500,64] f32[4,500,64] f32[4,500,64]"),
        (False, lambda a, b, v: jnp.tanh(a @ (b @ v)), _THREE),
        (False, lambda a, b, v: a @ b @ v, "f32[300,300] f32[300,300] f32[300,300]"),
        (False, lambda a, b, v: (a @ b, a @ b @ v), _THREE),  # the first product is needed
        (False, lambda a, b, v: jnp.tanh(a @ b) @ v, _THREE),
        (False, lambda a, b, v: (a @ b + a) @ v, _THREE),
        (False, lambda a, b, v: lax.fori_loop(0, 99, lambda _, v: jnp.tanh(a @ b @ v), v), _THREE),  # once for many
        (False, lambda x, w, k: jnp.einsum("shd,thd->hst", (x @ w).reshape(500, 8, 32), k),
         "f32[500,256] f32[256,256] f32[500,8,32]"),  # heads
        (False, jax.grad(lambda a, b, v: jnp.tanh(a @ (b @ v)).sum(), argnums=(0, 1, 2)), _THREE),
        (False, lambda a, b, v, x: (a @ b @ v, jnp.sort(x)), f"{_THREE} f32[4000000]"),
    ],
    "diagonal_product": [
        (True, lambda a, d: jnp.diag(d) @ a, "f32[500,500] f32[500]"),
        (True, lambda a, d: a @ (jnp.eye(500) * d), "f32[500,500] f32[500]"),
        (True, lambda a, b: jnp.trace(a @ b), "f32[500,500] f32[500,500]"),
        (True, lambda x, s: jnp.exp(jnp.diag(x @ s @ x.T)), "f32[2000,64] f32[64,64]"),
        (True, jax.vmap(lambda a, b: jnp.diag(a @ b)), "f32[9,99,99] f32[9,99,99]"),
        (True, lambda a, x: jax.jacfwd(lambda x: jnp.tanh(a @ x))(x).T @ x, "f32[500,500] f32[500]"),
        (False, lambda a, d: d[:, None] * a, "f32[500,500] f32[500]"),
        (False, lambda a, b: (lambda y: (jnp.diag(y), y.sum()))(a @ b), "f32[500,500] f32[500,500]"),
        (False, lambda a, b: (lambda y: (jnp.trace(y), y))(a @ b), "f32[500,500] f32[500,500]"),
        (False, lambda a, b: jnp.where(jnp.eye(500, dtype=bool), -1e9, a @ b), "f32[500,500] f32[500,500]"),
        (False, lambda a, b: jnp.tril(a) @ b, "f32[500,500] f32[500,500]"),
        (False, lambda a, b: jnp.trace(a @ b), "f32[9,500] f32[500,9]"),
    ],
    "direct_convolution": [
        (True, lambda x, w: jnp.convolve(x, w, mode="same"), "f32[200000] f32[2001]"),
        (True, lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME"), "f32[1,1,256,256] f32[1,1,65,65]"),
        (True, lambda x, w: lax.conv_general_dilated(x, w, (1,), [(999, 0)], feature_group_count=8),
         "f32[2,8,1000] f32[8,1,1000]"),  # a filter of its own for each feature
        (False, lambda x, w: jnp.convolve(x, w, mode="same"), "f32[200000] f32[31]"),
        (False, lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME"), "f32[4,32,64,64] f32[32,32,5,5]"),
        (False, lambda x, w: lax.conv_general_dilated(x, w, (1000,), "VALID"), "f32[1,1,200000] f32[1,1,2001]"),
        (False, jax.grad(lambda w, x: (jnp.convolve(x, w) ** 2).sum()), "f32[9] f32[20000]"),
        (False, lambda x, w: jax.scipy.signal.fftconvolve(x, w, mode="same"), "f32[200000] f32[2001]"),
    ],
    "complex_transform": [
        (True, lambda x: jnp.abs(jnp.fft.fft(x)[:, :513]) ** 2, "f32[256,1024]"),
        (True, lambda x: jnp.fft.fft2(x), "f32[8,256,256]"),
        (False, lambda x: jnp.abs(jnp.fft.rfft(x)) ** 2, "f32[256,1024]"),
        (False, lambda x: jnp.fft.fft(jax.lax.complex(x, 2 * x)), "f32[256,1024]"),
        (False, jnp.fft.fft, "f32[64,1000]"),
        (False, lambda x, a: (jnp.fft.fft(x), a @ a @ a), "f32[256,1024] f32[3000,3000]"),
    ],
    "binary_search": [
        (True, lambda v, e: jnp.searchsorted(e, v), "f32[500000] f32[71]"),
        (True, lambda v, e: jnp.histogram(v, e)[0], "f32[500000] f32[71]"),
        (True, lambda v, e, y: jnp.interp(v, e, y), "f32[500000] f32[71] f32[71]"),
        (False, lambda v, e: jnp.searchsorted(e, v, method="scan_unrolled"), "f32[500000] f32[71]"),
        (False, lambda v, e: jnp.searchsorted(e, v), "f32[500] f32[71]"),
        (False, lambda v, e: ((v - e[0]) / (e[1] - e[0])).astype(int), "f32[500000] f32[71]"),
        (False, lambda v, e, a: (jnp.searchsorted(e, v), a @ a @ a), "f32[40000] f32[71] f32[900,900]"),
    ],
    "unvectorised": [
        (True, lambda x, y: ((x[:, None] - y) ** 2).sum(-1), "f32[2000,16] f32[500,16]"),
        (True, lambda x: jnp.linalg.norm(x[:, None] - x[None], axis=-1), "f32[2000,3]"),
        (True, jax.vmap(lambda x, y: ((x - y) ** 2).sum(-1), in_axes=(0, None)), "f32[2000,16] f32[500,16]"),
        (True, lambda x: x / jnp.linalg.norm(x, axis=-1, keepdims=True), "f32[500000,3]"),
        (True, lambda x: jax.nn.softmax(x, axis=-1), "f32[500000,4]"),
        (True, lambda x: jnp.argmax(x, axis=-1), "f32[64,50000]"),
        (True, lambda x: (x * x + 1) ** -1.5, "f32[1000000]"),
        (True, lambda a, b: a @ b, "s8[300,300] s8[300,300]"),
        (True, lambda a, b: a @ b, "f32[2000,4,4] f32[2000,4,4]"),
        (True, jnp.sort, "f32[50000,9]"),
        (True, partial(jnp.median, axis=-1), "f32[50000,25]"),
        (True, partial(jnp.quantile, q=jnp.array([0.1, 0.9]), axis=0), "f32[9,50000]"),
        (True, jnp.argsort, "f32[50000,9]"),
        (False, network, "f32[50000,9]"),
        (False, lambda x: network(x)[..., 4], "f32[50000,9]"),
        (False, jnp.sort, "f32[9000,50]"),
        (False, jnp.argsort, "f32[9000,25]"),
        (False, lambda x, a: (jnp.sort(x), a @ a), "f32[50,9] f32[500,500]"),
        (True, looped(convolve_first), "f32[32,32,3,3] f32[4,32,64,64]"),
        (True, jax.grad(lambda w, x: (looped(convolve)(w, x) ** 2).sum()), "f32[3,3,16,16] f32[4,32,32,16]"),
        (True, partial(convolve, groups=64), "f32[3,3,1,64] f32[4,64,64,64]"),
        (True, partial(convolve_first, groups=64), "f32[64,1,3,3] f32[4,64,64,64]"),
        (True, convolve, "f32[5,5,1,1] f32[1,512,512,1]"),
        (False, looped(convolve), "f32[3,3,32,32] f32[4,64,64,32]"),
        (False, convolve_first, "f32[32,32,3,3] f32[4,32,64,64]"),
        (False, jax.grad(lambda w, x: (convolve_first(w, x) ** 2).sum()), "f32[32,32,3,3] f32[4,32,64,64]"),
        (False, partial(convolve, groups=4), "f32[3,3,16,64] f32[4,64,64,64]"),
        (False, shifted, "f32[3,3,1,64] f32[4,64,64,64]"),
        (False, lambda x, y: ((x - y) ** 2).sum(-1), "f32[20000,16] f32[20000,16]"),
        (False, lambda x, y: sum((x[:, None, k] - y[:, k]) ** 2 for k in range(3)), "f32[2000,3] f32[500,3]"),
        (False, lambda x, y: (x * x).sum(1)[:, None] + (y * y).sum(1) - 2 * x @ y.T, "f32[2000,16] f32[500,16]"),
        (False, lambda x, y, a: ((x[:, None] - y) ** 2).sum(-1)[0, 0] * (a @ a),
         "f32[40,3] f32[40,3] f32[500,500]"),
        (False, lambda x: x / jnp.sqrt(sum(x[:, k] ** 2 for k in range(3)))[:, None], "f32[500000,3]"),
        (True, lambda x: x.max(-1), "f32[500000,4]"),
        (True, lambda x: x.sum(-1), "f32[500000,8]"),
        (False, lambda x: x.max(-1), "f32[500000,6]"),
        (False, lambda x, y: ((x[:, None] - y) ** 2).max(-1), "f32[2000,16] f32[500,16]"),
        (False, lambda x: jax.nn.softmax(x, axis=0), "f32[4,500000]"),
        (False, lambda x: jax.nn.softmax(x, axis=-1), "f32[5000,400]"),
        (False, lambda x: jnp.where(x == x.max(-1, keepdims=True), jnp.arange(50000), 50000).min(-1), "f32[64,50000]"),
        (False, lambda x, a: (jnp.argmax(x, axis=-1), a @ a), "f32[64,100] f32[500,500]"),
        (False, lambda x: jnp.argmax(x, axis=-1), "f32[100000,16]"),
        (False, lambda x: 1 / ((x * x + 1) * jnp.sqrt(x * x + 1)), "f32[1000000]"),
        (False, lambda x: (x * x + 1) ** -2, "f32[1000000]"),
        (True, lambda x, p: jnp.abs(x) ** p, "f32[1000000] f32[]"),
        (False, lambda x, p: jnp.exp(p * jnp.log(jnp.abs(x))), "f32[1000000] f32[]"),
        (False, lambda x: jnp.abs(x) ** 0.5, "f32[1000000]"),
        (False, lambda a, b: jnp.matmul(a, b, preferred_element_type=jnp.int32), "s8[300,300] s8[300,300]"),
        (False, lambda a, b: a @ b, "f32[2000,3,3] f32[2000,3,3]"),
        (False, lambda a, b: a @ b, "f32[2000,64,64] f32[2000,64,64]"),
        (False, lambda a, b: a @ b, "f32[2000,4,4] f32[4,4]"),
        (False, lambda a, b: sum(a[..., :, k, None] * b[..., k, None, :] for k in range(4)),
         "f32[2000,4,4] f32[2000,4,4]"),
    ],
    "cumulative_sum": [
        (True, lambda a: jnp.cumsum(a, axis=0), "f32[360,5000]"),
        (True, jax.vmap(jnp.cumprod, in_axes=1, out_axes=1), "f32[360,5000]"),
        (False, lambda a: jnp.cumsum(a, axis=1), "f32[5000,360]"),
        (False, lambda a: jnp.cumsum(jnp.transpose(a, (3, 1, 0, 2)), axis=0), "f32[8,64,48,96]"),  # it lies together
        (False, lambda a: lax.scan(lambda s, x: (s + x, s + x), jnp.zeros_like(a[0]), a)[1], "f32[360,5000]"),
        (False, lambda a: lax.reduce_window(a, 0.0, lax.add, (1, 16), (1, 1), "SAME").T, "f32[360,5000]"),
        (False, lambda a, b: (jnp.cumsum(a, axis=0), b @ b), "f32[360,50] f32[900,900]"),
    ],
    "rejection_sampling": [
        (True, lambda seed, x: jax.random.poisson(jax.random.key(seed), x), "s32[] f32[4000]"),
        (True, lambda seed, x: truncated(jax.random.key(seed), x), "s32[] f32[4000]"),
        (False, lambda seed, x: x + jax.random.normal(jax.random.key(seed), x.shape), "s32[] f32[4000]"),
        (False, lambda seed, x: truncated(jax.random.key(seed), x), "s32[] f32[4]"),  # a few chains
        (False, lambda seed, x: solved(jax.random.key(seed), x), "s32[] f32[4000]"),
    ],
    "costly_backward": [
        (True, update, _LOOKUP),
        (True, jax.grad(roughness), _VOLUME),
        (True, jax.grad(partial(pooled, pool=windows)), _IMAGES),
        (True, jax.jacrev(curve), "f32[3] f32[2000]"),
        (False, update_rows, _LOOKUP),
        (False, lambda *state: update(*state[:3], state[3:]), f"{_LOOKUP} f32[100000,16] f32[100000,16]"),  # Adam
        (False, roughness_gradient, _VOLUME),
        (False, jax.grad(partial(roughness, axes=(0,))), _VOLUME),  # one difference, which is fast
        (False, jax.grad(partial(pooled, pool=reshaped)), _IMAGES),
        (False, jax.jacfwd(curve), "f32[3] f32[2000]"),
        (False, jax.vmap(jax.grad(lambda x: jnp.sin(x).sum())), "f32[2000,300]"),  # examples, each with its own
        (False, lambda *inputs: jax.value_and_grad(layers)(inputs[:-1], inputs[-1]),
         "f32[256,256] f32[256,256] f32[128,256]"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "kept", "found"),
    [("f32[64,4096]", 16, True), ("f32[64,4096]", 17, False), ("f32[64,1000]", 9, False), ("s32[64,4096]", 9, False)],
)
def test_gpus_have_a_kernel_for_few_floats_alone(arguments, kept, found):
    assert ("whole_sort" in said(lambda x: jnp.sort(x)[:, -kept:], arguments, "gpu")) is found


def test_a_choice_by_sorting_has_its_own_advice():
    def choose(seed, n=100_000):
        return jax.random.choice(jax.random.key(seed), n, (64,), replace=False)

    (fix,) = [each.fix for each in findings_on(compiled(choose, "s32[]"), "cpu") if each.code == "whole_sort"]
    assert fix.startswith("k different random indices")


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (lambda a, x: jax.jacfwd(lambda x: a @ x)(x).T @ x, "The product is the other array itself."),
        (lambda a, d: jnp.diag(d) @ a, "Multiply by the numbers of the diagonal"),
    ],
)
def test_an_identity_has_its_own_advice(function, advice):
    found = findings_on(compiled(function, "f32[500,500] f32[500]"), "cpu")
    (fix,) = [each.fix for each in found if each.code == "diagonal_product"]
    assert fix.startswith(advice)


_SPLIT = """
pad0 = f32[500,512] pad(a, zero), padding=0_0x0_12
pad1 = f32[512,500] pad(b, zero), padding=0_12x0_0
left = f32[500,4,128] bitcast(pad0)
right = f32[4,128,500] bitcast(pad1)
parts = f32[4,500,500] dot(left, right), lhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_batch_dims={0}, \
rhs_contracting_dims={1}
first = f32[500,500] reduce(parts, zero), dimensions={0}, to_apply=add
"""
"""A product of 500 x 500 matrices as XLA for GPUs splits it: four sums of 128, which are added up."""


@pytest.mark.parametrize(("last", "found"), [("f32[500,4] parameter(2)", True), ("f32[500,500] parameter(2)", False)])
def test_a_product_that_xla_has_split_is_one_of_three(last, found):
    inputs = f"a = f32[500,500] parameter(0)\nb = f32[500,500] parameter(1)\nv = {last}\nzero = f32[] constant(0)"
    result = last.partition(" ")[0]
    second = f"ROOT y = {result} dot(first, v), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
    module = written(f"{inputs}{_SPLIT}{second}")
    assert ("product_order" in {finding.code for finding in findings_on(module, "gpu")}) is found


@pytest.mark.parametrize("form", ["cumsum", "pad"])
def test_padding_of_a_cumulative_sum_is_no_finding(form):
    programs = {"cumsum": lambda a: jnp.cumsum(a, axis=1), "pad": lambda a: jnp.sort(jnp.pad(a, ((0, 0), (0, 9))))}
    assert ("padding" in said(programs[form], "f32[5000,360]")) is (form == "pad")


def test_the_programs_own_order_is_a_copy_beside_a_sum():
    found = said(lambda a: jnp.cumsum(jnp.transpose(a, (3, 1, 0, 2)), axis=0), "f32[32,64,48,96]")
    assert "layout_copy" in found
    assert "cumulative_sum" not in found


def test_sums_of_cpus_are_no_findings_for_gpus():
    assert "unvectorised" not in said(lambda x: jnp.linalg.norm(x[:, None] - x[None], axis=-1), "f32[2000,3]", "gpu")
    assert "cumulative_sum" not in said(lambda a: jnp.cumsum(a, axis=0), "f32[360,5000]", "gpu")
    assert "direct_convolution" not in said(lambda x, w: jnp.convolve(x, w), "f32[200000] f32[2001]", "gpu")


@pytest.mark.parametrize(
    ("power", "advice"), [(-1.5, "Take a root"), (2.5, "Take a root"), (1.7, "Of positive numbers")]
)
def test_the_power_decides_the_other_form(power, advice):
    (found,) = findings_on(compiled(lambda x: jnp.abs(x) ** power, "f32[1000000]"), "cpu")
    assert found.message.startswith(f"x ** {power} ")
    assert found.fix.startswith(advice)


def test_a_long_convolution_has_its_line():
    def smooth(x, w):
        return jnp.convolve(x, w, mode="same")

    (found,) = [each for each in findings_on(compiled(smooth, "f32[200000] f32[2001]"), "cpu") if "FFT" in each.message]
    assert found.where.line == smooth.__code__.co_firstlineno + 1


def said(function, arguments, platform="cpu"):
    return {finding.code for finding in findings_on(compiled(function, arguments), platform)}


@pytest.mark.parametrize(
    ("code", "function", "arguments", "opcode"),
    [
        ("one_hot_product", summed, "f32[4096,32] s32[4096]", "compare"),
        ("costly_backward", update, _LOOKUP, "broadcast"),
    ],
)
def test_a_slow_form_has_the_kernel_that_writes_its_array(code, function, arguments, opcode):
    module = compiled(function, arguments)
    (finding,) = (each for each in findings_on(module, "cpu") if each.code == code)
    named = [kernel for kernel in kernels(module) if kernel.name in finding.kernels]
    assert any(opcode in {held.opcode for held in instructions_in(kernel.instruction)} for kernel in named)


def test_the_gradient_that_is_advised_has_no_slow_form():
    @jax.custom_vjp
    def mended(v):
        return roughness(v)

    mended.defvjp(lambda v: (roughness(v), v), lambda v, g: (g * roughness_gradient(v),))
    assert "costly_backward" not in said(jax.grad(mended), _VOLUME)


def test_a_reverse_jacobian_has_the_line_of_its_call():
    def jacobian(parameters, times):
        return jax.jacrev(curve)(parameters, times)

    found = findings_on(compiled(jacobian, "f32[3] f32[2000]"), "cpu")
    (line,) = (each.where.line for each in found if each.code == "costly_backward")
    assert line == jacobian.__code__.co_firstlineno + 1


@pytest.mark.parametrize(
    ("draw", "named"),
    [
        (jax.random.normal, ()),
        (lambda key, shape: jax.random.bernoulli(key, 0.1, shape), ("bernoulli",)),
        (lambda key, _: jax.random.categorical(key, jnp.zeros((1000, 100))), ("searchsorted",)),
        (
            lambda key, shape: (
                jax.random.bernoulli(key, 0.1, shape) + jax.random.categorical(key, jnp.zeros((*shape, 2)))
            ),
            ("bernoulli", "searchsorted"),
        ),
    ],
    ids=["normal", "bernoulli", "categorical", "both"],
)
def test_fewer_bits_are_advised_of_what_draws_them(draw, named):
    module = compiled(lambda seed: draw(jax.random.key(seed), (100_000,)).sum(), "s32[]")
    (fix,) = [each.fix for each in findings_on(module, "cpu") if each.code == "random_bits"]
    assert "jax_threefry_partitionable" in fix
    assert tuple(word for word in ("bernoulli", "searchsorted") if word in fix) == named
    assert ("It gives", "Both give", "All give")[len(named)] in fix


@pytest.mark.parametrize("code", CASES)
def test_a_slow_form_is_reported_and_its_neighbours_are_not(code):
    for expected, function, arguments in CASES[code]:
        assert (code in said(function, arguments)) is expected, arguments


PAIRS = {
    code: tuple(
        next(partial(said, *case) for expected, *case in cases if expected is wanted) for wanted in (True, False)
    )
    for code, cases in CASES.items()
}
