"""The kind of an interval, which decides its colour: from the HLO of its kernel, or guessed from its name.

A colour is only a hint: the details give the name and the kind of the interval under the cursor.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

KINDS: Final = (
    "matmul", "fusion", "reduction", "move", "collective", "kernel", "program", "dispatch", "wait", "host", "counter",
)  # fmt: skip
"""Every kind, in the order of the legend."""
COUNTER: Final = "counter"
"""Kind of a lane that shows a quantity over time."""
DEVICE_LANES: Final = frozenset({"modules", "steps", "stream", "ops", "thread", "async"})
COUNTED_LANES: Final = frozenset({"stream", "ops", "thread"})
"""Kinds of lanes that hold each kernel once; executions of programs and steps hold them again."""
WORDS: Final = {
    "move": "copies",
    "program": "programs",
    "wait": "waiting",
    "matmul": "matmul, conv",
    "counter": "counters",
}
"""Words of the legend for kinds whose own name is not shown."""

_DEVICE: Final = (
    ("collective", r"all[-_ ]?(reduce|gather|to[-_ ]?all)|reduce[-_]?scatter|collective|[nr]ccl|permute|"
     r"\bp(sum|max|min)\b|\bsend|\brecv"),
    ("matmul", r"gemm|matmul|\bdot|_dot|conv(olution|[-_.\d]|$)|attention|cublas|cutlass|cudnn|xmma|fft|cholesky"),
    ("reduction", r"reduc|sort|top-?k|scatter|window|cumsum|softmax"),
    ("fusion", r"fusion|elementwise|wrapped_"),
    ("move", r"copy|transpose|transfer|mem(cpy|set)|broadcast|slice|concat|\bpad|infeed|outfeed|gather|update|bitcast"),
)  # fmt: skip
_HOST: Final = (
    ("wait", r"wait|block_?until|await|sleep|idle|synchroni"),
    ("move", r"transfer|memcpy|copy|BufferFromHost|ToLiteral|device_put"),
    ("dispatch", r"execut|launch|dispatch|enqueue|pjit|PjRt|graph"),
)


def _compiled(table: tuple[tuple[str, str], ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in table)


_DEVICE_PATTERNS = _compiled(_DEVICE)
_HOST_PATTERNS = _compiled(_HOST)


def kind_of(lane_kind: str, name: str, op: str | None = None, kernels: Mapping[str, str] | None = None) -> int:
    """Return the index in `KINDS` of an interval called `name` that belongs to `op`. `kernels` maps each op to its kind
    in the HLO."""
    if lane_kind in ("modules", "steps"):
        return KINDS.index("program")
    if lane_kind not in DEVICE_LANES:
        return _first(_HOST_PATTERNS, name, "host")
    in_hlo = kernels.get(op) if kernels and op is not None else None
    return _first(_DEVICE_PATTERNS, in_hlo or op or name, "kernel")


def _first(patterns: tuple[tuple[str, re.Pattern[str]], ...], name: str, otherwise: str) -> int:
    return KINDS.index(next((kind for kind, pattern in patterns if pattern.search(name)), otherwise))
