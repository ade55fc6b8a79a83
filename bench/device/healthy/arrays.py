# about: nothing; plain jax
import functools

import jax
import jax.numpy as jnp
from jax import lax


def heat(field):
    def step(u, _):
        around = jnp.roll(u, 1, 0) + jnp.roll(u, -1, 0) + jnp.roll(u, 1, 1) + jnp.roll(u, -1, 1)
        return u + 0.2 * (around - 4 * u), None

    return lax.scan(step, field, length=50)[0]


def heat_inputs(random):
    return random.random((256, 256), dtype="float32")


def lloyd(points, centres):
    """One step of k-means."""
    distance = jnp.sum(centres**2, 1) - 2 * points @ centres.T
    nearest = jnp.argmin(distance, 1)
    sums = jax.ops.segment_sum(points, nearest, len(centres))
    counts = jax.ops.segment_sum(jnp.ones(len(points)), nearest, len(centres))
    return sums / jnp.maximum(counts, 1)[:, None]


def lloyd_inputs(random):
    return random.random((4096, 1024), dtype="float32"), random.random((128, 1024), dtype="float32")


def low_pass(signals):
    spectrum = jnp.fft.rfft(signals)
    return jnp.fft.irfft(jnp.where(jnp.arange(spectrum.shape[1]) < 100, spectrum, 0))


def low_pass_inputs(random):
    return random.standard_normal((32, 4096), dtype="float32")


def bodies(position, velocity):
    def step(state, _):
        x, v = state
        apart = [x[:, None, axis] - x[:, axis] for axis in range(3)]
        near = lax.rsqrt(sum(each**2 for each in apart) + 0.01)
        force = jnp.stack([-jnp.sum(each * (near * near * near), 1) for each in apart], 1)
        v = v + 0.01 * force
        return (x + 0.01 * v, v), None

    return lax.scan(step, (position, velocity), length=10)[0]


def bodies_inputs(random):
    return tuple(random.standard_normal((2, 512, 3), dtype="float32"))


@jax.jit
def gaussian_process(x, y, at):
    def kernel(a, b):
        return jnp.exp(-0.5 * sum((a[:, None, axis] - b[:, axis]) ** 2 for axis in range(4)))

    factor = jax.scipy.linalg.cho_factor(kernel(x, x) + 0.1 * jnp.eye(len(x)))
    return kernel(at, x) @ jax.scipy.linalg.cho_solve(factor, y)


def gaussian_process_inputs(random):
    x = random.standard_normal((800, 4), dtype="float32")
    return x, jnp.sin(x[:, 0]), random.standard_normal((200, 4), dtype="float32")


def components(x, directions):
    """Oja's rule: principal components of a stream, whose batches all turn the directions a little."""

    def turn(directions, batch):
        seen = batch @ directions
        directions = directions + 0.01 * batch.T @ seen
        return directions / jnp.linalg.norm(directions, axis=0), jnp.sum(seen**2, 0)

    return lax.scan(turn, directions, x)


def components_inputs(random):
    directions = random.standard_normal((512, 64), dtype="float32") / 23
    return random.standard_normal((20, 256, 512), dtype="float32"), directions


def life(cells):
    def generation(cells, _):
        rows = cells + jnp.roll(cells, 1, 0) + jnp.roll(cells, -1, 0)
        around = rows + jnp.roll(rows, 1, 1) + jnp.roll(rows, -1, 1) - cells
        return ((around == 3) | (cells & (around == 2))).astype(jnp.int32), None

    return lax.scan(generation, cells, length=30)[0]


def life_inputs(random):
    return random.integers(0, 2, (512, 512)).astype("int32")


@jax.jit
def particles(x, key, observed):
    """The mean after one step of a bootstrap filter, with systematic resampling."""
    walk, offset = jax.random.split(key)
    x = jnp.tanh(x @ (jnp.eye(64) + 0.01)) + 0.1 * jax.random.normal(walk, (x.shape[0], 1))
    weights = jax.nn.softmax(-jnp.sum((x - observed) ** 2, 1))
    at = (jnp.arange(len(x)) + jax.random.uniform(offset)) / len(x)
    return x[jnp.searchsorted(jnp.cumsum(weights), at)].mean(0)


