# about: gradients and optax updates of two networks, nothing of it jitted
# how: script
# expect: op_by_op_loop
# allow: many_tiny_jits
import jax
import jax.numpy as jnp
import optax


def mlp(params, x):
    for w, b in params[:-1]:
        x = jax.nn.leaky_relu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def make(key, *sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [(jax.random.normal(k, (m, n)) * 0.1, jnp.zeros(n)) for k, m, n in zip(keys, sizes, sizes[1:])]


def critic_loss(d, g, real, noise):
    return -jnp.mean(jax.nn.log_sigmoid(mlp(d, real)) + jax.nn.log_sigmoid(-mlp(d, mlp(g, noise))))


def forger_loss(g, d, noise):
    return -jnp.mean(jax.nn.log_sigmoid(mlp(d, mlp(g, noise))))


kg, kd, kr = jax.random.split(jax.random.key(0), 3)
g, d = make(kg, 8, 32, 2), make(kd, 2, 32, 1)
opt = optax.adam(1e-3)
sg, sd = opt.init(g), opt.init(d)
real = jax.random.normal(kr, (64, 2)) + 3
for step in range(120):
    kr, own = jax.random.split(kr)
    noise = jax.random.normal(own, (64, 8))
    updates, sd = opt.update(jax.grad(critic_loss)(d, g, real, noise), sd)
    d = optax.apply_updates(d, updates)
    updates, sg = opt.update(jax.grad(forger_loss)(g, d, noise), sg)
    g = optax.apply_updates(g, updates)
print(mlp(g, noise).mean(0))
