"""The catalogue's entries for compiled programs: what XLA's own text shows."""

from __future__ import annotations

from typing import Final

from jaxprof.analysis.explain.entry import CatalogueEntry

_MEANS: Final = {
    "layout-copy": (
        "kernels that only rewrite arrays in another order",
        "Producer and consumer want the dimensions in different orders, so the array is read and written once more.",
    ),
    "dtype-convert": (
        "kernels that only change a dtype",
        "The array is read in one dtype and written in another, with nothing computed on the way.",
    ),
    "float64-on-accelerator": (
        "float64 where it is slow",
        "TPUs emulate float64, and most GPUs compute it at 1/32 or 1/64 of their float32 rate.",
    ),
    "broadcast-materialised": (
        "a broadcast array is written out",
        "A small array is repeated in memory instead of inside the kernel that uses it.",
    ),
    "tiny-kernels": (
        "most launches do next to nothing",
        "A launch takes 2 to 5 µs on a GPU; kernels that move less than 32 KiB take less than that.",
    ),
    "padding": (
        "kernels that only pad",
        "An array is copied to a larger one, to fill a tile or for a convolution.",
    ),
    "odd-sizes": (
        "sizes that do not fill the matrix unit's tiles",
        "Matrix units work on tiles; a size that is no multiple leaves a part of each last tile empty, or rules out "
        "the fastest kernels.",
    ),
    "rematerialisation": (
        "work that is done twice to save memory",
        "Checkpointing (jax.checkpoint, jax.remat) computes in the backward pass what the forward pass did not keep.",
    ),
    "large-constant": (
        "an array is part of the program",
        "A closed-over array became a constant: every compilation copies it, and XLA may try to fold it.",
    ),
    "unused-output": (
        "results that nothing reads",
        "A kernel writes arrays that neither another kernel nor the caller reads.",
    ),
    "attention-scores": (
        "attention stores its scores",
        "The array of scores grows with the square of the sequence, is written and read between kernels, and is the "
        "largest part of the traffic and memory of attention.",
    ),
    "needless-results": (
        "results that the caller already has",
        "The program returns an argument unchanged, a constant, or the same array twice: each is a copy.",
    ),
    "lost-donation": (
        "a step holds its old state beside the new one",
        "Results that update arguments element by element could take their memory; without donation both are held, "
        "which can be half of the device's memory.",
    ),
    "upcast-product": (
        "products wider than their operands",
        "Both operands were 16-bit floats just before: converting them first gains no precision, reads twice the bytes "
        "and runs at half the rate of the matrix units or less.",
    ),
    "precise-product": (
        "float32 products that take several passes",
        "Matrix units compute with bfloat16 or TF32. At `high` or `highest` precision a product is made of several, or "
        "leaves the matrix units.",
    ),
    "narrow-sum": (
        "sums that are rounded to 16 bits at each addition",
        "A bfloat16 has 8 significant bits: a sum of 256 numbers of one size no longer changes when the next one is "
        "added (float16: 2048). What is added after that is lost, unless the backend keeps more "
        "bits than the HLO says.",
    ),
    "resharding": (
        "arrays move between shardings",
        "One operation leaves an array split in one way, and the next takes it split in another, or whole: XLA's "
        "partitioner inserts an all-to-all, a permute or an all-gather between them.",
    ),
    "host-transfer": (
        "kernels that exchange data with the host",
        "A callback or infeed inside the program stops the device until the host has answered; arrays in the host's "
        "memory are copied in each run.",
    ),
    "small-loop-body": (
        "a loop whose iterations are smaller than their overhead",
        "Each iteration launches only tiny kernels, so the loop's own cost is most of its time.",
    ),
}


def hlo_entries() -> tuple[CatalogueEntry, ...]:
    """An entry for each finding; what to do is the finding's own advice."""
    from jaxprof.hlo.analysis.findings.finding import ADVICE

    return tuple(
        CatalogueEntry(code, "hlo", *_MEANS[code], fix=fix, page="hlo.md#findings") for code, fix in ADVICE.items()
    )
