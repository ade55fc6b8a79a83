"""vmap: a function of one vector applied to ten, by a loop, by hand, and by vmap."""

from __future__ import annotations

from jaxprof.workloads.catalogue import jax, jnp, np
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate, Parameter, Variant


def batched_numpy(matrix, vectors):
    return np.dot(vectors, matrix.T)


def loop(matrix, vectors):
    return jnp.stack([jnp.dot(matrix, vector) for vector in vectors])


def batched(matrix, vectors):
    return jnp.dot(vectors, matrix.T)


def estimate(rows, columns, vectors):
    held = 4 * (rows * columns + vectors * columns + vectors * rows)
    return Estimate(memory_bytes=held, flops=2 * rows * columns * vectors, traffic_bytes=held)


_SIZES = {"rows": 150, "columns": 100, "vectors": 10}


@workload(
    title="vmap(matrix · vector)",
    description=(
        "A 150×100 matrix applied to 10 vectors. The loop pays for a dispatch at every vector; `batched` is the "
        "product that one would write by hand, and `vmap` derives it from the function of one vector. All are so small "
        "that the overhead of a call is most of the time: NumPy is hard to beat here, and that is the lesson."
    ),
    factory=True,
    inputs=["f32[rows,columns]", "f32[vectors,columns]"],
    parameters={
        "rows": Parameter(description="rows of the matrix", minimum=1),
        "columns": Parameter(description="columns of the matrix", minimum=1),
        "vectors": Parameter(description="how many vectors it is applied to", minimum=1),
    },
    presets={"quick": _SIZES, "published": _SIZES},
    numpy=batched_numpy,
    variants=[
        Variant(name="naive-loop", how="eager", function=loop, description="op by op, one product for each vector"),
        Variant(name="batched", how="jit", function=batched, description="compiled, batched by hand"),
        Variant(name="vmap", how="jit", description="compiled, batched by vmap"),
        Variant(
            name="vmap-highest",
            how="jit",
            precision="highest",
            description="as vmap, with full float32 products (no TF32, no bfloat16 passes)",
        ),
    ],
    estimate=estimate,
    shardings=(None, "0"),
)
def vmapped():
    def apply(matrix, vector):
        return jnp.dot(matrix, vector)

    return jax.vmap(apply, in_axes=(None, 0))
