"""vmap: a function of one vector applied to ten, by a loop, by hand, and by vmap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jaxprof.workloads.model import Estimate, Parameter, Parameters, Published, Variant, Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy


def batched_numpy(parameters: Parameters) -> Callable[..., Any]:
    import numpy as np

    def apply_to_all(matrix: Any, vectors: Any) -> Any:
        return np.dot(vectors, matrix.T)

    return apply_to_all


def loop_jax(parameters: Parameters) -> Callable[..., Any]:
    import jax.numpy as jnp

    def apply_to_all(matrix: Any, vectors: Any) -> Any:
        return jnp.stack([jnp.dot(matrix, vector) for vector in vectors])

    return apply_to_all


def batched_jax(parameters: Parameters) -> Callable[..., Any]:
    import jax.numpy as jnp

    def apply_to_all(matrix: Any, vectors: Any) -> Any:
        return jnp.dot(vectors, matrix.T)

    return apply_to_all


def vmap_jax(parameters: Parameters) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def apply(matrix: Any, vector: Any) -> Any:
        return jnp.dot(matrix, vector)

    return jax.vmap(apply, in_axes=(None, 0))


def inputs(parameters: Parameters, random: numpy.random.Generator) -> tuple[Any, ...]:
    rows, columns, vectors = (int(parameters[name]) for name in ("rows", "columns", "vectors"))
    return (
        random.standard_normal((rows, columns), dtype="float32"),
        random.standard_normal((vectors, columns), dtype="float32"),
    )


def estimate(parameters: Parameters) -> Estimate:
    rows, columns, vectors = (float(parameters[name]) for name in ("rows", "columns", "vectors"))
    held = 4 * (rows * columns + vectors * columns + vectors * rows)
    return Estimate(memory_bytes=held, flops=2 * rows * columns * vectors, traffic_bytes=held)


_SOURCE: dict[str, Any] = {
    "source": "the JAX quickstart's example; who measured it is not said",
    "hardware": "not said",
    "parameters": {"rows": 150, "columns": 100, "vectors": 10},
}
_SIZES = {"rows": 150, "columns": 100, "vectors": 10}

WORKLOAD = Workload(
    name="vmap",
    title="vmap(matrix · vector)",
    description=(
        "A 150×100 matrix applied to 10 vectors. The loop pays for a dispatch at every vector; `batched` is the "
        "product that one would write by hand, and `vmap` derives it from the function of one vector. All are so small "
        "that the overhead of a call is most of the time: NumPy is hard to beat here, and that is the lesson."
    ),
    parameters=(
        Parameter(name="rows", description="rows of the matrix", minimum=1),
        Parameter(name="columns", description="columns of the matrix", minimum=1),
        Parameter(name="vectors", description="how many vectors it is applied to", minimum=1),
    ),
    presets={"quick": _SIZES, "published": _SIZES},
    variants=(
        Variant(name="numpy", how="numpy", build=batched_numpy, description="NumPy, one product for all vectors"),
        Variant(name="naive-loop", how="eager", build=loop_jax, description="op by op, one product for each vector"),
        Variant(name="batched", how="jit", build=batched_jax, description="compiled, batched by hand"),
        Variant(name="vmap", how="jit", build=vmap_jax, description="compiled, batched by vmap"),
        Variant(
            name="vmap-highest",
            how="jit",
            build=vmap_jax,
            precision="highest",
            description="as vmap, with full float32 products (no TF32, no bfloat16 passes)",
        ),
    ),
    inputs=inputs,
    estimate=estimate,
    has_dots=True,
    published=(
        Published(variant="naive-loop", phase="run", seconds=2.54e-3, **_SOURCE),
        Published(variant="batched", phase="run", seconds=26.5e-6, **_SOURCE),
        Published(variant="vmap", phase="run", seconds=32.6e-6, **_SOURCE),
    ),
)
