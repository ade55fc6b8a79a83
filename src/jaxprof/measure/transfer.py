"""Copies between host and device, sampled like a run: blocked at every one, with their bytes, and called what they are
where nothing was copied.

On a CPU, JAX shares a NumPy array that is aligned to 64 bytes, and gives its own buffers out as NumPy arrays: compared
by address, such a transfer is named a zero-copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxprof.measure.recorder import Phase, Recorder
from jaxprof.measure.sampling import Plan, Sampler, Trial

BUDGET_SHARE = 0.25
"""Of the run's budget, for each direction, and at most `BUDGET_SECONDS`."""
BUDGET_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call as a flat list, and which of them are NumPy arrays that go to the device."""

    leaves: tuple[Any, ...]
    structure: Any
    on_host: tuple[int, ...]

    @classmethod
    def of(cls, arguments: tuple[Any, ...]) -> Arguments:
        """Of the arguments of one call. Python scalars stay what they are: a call carries them itself."""
        leaves, structure = jax.tree.flatten(arguments)
        return cls(tuple(leaves), structure, tuple(i for i, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray)))

    def host_arrays(self) -> list[Any]:
        """The arrays that a transfer moves."""
        return [self.leaves[index] for index in self.on_host]

    def placed(self, device_arrays: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments with their NumPy arrays replaced by `device_arrays`."""
        leaves = list(self.leaves)
        for index, array in zip(self.on_host, device_arrays, strict=True):
            leaves[index] = array
        arguments: tuple[Any, ...] = jax.tree.unflatten(self.structure, leaves)
        return arguments

    def fresh(self, device: Any) -> tuple[Any, ...]:
        """A set of arguments whose buffers nobody else has: for a call that consumes (donates) them."""
        leaves = [jnp.copy(leaf) if isinstance(leaf, jax.Array) else leaf for leaf in self.leaves]
        for index in self.on_host:
            leaves[index] = jnp.copy(jax.device_put(self.leaves[index], device))
        arguments: tuple[Any, ...] = jax.tree.unflatten(self.structure, jax.block_until_ready(leaves))
        return arguments


def transfer_in(
    recorder: Recorder, sampler: Sampler, arguments: Arguments, device: Any, budget_seconds: float
) -> tuple[Any, ...]:
    """Puts the arguments on `device`, timed as phase `transfer_in`; gives them as the calls want them."""
    host = arguments.host_arrays()
    if not host:
        return arguments.placed([])
    placed: list[Any] = []

    def put(_: Any) -> None:
        placed.extend(jax.block_until_ready(jax.device_put(host, device)))

    trial = Trial(prepare=lambda calls: placed.clear(), make=put)
    with recorder.phase("transfer_in") as phase:
        first = sampler.take(trial)
        moved = sum(array.nbytes for array in placed)
        shared = [array.nbytes for one, array in zip(host, placed, strict=True) if _same_memory(one, array)]
        _describe(recorder, "in", phase, moved, sum(shared))
        sampler.sample(trial, _plan("transfer_in", budget_seconds), first)
    return arguments.placed(placed)


def transfer_out(recorder: Recorder, sampler: Sampler, output: Any, budget_seconds: float) -> None:
    """Fetches the arrays of `output` to the host, timed as phase `transfer_out`.

    An array keeps the NumPy value that was once made of it, so each fetch is of a fresh copy made on the device.
    """
    arrays = [leaf for leaf in jax.tree.leaves(output) if _is_fetchable(leaf)]
    if not arrays:
        return
    fetched: list[Any] = []

    def fresh(calls: int) -> list[Any]:
        fetched.clear()
        return list(jax.block_until_ready([jnp.copy(array) for array in arrays for _ in range(calls)]))

    def fetch(copies: list[Any]) -> None:
        fetched.extend(jax.device_get(copies) if len(copies) > 1 else [np.asarray(copies[0])])

    trial = Trial(prepare=fresh, make=fetch)
    with recorder.phase("transfer_out") as phase:
        copies = fresh(1)
        fetch(copies)
        shared = [array.nbytes for array, one in zip(copies, fetched, strict=True) if _same_memory(one, array)]
        _describe(recorder, "out", phase, sum(array.nbytes for array in arrays), sum(shared))
        del copies
        first = sampler.take(trial)
        sampler.sample(trial, _plan("transfer_out", budget_seconds), first)


def output_bytes(output: Any) -> int:
    """Bytes of the arrays in a result."""
    return sum(int(leaf.nbytes) for leaf in jax.tree.leaves(output) if _is_fetchable(leaf))


def _plan(series: str, budget_seconds: float) -> Plan:
    share = min(BUDGET_SECONDS, BUDGET_SHARE * budget_seconds)
    return Plan(series=series, budget_seconds=share, least_share=0.2, calls_per_sample=1)


def _describe(recorder: Recorder, direction: str, phase: Phase, moved: int, shared: int) -> None:
    phase.bytes = moved
    phase.zero_copy = moved > 0 and shared == moved
    if phase.zero_copy:
        recorder.shared_transfers.append(direction)
    if 0 < shared < moved:
        phase.note = f"{shared} of {moved} bytes are shared, not copied"


def _is_fetchable(leaf: Any) -> bool:
    """Whether it is a JAX array that has a NumPy value here: no random key, and no array of other hosts."""
    if not isinstance(leaf, jax.Array) or not leaf.is_fully_addressable:
        return False
    return not jnp.issubdtype(leaf.dtype, jax.dtypes.extended)


def _same_memory(host: Any, device_array: Any) -> bool:
    """Whether a NumPy array and a JAX array hold their data at the same address."""
    if not isinstance(host, np.ndarray) or host.nbytes == 0:
        return False
    try:
        return bool(host.ctypes.data == device_array.unsafe_buffer_pointer())
    except (RuntimeError, ValueError, NotImplementedError):  # an array of several devices has no single address
        return False
