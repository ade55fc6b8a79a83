# about: nothing is wrong with the code; compiling a model takes most of a short run, and no cache keeps it
# how: script
# expect: cache_off
# allow: large_program
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax


class Residual(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x):
        y = nn.Conv(self.width, (3, 3))(nn.gelu(nn.GroupNorm(4)(x)))
        y = nn.Conv(self.width, (3, 3))(nn.gelu(nn.GroupNorm(4)(y)))
        return x + y


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Conv(16, (3, 3))(x)
        for width in (16, 16, 16):
            x = Residual(width)(x)
        return nn.Dense(10)(x.mean((1, 2)))


model, opt = Net(), optax.adamw(1e-3)
images = jnp.ones((4, 16, 16, 3))
params = jax.jit(model.init)(jax.random.key(0), images)
state = opt.init(params)


@jax.jit
def step(params, state, images):
    loss, grads = jax.value_and_grad(lambda p: jnp.mean(model.apply(p, images) ** 2))(params)
    updates, state = opt.update(grads, state, params)
    return optax.apply_updates(params, updates), state, loss


for _ in range(5):
    params, state, loss = step(params, state, images)
print(loss)
