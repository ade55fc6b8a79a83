"""A finding as a value, and the advice that belongs to each code. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found."""

    code: str
    message: str
    advice: str
    where: tuple[str, ...]
    """Names of kernels or instructions, those that weigh most first."""
    bytes: int | None = None
    """Traffic of one run that it stands for, where that is its measure."""


ADVICE: Final[dict[str, str]] = {
    "layout-copy": "Let producer and consumer agree on the order of dimensions: transpose once, outside the hot path, "
    "or write the contraction so that it takes the array as it lies (einsum).",
    "dtype-convert": "Keep the array in one dtype along the path, or cast where it is smallest; parameters that are "
    "cast at each step can be kept in the narrow dtype as well.",
    "float64-on-accelerator": "Use float32 unless the result needs more: TPUs emulate float64, and most GPUs have "
    "1/32 or 1/64 of their rate for it. Look for a NumPy constant or jax_enable_x64.",
    "broadcast-materialised": "Compute with the small array and let XLA broadcast inside the kernel that uses it; a "
    "library call or a sort takes only whole arrays.",
    "tiny-kernels": "Stack the small arrays and treat them at once (vmap, one concatenated array), or let a scan take "
    "several steps in one (unroll).",
    "padding": "Choose sizes that need no padding, or pad once, outside the hot path.",
    "odd-sizes": "Make the sizes multiples of the matrix unit's tile: a vocabulary of 50304 costs less than one of "
    "50257.",
    "rematerialisation": "Memory was bought with time. Where memory allows, checkpoint less (a policy such as "
    "dots_saveable), or not at all.",
    "large-constant": "Pass the array as an argument: as a constant it is compiled into the program, copied by every "
    "compilation, and may be folded for minutes.",
    "unused-output": "Ask only for what is used: a sort without its keys, a decomposition without its vectors.",
    "host-transfer": "Keep the loop on the device: call back less often, or after the step; io_callback and "
    "pure_callback stop the device until the host has answered.",
    "small-loop-body": "Let one turn do more: unroll the scan, batch over another axis, or write the recurrence as an "
    "associative scan.",
}
"""What to do about each finding, by its code."""
