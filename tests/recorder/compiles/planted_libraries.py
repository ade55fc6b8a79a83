"""Calls of compiled functions as libraries' users write them; run as a program of its own.

`python planted_libraries.py [CASE...]` prints one JSON object: for each case the rows of the ledger. A case whose
library is not there is left out.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import sys
from collections.abc import Callable
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np

from jaxprof.recorder.compiles.ledger import Ledger

CASES: dict[str, Callable[[], None]] = {}


def case(function: Callable[[], None]) -> Callable[[], None]:
    CASES[function.__name__] = function
    return function


def ones(*shape: int) -> Any:
    return jax.device_put(np.ones(shape, np.float32))


class Wrapped:
    """What `functools.update_wrapper` makes of an object."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


@case
def update_wrapper() -> None:
    @jax.jit
    @Wrapped
    def step(params: Any, x: Any, *, scale: float) -> Any:  # line: update_wrapper
        return params["w"] * x * scale

    for size in (2, 3):
        step({"w": ones(1)}, ones(size), scale=2.0)


@case
def bound_method() -> None:
    class Model:
        def step(self, x: Any, *more: Any) -> Any:
            return x + more[0]

    step = jax.jit(Model().step)
    for size in (2, 3):
        step(ones(size), ones(size))


@case
def jit_of_a_jitted_and_checkpointed() -> None:
    def step(x: Any) -> Any:
        return x * 2

    outer = jax.jit(jax.jit(jax.checkpoint(step)))
    for size in (2, 3):
        outer(ones(size))


@case
def pmap() -> None:
    def step(params: Any, x: Any) -> Any:
        return params["w"] * x

    mapped = jax.pmap(step)
    for size in (2, 3):
        mapped({"w": np.ones((2, 1), np.float32)}, np.ones((2, size), np.float32))


@case
def nnx_jit() -> None:
    from flax import nnx

    class Model(nnx.Module):
        def __init__(self) -> None:
            self.scale = nnx.Param(ones(1))
            self.layers = nnx.List([nnx.Param(ones(1))])

        @nnx.jit
        def method(self, x: Any) -> Any:
            return x * self.scale[...]

    @nnx.jit
    def train_step(model: Model, x: Any, rate: float) -> Any:  # line: nnx
        model.scale[...] = model.scale[...] - rate
        return x * model.scale[...] * model.layers[0][...]

    model = Model()
    for size in range(2, 5):
        train_step(model, ones(size), 0.5)  # line: nnx called
    for size in (2, 3):
        model.method(ones(size))

    @nnx.jit
    def evaluate(model: Model, batch: Any) -> Any:
        return model.scale[...] * batch[0] + batch[1]

    cached = nnx.cached_partial(evaluate, model)
    for size in (2, 3):
        cached((ones(size), ones(1)))


@case
def filter_jit() -> None:
    import equinox

    class Model(equinox.Module):
        layers: list[Any]
        name: str = equinox.field(static=True)

        @equinox.filter_jit
        def method(self, x: Any) -> Any:
            return x * self.layers[0]

        def __call__(self, x: Any) -> Any:
            return x * self.layers[0]

    @equinox.filter_jit
    def train_step(model: Model, x: Any, rate: float) -> Any:  # line: equinox
        return model.layers[0] * x * rate

    model = Model([ones(1)], "a")
    for size in (2, 3):
        train_step(model, ones(size), rate=0.5)
    train_step(model, ones(3), 0.25)
    train_step(Model([ones(1)], "b"), ones(3), 0.25)
    for size in (2, 3):
        model.method(ones(size))
    equinox.filter_jit(model)(ones(2))


@case
def filter_pmap() -> None:
    import equinox

    @equinox.filter_pmap
    def train_step(model: Any, x: Any) -> Any:
        return model["w"] * x

    for size in (2, 3):
        train_step({"w": ones(2, 1)}, ones(2, size))


@case
def linen_apply() -> None:
    from flax import linen

    class Model(linen.Module):
        @linen.compact
        def __call__(self, x: Any) -> Any:
            return x * self.param("scale", linen.initializers.ones, (1,))

    apply = jax.jit(Model().apply)
    for size in (2, 3):
        apply({"params": {"scale": ones(1)}}, ones(size))


def main() -> None:
    events: list[Any] = []
    ledger = Ledger(events.append)
    ledger.attach()
    told: dict[str, Any] = {}
    for name in sys.argv[1:] or CASES:
        events.clear()
        try:
            CASES[name]()
        except ModuleNotFoundError:
            continue
        ledger.finish()
        rows = [{"event": event.type, **dataclasses.asdict(event)} for event in events]
        told[name] = [row for row in rows if not row.get("op_by_op")]
    told["problems"] = ledger.problems
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
