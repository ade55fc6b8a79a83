"""The platform that a module was compiled for, and whether it was compiled, derived from its text alone.

No field of HLO text says it. Backends leave marks: tiled layouts and `S(5)` with VMEM settings on TPUs, library targets
and code generators on GPUs, thread partitions and YNNPACK or oneDNN fusions on CPUs.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from jaxprof.hlo.model import Module

_MARKS: Final = (
    ("tpu", re.compile(r"\{[\d,]*:T\(\d+(,\d+)?\)|window_config|tpu_custom_call")),
    (
        "gpu",
        re.compile(
            r"__cu(blas|dnn|b)\$|__triton|operation_queue_id|triton_kernel_call|cu(solver|fft|blas)_|__hip|hipsolver_"
            r"|scheduling_name=|%(loop|input)_\w*fusion"
        ),
    ),
    ("cpu", re.compile(r"__ynn_fusion|outer_dimension_partitions|__onednn|lapack_|xla_cpu_|_cpu_callback")),
)
_LOOKED_AT: Final = 4 << 20


def platform_of(module: Module) -> str:
    """Return `cpu`, `gpu`, `tpu`, or empty if the text bears no mark (a module before optimisation)."""
    start, end = module.span
    text = module.source.text
    limit = min(end, start + _LOOKED_AT)
    return next((name for name, mark in _MARKS if mark.search(text, start, limit)), "")


def is_optimised(module: Module) -> bool:
    """Return whether XLA's passes have run: the module is scheduled, or holds fusions."""
    start, end = module.span
    return module.is_scheduled or module.source.text.find(" fusion(", start, end) >= 0
