"""What a workload computes is looked at here, and not how quickly: XLA does not try hard."""

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")
def compiled_in_haste():
    before = jax.config.values["jax_disable_most_optimizations"]
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
