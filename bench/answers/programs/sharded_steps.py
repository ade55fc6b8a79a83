# about: on four devices, the batch of each step is resharded from one axis to the other before the product
# how: script --capture-steps 5
# expect: resharding | exposed_collectives
# allow: implicit_transfers
# devices: 4
import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import numpy as np

mesh = Mesh(np.array(jax.devices()).reshape(4), ("data",))
rows, columns = NamedSharding(mesh, P("data", None)), NamedSharding(mesh, P(None, "data"))


@jax.jit
def mix(x):
    x = jax.lax.with_sharding_constraint(x * 1.01, columns)
    x = jax.lax.with_sharding_constraint(jnp.sin(x), rows)
    x = jax.lax.with_sharding_constraint(x + 1, columns)
    return jax.lax.with_sharding_constraint(jnp.cos(x), rows)


x = jax.device_put(jnp.ones((1024, 1024)), rows)
for turn in range(400):
    x = mix(x)
    if turn % 4 == 3:
        x.block_until_ready()
print(x.mean())
