"""The configuration that holds in the calling thread: what of it makes JAX trace or compile again."""

from __future__ import annotations

from typing import Any, Final

CONFIG_NAMES: Final = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_default_prng_impl",
    "jax_threefry_partitionable",
    "jax_default_device",
    "jax_debug_nans",
    "jax_debug_infs",
    "jax_disable_most_optimizations",
)
"""What of `jax.config` makes JAX trace or compile again, under its public names."""


class ConfigurationReader:
    """Reads the configuration into words. It rarely changes: the same words are the same object."""

    def __init__(self) -> None:
        self._values: tuple[Any, ...] = ()
        self._words: tuple[tuple[str, str], ...] = ()

    def read(self, jax: Any) -> tuple[tuple[str, str], ...]:
        """Each name with its value, as it holds in this thread now, and the mesh that is set, if any."""
        config = jax.config
        get_mesh = getattr(jax.sharding, "get_abstract_mesh", None)
        mesh = get_mesh() if get_mesh is not None else None
        if mesh is not None and mesh.empty:
            mesh = None
        values = (*[getattr(config, name, None) for name in CONFIG_NAMES], mesh)
        if values != self._values:
            words = [(name, _words(value)) for name, value in zip(CONFIG_NAMES, values, strict=False)]
            if mesh is not None:
                words.append(("mesh", ", ".join(f"{name}: {size}" for name, size in mesh.shape.items())))
            self._values, self._words = values, tuple(words)
        return self._words


def _words(value: Any) -> str:
    return str(value) if value is None or type(value) in (bool, int, float, str) else str(getattr(value, "name", value))