def particles_inputs(random):
    return random.standard_normal((8192, 64), dtype="float32"), jax.random.key(1), jnp.zeros(64)


def metropolis(chains, key, precision):
    """Many chains side by side: one product decides for all of them."""

    def move(carry, key):
        x, energy = carry
        step, luck = jax.random.split(key)
        proposed = x + 0.1 * jax.random.normal(step, (len(x), 1)) * precision[0]
        new = jnp.einsum("ci,ij,cj->c", proposed, precision, proposed)
        accept = jnp.log(jax.random.uniform(luck, (len(x),))) < energy - new
        return (jnp.where(accept[:, None], proposed, x), jnp.where(accept, new, energy)), accept.mean()

    energy = jnp.einsum("ci,ij,cj->c", chains, precision, chains)
    return lax.scan(move, (chains, energy), jax.random.split(key, 20))


def metropolis_inputs(random):
    a = random.standard_normal((256, 256), dtype="float32") / 16
    return random.standard_normal((256, 256), dtype="float32"), jax.random.key(2), a @ a.T + jnp.eye(256)


@functools.partial(jax.jit, donate_argnums=(1, 2))
def next_token(params, keys, values, x, position):
    """A token of a decoder with a cache that is donated."""
    query, key, value = jnp.split(x @ params["qkv"], 3, -1)
    keys = lax.dynamic_update_slice(keys, key[:, None], (0, position, 0))
    values = lax.dynamic_update_slice(values, value[:, None], (0, position, 0))
    scores = jnp.einsum("bd,btd->bt", query, keys) / 16
    shares = jax.nn.softmax(jnp.where(jnp.arange(keys.shape[1]) <= position, scores, -jnp.inf))
    x = x + jnp.einsum("bt,btd->bd", shares, values)
    return keys, values, x + jax.nn.gelu(x @ params["up"]) @ params["down"]


def next_token_inputs(random):
    shapes = {"qkv": (256, 768), "up": (256, 1024), "down": (1024, 256)}
    params = {name: 0.05 * random.standard_normal(s, dtype="float32") for name, s in shapes.items()}
    caches = random.standard_normal((2, 16, 256, 256), dtype="float32")
    return params, *caches, random.standard_normal((16, 256), dtype="float32"), jnp.int32(200)


def clipped_rows(rows):
    """A cond under vmap whose branches cost next to nothing."""

    def one(row):
        norm = jnp.sqrt(jnp.sum(row**2))
        return lax.cond(norm > 1, lambda r: r / norm, lambda r: r, row)

    return jax.vmap(one)(rows) @ rows.T


def clipped_rows_inputs(random):
    return random.standard_normal((1024, 256), dtype="float32")


def conjugate_gradient(matrix, b):
    return jax.scipy.sparse.linalg.cg(lambda v: matrix @ v, b, maxiter=50)[0]


def conjugate_gradient_inputs(random):
    a = random.standard_normal((1024, 1024), dtype="float32") / 32
    return a @ a.T + jnp.eye(1024), random.standard_normal(1024, dtype="float32")


@functools.partial(jax.jit, donate_argnums=0)
def words(params, tokens, labels):
    """A bag of words, with a table that is small."""

    def loss(params):
        logits = jax.nn.relu(params["table"][tokens].mean(1) @ params["hidden"]) @ params["out"]
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


def words_inputs(random):
    shapes = {"table": (1000, 256), "hidden": (256, 1024), "out": (1024, 64)}
    params = {name: 0.05 * random.standard_normal(s, dtype="float32") for name, s in shapes.items()}
    return params, random.integers(0, 1000, (256, 8), dtype="int32"), random.integers(0, 64, 256, dtype="int32")
