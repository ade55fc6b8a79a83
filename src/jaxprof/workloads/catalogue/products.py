"""Products of matrices: one, large ones that show the device's peak, many of which the mean is taken, and one that is
derived from the product with a vector."""

from __future__ import annotations

from jaxprof.workloads.catalogue import jax, jnp, np, sizes
from jaxprof.workloads.decorator import workload
from jaxprof.workloads.model import Estimate, Variant


def gram_numpy(x):
    return np.dot(x, x.T)


@workload(
    name="matmul",
    title="dot(x, x.T)",
    description=(
        "A square matrix of normal float32 numbers times its own transpose. NumPy hands it to BLAS and JAX to the "
        "device's own library, so on a CPU there is little to gain; on an accelerator it is the best case. Compare "
        "`jax-from-numpy` with `jax`: the difference is the transfer of x, paid at every call."
    ),
    inputs=["f32[n,n]"],
    parameters=sizes(n="rows and columns of x"),
    presets={
        "quick": {"n": 1000},
        "published": {"n": 3000},
        "published-5000": {"n": 5000},
        "published-10000": {"n": 10_000},
    },
    numpy=gram_numpy,
    variants=[
        Variant(
            name="jax-from-numpy",
            how="eager",
            inputs="host",
            description="op by op, a NumPy array given at each call: the transfer is inside",
        ),
        "jax",
        Variant(
            name="device-put",
            how="eager",
            description="op by op, after one explicit device_put of the NumPy array; resident like `jax`",
        ),
        "jit",
        "jit-highest",
    ],
    estimate=lambda n: Estimate(memory_bytes=3 * 4 * n**2, flops=2 * n**3, traffic_bytes=2 * 4 * n**2),
    shardings=("0",),
)
def gram(x):
    return jnp.dot(x, x.T)


def square_numpy(x):
    return np.matmul(x, x)


def square_inputs(random, n):
    return random.random((n, n), dtype="float32")


@workload(
    name="matmul-uniform",
    title="matmul(x, x), x uniform",
    description=(
        "A square matrix of uniform float32 numbers in [0, 1) times itself. The work is that of `matmul`; all terms "
        "are positive, so nothing cancels and the relative error of a lower matrix precision is at its smallest."
    ),
    inputs=square_inputs,
    parameters=sizes(n="rows and columns of x"),
    presets={"quick": {"n": 1000}, "published": {"n": 5000}},
    numpy=square_numpy,
    variants=["jax", "jit", "jit-highest"],
    estimate=lambda n: Estimate(memory_bytes=2 * 4 * n**2, flops=2 * n**3, traffic_bytes=2 * 4 * n**2),
)
def square(x):
    return jnp.matmul(x, x)


def product_numpy(x, y):
    return np.matmul(x, y)


def peak_inputs(random, n):
    """Return normal float32 numbers cut to bfloat16's 8 bits, so that the products are exact in every precision."""
    x = random.standard_normal((2, n, n), dtype="float32")
    x.view(np.uint32)[...] &= 0xFFFF0000
    return x[0], x[1]


def bfloat16(inputs):
    import ml_dtypes

    return tuple(array.astype(ml_dtypes.bfloat16) for array in inputs)


@workload(
    name="gemm-peak",
    title="x · y, large and square",
    description=(
        "One large square product, so that arithmetic is all that counts: the figure to hold against the device's data "
        "sheet. `jit` uses the device's default precision for float32 (TF32 on recent NVIDIA GPUs, bfloat16 passes on "
        "TPUs), `jit-highest` full float32, `jit-bfloat16` narrow inputs with sums in float32. The inputs are numbers "
        "that bfloat16 holds exactly, so all of them must give the same result."
    ),
    inputs=peak_inputs,
    parameters=sizes(n="rows and columns of both matrices"),
    presets={"quick": {"n": 1024}, "published": {"n": 8192}},
    numpy=product_numpy,
    variants=[
        "jit",
        "jit-highest",
        Variant(
            name="jit-bfloat16",
            how="jit",
            adapt=bfloat16,
            description="bfloat16 inputs, float32 sums; a device without bfloat16 units converts first",
        ),
    ],
    tolerance={"float32": 1e-4, "tf32": 1e-3, "bfloat16": 1e-3},
    estimate=lambda n: Estimate(memory_bytes=3 * 4 * n**2, flops=2 * n**3, traffic_bytes=3 * 4 * n**2),
)
def product(x, y):
    return jnp.matmul(x, y, preferred_element_type=jnp.float32)


