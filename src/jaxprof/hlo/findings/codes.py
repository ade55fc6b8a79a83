"""Every finding about HLO: its code, what it means, how to fix it, and what its kernels' time says about its cost.

The checks are in the files beside this one. This table imports no analysis, so that it can be printed without loading
them.
"""

from __future__ import annotations

from typing import Literal

from jaxprof.base.values import frozen


@frozen
class HloFindingKind:
    """What holds for all findings of one code."""

    title: str
    means: str
    fix: str
    saves: Literal["", "all", "part"] = ""
    """What the fix saves of its kernels' time: all of it, as they do nothing else; a part, as they also do necessary
    work; empty if their time says nothing."""
    holds: bool = False
    """Whether the bytes are memory that is held, not traffic."""


HLO_FINDINGS: dict[str, HloFindingKind] = {
    "layout_copy": HloFindingKind(
        "kernels that only rewrite arrays in another order",
        "Producer and consumer want the dimensions in different orders, so the array is read and written once more.",
        "Let producer and consumer agree on the order of dimensions: transpose once, outside the hot path, or write "
        "the contraction so that it takes the array in its present order (einsum).",
        saves="all",
    ),
    "dtype_convert": HloFindingKind(
        "kernels that only change a dtype",
        "The array is read in one dtype and written in another, with nothing computed on the way.",
        "Keep the array in one dtype along the path, or cast where it is smallest; parameters that are cast at each "
        "step can be kept in the narrow dtype as well.",
        saves="all",
    ),
    "float64_on_accelerator": HloFindingKind(
        "float64 where it is slow",
        "TPUs emulate float64, and most GPUs compute it at 1/32 or 1/64 of their float32 rate.",
        "Use float32 unless the result needs more; look for a NumPy constant or jax_enable_x64.",
        saves="part",
    ),
    "broadcast_materialised": HloFindingKind(
        "a broadcast array is written out",
        "A small array is repeated in memory instead of inside the kernel that uses it.",
        "Pass the small array and let XLA broadcast it inside the kernel that uses it; library calls and sorts need "
        "whole arrays.",
        saves="all",
    ),
    "tiny_kernels": HloFindingKind(
        "most launches do next to nothing",
        "A launch takes 2 to 5 µs on a GPU; kernels that move less than 32 KiB take less than that.",
        "Stack the small arrays and process them together (vmap, one concatenated array), or let one scan iteration "
        "do several steps (unroll).",
        saves="part",
    ),
    "padding": HloFindingKind(
        "kernels that only pad",
        "An array is copied to a larger one, to fill a tile or for a convolution.",
        "Choose sizes that need no padding, or pad once, outside the hot path.",
        saves="all",
    ),
    "odd_sizes": HloFindingKind(
        "sizes that do not fill the matrix unit's tiles",
        "Matrix units work on tiles; a size that is no multiple leaves a part of each last tile empty, or rules out "
        "the fastest kernels.",
        "Make the sizes multiples of the matrix unit's tile: a vocabulary of 50304 costs less than one of 50257.",
    ),
    "rematerialisation": HloFindingKind(
        "work that is done twice to save memory",
        "Checkpointing (jax.checkpoint, jax.remat) computes in the backward pass what the forward pass did not keep.",
        "Recomputation trades time for memory. If memory allows, checkpoint less (a policy such as dots_saveable) or "
        "not at all.",
        saves="all",
    ),
    "large_constant": HloFindingKind(
        "an array is part of the program",
        "A closed-over array became a constant: every compilation copies it, and folding it can take minutes.",
        "Pass the array as an argument.",
        holds=True,
    ),
    "unused_output": HloFindingKind(
        "results that nothing reads",
        "A kernel writes arrays that neither another kernel nor the caller reads.",
        "Compute only what is used: a sort without its keys, a decomposition without its vectors.",
    ),
    "attention_scores": HloFindingKind(
        "attention stores its scores",
        "The array of scores grows with the square of the sequence, is written and read between kernels, and is the "
        "largest part of the traffic and memory of attention.",
        "Let one kernel compute all of it: jax.nn.dot_product_attention(implementation='cudnn') on GPUs, a "
        "flash-attention kernel (Pallas) on TPUs; or process a block of queries at a time, so that the scores stay "
        "small.",
        saves="part",
    ),
    "lost_donation": HloFindingKind(
        "a step holds its old state beside the new one",
        "Results that update arguments element by element could take their memory; without donation both are held, "
        "which can be half of the device's memory.",
        "Donate the arguments that are replaced: jax.jit(step, donate_argnums=...) lets a result reuse the memory of "
        "the argument that it updates. Only if the caller does not use the old array again.",
        holds=True,
    ),
    "upcast_product": HloFindingKind(
        "products wider than their operands",
        "Both operands were 16-bit floats just before: converting them first gains no precision, reads twice the "
        "bytes and runs at half the rate of the matrix units or less.",
        "Give the product the 16-bit arrays themselves: jnp.matmul(a, b, preferred_element_type=jnp.float32) still "
        "accumulates in float32, at twice the rate or more.",
        saves="part",
    ),
    "precise_product": HloFindingKind(
        "float32 products that take several passes",
        "Matrix units compute with bfloat16 or TF32. At `high` or `highest` precision a product is made of several, "
        "or leaves the matrix units.",
        "Use the default precision if the result stays accurate enough: jax_default_matmul_precision, or "
        "precision=None on the product. On a TPU `highest` takes six passes; on a GPU it rules out TF32.",
        saves="part",
    ),
    "host_transfer": HloFindingKind(
        "kernels that exchange data with the host",
        "A callback or infeed inside the program stops the device until the host has answered; arrays in the host's "
        "memory are copied in each run.",
        "Keep the loop on the device: call back less often, or after the step; move arrays from the host's memory "
        "(pinned_host) to the device if they fit.",
        saves="all",
    ),
    "resharding": HloFindingKind(
        "arrays move between shardings",
        "One operation leaves an array split in one way, and the next takes it split in another, or whole: XLA's "
        "partitioner inserts an all-to-all, a permute or an all-gather between them.",
        "Let the operations on both sides split the array along the same dimension: give parameters, inputs and "
        "jax.lax.with_sharding_constraint the same axes, or split a dimension that the operation does not work over. "
        "If resharding is needed, do it where the array is smallest or has the narrowest dtype.",
        saves="part",
    ),
    "small_loop_body": HloFindingKind(
        "a loop whose iterations are smaller than their overhead",
        "Each iteration launches only tiny kernels, so the loop's own cost is most of its time.",
        "Do more in each iteration: unroll the scan, batch over another axis, or write the recurrence as an "
        "associative scan.",
        saves="part",
    ),
}
"""The findings by their codes."""
