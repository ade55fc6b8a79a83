"""The arguments of one real call, kept so that it can be made again later: what they were like, or what they were.

An array is kept as its shape, dtype and sharding, and not by reference: it may be large, and may be donated the moment
after. Everything else (numbers, strings, static objects, the containers around them) is kept as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from jaxprof.workloads.check import is_key

_SEED: Final = 0
_INTEGERS_BELOW: Final = 10


@dataclass(frozen=True, slots=True, eq=False)
class KeptArray:
    """In place of an array."""

    shape: tuple[int, ...]
    dtype: Any
    sharding: Any = None
    """None for a NumPy array, and for what had no place of its own while it was traced."""
    key: str = ""
    """What makes it, where it is an array of typed random keys."""
    weak: bool = False
    value: Any = None
    """A NumPy array, where the values were to be kept and could be."""

    @property
    def devices(self) -> int:
        """How many devices it lay on."""
        return len(self.sharding.device_set) if self.sharding is not None else 1


@dataclass(frozen=True, slots=True, eq=False)
class KeptArguments:
    """The arguments of one call. The leaves are `KeptArray`s and whatever was no array."""

    leaves: tuple[Any, ...]
    structure: Any

    @classmethod
    def of(cls, args: tuple[Any, ...], kwargs: dict[str, Any], *, values: bool) -> KeptArguments:
        """Of the call `(*args, **kwargs)`; with `values`, waits for the arrays and copies them to the host."""
        import jax

        leaves, structure = jax.tree.flatten((args, kwargs))
        return cls(tuple(_kept(leaf, values=values) for leaf in leaves), structure)

    @property
    def arrays(self) -> list[KeptArray]:
        """The arrays among the leaves."""
        return [leaf for leaf in self.leaves if isinstance(leaf, KeptArray)]

    @property
    def devices(self) -> int:
        """The most devices that an array lay on."""
        return max((array.devices for array in self.arrays), default=1)

    @property
    def device(self) -> Any:
        """The first device of the first array that had a place; None where none had one."""
        for array in self.arrays:
            if array.sharding is not None:
                return min(array.sharding.device_set, key=lambda device: device.id)
        return None

    @property
    def made_up(self) -> bool:
        """Whether an array's values will be others than they were."""
        return any(array.value is None for array in self.arrays)

    def made(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments anew. Arrays on one device are NumPy's, so that their transfer can be measured as well; where
        one lay on several, each is where it was."""
        import jax
        import numpy as np

        random = np.random.default_rng(_SEED)
        spread = self.devices > 1
        leaves = [_made(leaf, random, spread=spread) if isinstance(leaf, KeptArray) else leaf for leaf in self.leaves]
        args, kwargs = jax.tree.unflatten(self.structure, leaves)
        return args, kwargs


def _kept(leaf: Any, *, values: bool) -> Any:
    import jax
    import numpy as np

    if isinstance(leaf, np.ndarray):
        return KeptArray(leaf.shape, leaf.dtype, value=leaf.copy() if values else None)
    if not isinstance(leaf, jax.Array):
        return leaf
    weak = bool(getattr(leaf, "weak_type", False))
    if isinstance(leaf, jax.core.Tracer):
        return KeptArray(leaf.shape, leaf.dtype, weak=weak, key=_key_kind(leaf))
    key = _key_kind(leaf)
    value = None
    if values and leaf.is_fully_addressable:
        value = np.array(jax.device_get(jax.random.key_data(leaf) if key else leaf))
    return KeptArray(leaf.shape, leaf.dtype, leaf.sharding, key, weak, value)


def _key_kind(leaf: Any) -> str:
    return key_kind(leaf) if is_key(leaf) else ""


def key_kind(keys: Any) -> str:
    """What makes typed random keys: `threefry2x32`, `rbg`."""
    import jax

    return str(jax.random.key_impl(keys))


def _made(array: KeptArray, random: Any, *, spread: bool) -> Any:
    import jax

    if array.key:
        return _made_key(array, random)
    value = array.value if array.value is not None else _made_up(array, random)
    if array.weak and array.shape == ():
        return jax.numpy.asarray(value.item())
    if not spread:
        return value
    return jax.device_put(value, array.sharding) if array.devices > 1 else jax.numpy.asarray(value)


def _made_key(array: KeptArray, random: Any) -> Any:
    import jax

    if array.value is not None:
        return jax.random.wrap_key_data(array.value, impl=array.key)
    key = jax.random.key(int(random.integers(2**31)), impl=array.key)
    return jax.random.split(key, array.shape) if array.shape else key


def _made_up(array: KeptArray, random: Any) -> Any:
    """Normal numbers for floats, 0 to 9 for integers (0 and 1 where they have fewer bits), as argument specs make."""
    import jax.numpy as jnp
    import numpy as np

    if jnp.issubdtype(array.dtype, np.bool_):
        return random.random(array.shape) < 0.5
    if jnp.issubdtype(array.dtype, np.integer):
        most: Any = jnp.iinfo
        below = min(_INTEGERS_BELOW, int(most(array.dtype).max) + 1)
        return random.integers(below, size=array.shape).astype(array.dtype)
    normal = random.standard_normal(array.shape, dtype=np.float32)
    if jnp.issubdtype(array.dtype, np.complexfloating):
        normal = normal + 1j * random.standard_normal(array.shape, dtype=np.float32)
    return np.asarray(normal).astype(array.dtype)