def loop_numpy(U, Vt):
    products = [u @ vt for u, vt in zip(U, Vt, strict=True)]
    return np.mean(products, axis=0)


def batched_numpy(U, Vt):
    return np.matmul(U, Vt).mean(0)


def mean_einsum(U, Vt):
    return jnp.einsum("brk,bkc->rc", U, Vt) / len(U)


def mean_product_estimate(batch, rows, columns, k):
    operands = 4 * batch * k * (rows + columns)
    products, result = 4 * batch * rows * columns, 4 * rows * columns
    return Estimate(
        memory_bytes=operands + 2 * products + result,  # the loop holds its products twice: as a list, and stacked
        flops=batch * rows * columns * (2 * k + 1),
        traffic_bytes=operands + result,
    )


@workload(
    name="batch-matmul-mean",
    title="mean over b of U[b] · Vt[b]",
    description=(
        "U (b, 610, k) times Vt (b, k, 9724), averaged over the batch: the posterior mean of a probabilistic matrix "
        'factorisation. Its source, "Accelerating batch linear algebra with JAX", compares a Python loop with JAX; '
        "`numpy-batched` is the fair twin, and `jit-einsum` never makes the (b, 610, 9724) array at all. The "
        "source does not give k: 10 is our choice."
    ),
    inputs=["f32[batch,rows,k]", "f32[batch,k,columns]"],
    parameters=sizes(
        batch="number of products that are averaged",
        rows="rows of each U (610 in the source)",
        columns="columns of each Vt (9724 in the source)",
        k="inner dimension; not given by the source",
    ),
    presets={
        "quick": {"batch": 5, "rows": 610, "columns": 972, "k": 10},
        "published": {"batch": 100, "rows": 610, "columns": 9724, "k": 10},
        "published-150": {"batch": 150, "rows": 610, "columns": 9724, "k": 10},
    },
    variants=[
        Variant(
            name="numpy-loop",
            how="numpy",
            function=loop_numpy,
            description="NumPy, one product after the other, then the mean: the source's own comparison",
        ),
        Variant(
            name="numpy-batched",
            how="numpy",
            function=batched_numpy,
            description="NumPy, one batched product, then the mean: the fair twin",
        ),
        "jax",
        "jit",
        Variant(
            name="jit-einsum",
            how="jit",
            function=mean_einsum,
            description="compiled, one contraction over b and k: no (b, rows, columns) array",
        ),
        "jit-highest",
    ],
    baseline="numpy-batched",
    estimate=mean_product_estimate,
    shardings=("0", "0"),
)
def mean_product(U, Vt):
    return jnp.matmul(U, Vt).mean(0)


def vmap_numpy(matrix, vectors):
    return np.dot(vectors, matrix.T)


def loop(matrix, vectors):
    return jnp.stack([jnp.dot(matrix, vector) for vector in vectors])


def batched(matrix, vectors):
    return jnp.dot(vectors, matrix.T)


def vmap_estimate(rows, columns, vectors):
    held = 4 * (rows * columns + vectors * columns + vectors * rows)
    return Estimate(memory_bytes=held, flops=2 * rows * columns * vectors, traffic_bytes=held)


_SIZES = {"rows": 150, "columns": 100, "vectors": 10}


@workload(
    name="vmap",
    title="vmap(matrix · vector)",
    description=(
        "A 150×100 matrix applied to 10 vectors. The loop pays for a dispatch at every vector; `batched` is the "
        "product that one would write by hand, and `vmap` derives it from the function of one vector. All are so small "
        "that the overhead of a call is most of the time: NumPy is hard to beat here, and that is the lesson."
    ),
    factory=True,
    inputs=["f32[rows,columns]", "f32[vectors,columns]"],
    parameters=sizes(
        rows="rows of the matrix",
        columns="columns of the matrix",
        vectors="how many vectors it is applied to",
    ),
    presets={"quick": _SIZES, "published": _SIZES},
    numpy=vmap_numpy,
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
    estimate=vmap_estimate,
    shardings=(None, "0"),
)
def vmapped():
    def apply(matrix, vector):
        return jnp.dot(matrix, vector)

    return jax.vmap(apply, in_axes=(None, 0))
