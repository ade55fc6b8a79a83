# about: a method jits a gradient anew at each call, with a lambda over the setting
# how: script
# expect: recompile_in_loop | closure_varies
# allow: cache_off
import jax
import jax.numpy as jnp


class Ridge:
    def __init__(self, features, targets):
        self.features, self.targets = features, targets

    def fit(self, penalty, steps=30):
        loss = lambda w: jnp.mean((self.features @ w - self.targets) ** 2) + penalty * jnp.sum(w**2)
        gradient = jax.jit(jax.grad(loss))
        w = jnp.zeros(self.features.shape[1])
        for _ in range(steps):
            w = w - 0.05 * gradient(w)
        return loss(w)


key = jax.random.key(0)
features = jax.random.normal(key, (500, 30))
model = Ridge(features, features @ jnp.arange(30.0))
print(min((float(model.fit(10.0**-n)), n) for n in range(25)))
