"""The kind of an interval, which decides its colour: from the HLO of its kernel, or guessed from its name.

A colour is only a hint: the details give the name and the kind of the interval under the cursor.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

KINDS: Final = (
    "matmul, conv", "fusion", "reduction", "copies", "collective", "kernel", "programs", "dispatch", "waiting", "host",
    "counters",
)  # fmt: skip
"""Every kind, as the legend names it, in its order."""
COUNTER: Final = "counters"
"""Kind of a lane that shows a quantity over time."""
DEVICE_LANES: Final = frozenset({"modules", "steps", "stream", "ops", "thread", "async"})
COUNTED_LANES: Final = frozenset({"stream", "ops", "thread"})
"""Kinds of lanes that hold each kernel once; executions of programs and steps hold them again."""

_DEVICE: Final = (
    ("collective", r"all[-_ ]?(reduce|gather|to[-_ ]?all)|reduce[-_]?scatter|collective|[nr]ccl|permute|"
     r"\bp(sum|max|min)\b|\bsend|\brecv"),
    ("matmul, conv", r"gemm|matmul|\bdot|_dot|conv(olution|[-_.\d]|$)|attention|cublas|cutlass|cudnn|xmma|fft|"
     r"cholesky"),
    ("reduction", r"reduc|sort|top-?k|scatter|window|cumsum|softmax"),
    ("fusion", r"fusion|elementwise|wrapped_"),
    ("copies", r"copy|transpose|transfer|mem(cpy|set)|broadcast|slice|concat|\bpad|infeed|outfeed|gather|update|"
     r"bitcast"),
)  # fmt: skip
_HOST: Final = (
    ("waiting", r"wait|block_?until|await|sleep|idle|synchroni"),
    ("copies", r"transfer|memcpy|copy|BufferFromHost|ToLiteral|device_put"),
    ("dispatch", r"execut|launch|dispatch|enqueue|pjit|PjRt|graph"),
)


def kind_of(lane_kind: str, name: str, op: str | None = None, kernels: Mapping[str, str] | None = None) -> int:
    """Return the index in `KINDS` of an interval called `name` that belongs to `op`. `kernels` maps each op to its kind
    in the HLO."""
    if lane_kind in ("modules", "steps"):
        return KINDS.index("programs")
    if lane_kind not in DEVICE_LANES:
        return _first(_HOST, name, "host")
    in_hlo = kernels.get(op) if kernels and op is not None else None
    return _first(_DEVICE, in_hlo or op or name, "kernel")


def _first(patterns: tuple[tuple[str, str], ...], name: str, otherwise: str) -> int:
    found = (kind for kind, pattern in patterns if re.search(pattern, name, re.IGNORECASE))
    return KINDS.index(next(found, otherwise))
