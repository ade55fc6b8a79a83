# about: nothing: equinox and optax, an epoch is one scan, the loss is fetched after each epoch
# how: script
# expect: -
# allow: cache_off, captured_constants
# set: holdout
import equinox as eqx
import jax
import jax.numpy as jnp
import optax

model = eqx.nn.MLP(32, 1, 256, 3, key=jax.random.key(0))
params, rest = eqx.partition(model, eqx.is_array)
opt = optax.adam(1e-3)
state = opt.init(params)
x = jax.random.normal(jax.random.key(1), (50, 256, 32))
y = jnp.sin(x.sum(-1, keepdims=True))


def loss(params, x, y):
    return jnp.mean((jax.vmap(eqx.combine(params, rest))(x) - y) ** 2)


@jax.jit
def epoch(params, state):
    def step(carry, batch):
        params, state = carry
        value, grads = jax.value_and_grad(loss)(params, *batch)
        updates, state = opt.update(grads, state)
        return (optax.apply_updates(params, updates), state), value

    (params, state), values = jax.lax.scan(step, (params, state), (x, y))
    return params, state, values.mean()


for n in range(15):
    params, state, value = epoch(params, state)
    print(n, float(value))
