# about: the whole model (20 MB) is fetched with jax.device_get and averaged on the host after every step
# how: script
# expect: repeated_fetch | host_work
import jax
import jax.numpy as jnp
import numpy as np


@jax.jit
def refine(model, signal):
    return {name: leaf + 1e-3 * (signal - leaf) for name, leaf in model.items()}


model = {f"band{n}": jnp.zeros((1024, 1280)) for n in range(4)}
signal = jnp.ones((1024, 1280))
average = None
for epoch in range(60):
    model = refine(model, signal)
    here = jax.device_get(model)
    average = (
        {k: np.array(v, copy=True) for k, v in here.items()}
        if average is None
        else {k: 0.99 * average[k] + 0.01 * here[k] for k in here}
    )
print(average["band0"][0, 0])
