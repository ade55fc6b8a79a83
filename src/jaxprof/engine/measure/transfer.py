"""Copies between host and device, sampled like a run: each one is awaited, with its bytes; if nothing was copied, the
transfer is reported as a zero-copy.

On a CPU, JAX shares a NumPy array that is aligned to 64 bytes, and hands out its own buffers as NumPy arrays. A
comparison of addresses identifies such a transfer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxprof.base.values import frozen
from jaxprof.engine.measure.control import PhaseReport, Reporter
from jaxprof.engine.measure.sampling import CallSampler, Plan, Trial

BUDGET_SHARE = 0.25
"""Share of the run's budget for each direction, at most `BUDGET_SECONDS`."""
BUDGET_SECONDS = 1.0


@frozen
class Arguments:
    """A call's arguments as a flat list, and which of them are NumPy arrays that go to the device."""

    leaves: tuple[Any, ...]
    structure: Any
    on_host: tuple[int, ...]

    @classmethod
    def of(cls, arguments: tuple[Any, ...]) -> Arguments:
        """Flatten the arguments of one call. Python scalars stay as they are, because a call passes them itself."""
        leaves, structure = jax.tree.flatten(arguments)
        return cls(tuple(leaves), structure, tuple(i for i, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray)))

    def host_arrays(self) -> list[Any]:
        return [self.leaves[index] for index in self.on_host]

    def with_device_arrays(self, device_arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Return the arguments with their NumPy arrays replaced by `device_arrays`. JAX's own arrays are committed to
        the device of these, as they are: a state that a call replaces by its results, which are committed beside such
        arguments, would be another kind of argument in the next call, and compiled again."""
        leaves = list(self.leaves)
        devices = next((array.devices() for array in device_arrays if isinstance(array, jax.Array)), set())
        for index, leaf in enumerate(leaves):
            if len(devices) == 1 and isinstance(leaf, jax.Array) and leaf.devices() == devices:
                leaves[index] = jax.device_put(leaf, *devices)
        for index, array in zip(self.on_host, device_arrays, strict=True):
            leaves[index] = array
        arguments: tuple[Any, ...] = jax.tree.unflatten(self.structure, leaves)
        return arguments

    def fresh(self, device: Any) -> tuple[Any, ...]:
        """Return arguments whose buffers nothing else holds, for a call that consumes (donates) them."""
        leaves = tuple(jnp.copy(leaf) if isinstance(leaf, jax.Array) else leaf for leaf in self.leaves)
        moved = [jnp.copy(jax.device_put(array, device)) for array in self.host_arrays()]
        arguments: tuple[Any, ...] = jax.block_until_ready(replace(self, leaves=leaves).with_device_arrays(moved))
        return arguments


def transfer_in(
    reporter: Reporter, sampler: CallSampler, arguments: Arguments, device: Any, budget_seconds: float
) -> tuple[Any, ...]:
    """Put the arguments on `device`, timed as phase `transfer_in`; return them in the form that the calls need."""
    host = arguments.host_arrays()
    if not host:
        return arguments.with_device_arrays([])
    placed: list[Any] = []

    def move(_: Any) -> None:
        placed.extend(jax.block_until_ready(jax.device_put(host, device)))

    trial = Trial(prepare=lambda calls: placed.clear(), make=move)
    with reporter.phase("transfer_in") as phase:
        first = sampler.take(trial)
        moved = sum(array.nbytes for array in placed)
        shared = [array.nbytes for source, array in zip(host, placed, strict=True) if _same_memory(source, array)]
        _describe(reporter, "in", phase, moved, sum(shared))
        sampler.sample(trial, _plan("transfer_in", budget_seconds), first)
    return arguments.with_device_arrays(placed)


def transfer_out(reporter: Reporter, sampler: CallSampler, output: Any, budget_seconds: float) -> None:
    """Fetch the arrays of `output` to the host, timed as phase `transfer_out`.

    An array keeps the NumPy value that was once made from it, so each fetch uses a fresh copy made on the device.
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
    with reporter.phase("transfer_out") as phase:
        copies = fresh(1)
        fetch(copies)
        shared = [array.nbytes for array, target in zip(copies, fetched, strict=True) if _same_memory(target, array)]
        _describe(reporter, "out", phase, sum(array.nbytes for array in arrays), sum(shared))
        del copies
        first = sampler.take(trial)
        sampler.sample(trial, _plan("transfer_out", budget_seconds), first)


def output_bytes(output: Any) -> int:
    return sum(int(leaf.nbytes) for leaf in jax.tree.leaves(output) if _is_fetchable(leaf))


def _plan(series: str, budget_seconds: float) -> Plan:
    share = min(BUDGET_SECONDS, BUDGET_SHARE * budget_seconds)
    return Plan(series=series, budget_seconds=share, least_share=0.2, calls_per_sample=1)


def _describe(reporter: Reporter, direction: str, phase: PhaseReport, moved: int, shared: int) -> None:
    phase.bytes = moved
    phase.zero_copy = moved > 0 and shared == moved
    if phase.zero_copy:
        reporter.shared_transfers.append(direction)
    if 0 < shared < moved:
        phase.note = f"{shared} of {moved} bytes are shared, not copied"


def _is_fetchable(leaf: Any) -> bool:
    """Whether a leaf is a JAX array with a NumPy value here: not a random key, and not an array of other hosts."""
    if not isinstance(leaf, jax.Array) or not leaf.is_fully_addressable:
        return False
    return not jnp.issubdtype(leaf.dtype, jax.dtypes.extended)


def passes_through(arguments: Any, output: Any) -> bool:
    """Whether every array of `output` begins where an array of `arguments` begins: the call passed them through, as
    `device_put` of an aligned NumPy array does on a CPU. Not for calls that consume their arguments."""
    made = [leaf for leaf in jax.tree.leaves(output) if getattr(leaf, "nbytes", 0)]
    given = {address(leaf) for leaf in jax.tree.leaves(arguments)} - {None}
    return bool(made) and all(address(leaf) in given for leaf in made)


def _same_memory(host: Any, device_array: Any) -> bool:
    """Whether a NumPy array and a JAX array hold their data at the same address."""
    if not isinstance(host, np.ndarray) or host.nbytes == 0:
        return False
    return address(host) == address(device_array)


def address(array: Any) -> int | None:
    """Return the address of an array's data; None for anything else, and if there is no single address."""
    if isinstance(array, np.ndarray):
        return int(array.ctypes.data)
    if not isinstance(array, jax.Array):
        return None
    try:
        return int(array.unsafe_buffer_pointer())
    except (RuntimeError, ValueError, NotImplementedError, TypeError):  # over several devices, or a random key
        return None
