"""Programs that differ by a known share of work, and give the same result: for `bench/verdict.py`.

`jaxprof run` measures them as variants of a workload; `program` makes single ones, for what compares two files.

Each repeats a contraction until it has long settled, so that some steps more or fewer do not change the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import jaxprof
from jaxprof.workloads.model import Variant

STEPS = 60


def settled(step: Callable[..., Any], more: float) -> Callable[..., Any]:
    """`step` until it has settled, and a share `more` of that once more."""

    def loop(x: Any, other: Any) -> Any:
        return jax.lax.fori_loop(0, round(STEPS * (1 + more)), lambda _, y: step(y, x, other), x)

    return loop


def variants(step: Callable[..., Any]) -> list[str | Variant]:
    """The baseline; the same program three times more; programs that take 10 % and 30 % more steps."""
    shares = {"first": 0.0, "again": 0.0, "again-2": 0.0, "again-3": 0.0, "slower-10": 0.1, "slower-30": 0.3}
    return [Variant(name=name, how="jit", function=settled(step, more)) for name, more in shares.items()]


def product(y: Any, x: Any, other: Any) -> Any:
    return 0.001 * (y @ other) + x


def waves(y: Any, x: Any, other: Any) -> Any:
    return 0.25 * jnp.sin(y) + x * other


def order(y: Any, x: Any, other: Any) -> Any:
    return 0.25 * jnp.sort(y) + x + other


@jaxprof.workload(inputs=["f32[192,192]", "f32[192,192]"], variants=variants(product), baseline="first")
def matmul(x, other):
    return product(x, x, other)


@jaxprof.workload(inputs=["f32[20000]", "f32[20000]"], variants=variants(waves), baseline="first")
def sines(x, other):
    return waves(x, x, other)


@jaxprof.workload(inputs=["f32[2000]", "f32[2000]"], variants=variants(order), baseline="first")
def sorting(x, other):
    return order(x, x, other)


SHAPES = {"matmul": (192, 192), "sines": (20000,), "sorting": (2000,)}
STEP = {"matmul": product, "sines": waves, "sorting": order}


def program(name: str, more: float) -> tuple[Callable[..., Any], Callable[[], tuple[Any, Any]]]:
    """The program `name` with a share `more` of work beyond the baseline, and what makes its two inputs."""

    def inputs() -> tuple[Any, Any]:
        keys = jax.random.split(jax.random.key(0))
        return jax.random.normal(keys[0], SHAPES[name]), jax.random.normal(keys[1], SHAPES[name])

    return jax.jit(settled(STEP[name], more)), inputs
