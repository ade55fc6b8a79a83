"""Operations whose batched or differentiated form is slow: each program beside a mended twin and near ones."""

from functools import partial

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from hlo.kernels.programs import compiled
from jaxprof.findings.hlo import findings_on


def convolve(kernel, image):
    return lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def grouped(weights, images):
    """A network whose own convolution has 32 groups, written for one image."""
    numbers = ("NCHW", "OIHW", "NCHW")
    one = partial(lax.conv_general_dilated, window_strides=(1, 1), padding="SAME", dimension_numbers=numbers)
    return jax.vmap(lambda image: one(image[None], weights, feature_group_count=32)[0])(images)


def sum_columns(x, ids):
    return jax.vmap(lambda c: jax.ops.segment_sum(c, ids, num_segments=800), in_axes=1, out_axes=1)(x)


def centres(points, labels):
    return jax.nn.one_hot(labels, 512).T @ points


_KERNELS = "f32[6,3,3,3,32] f32[6,8,16,16,3]"
_TABLE = "f32[4096,64] s32[512]"
_ROWS = "f32[6000,48] s32[6000]"

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
}  # fmt: skip


def said(function, arguments, platform="cpu"):
    return {finding.code for finding in findings_on(compiled(function, arguments), platform)}


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
