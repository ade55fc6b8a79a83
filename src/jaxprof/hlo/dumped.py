"""What XLA's GPU compiler writes beside a module: why it did not fuse kernels.

The pass `priority-fusion` dumps its steps (`NAME.priority_fusion_dump.txt`, the text form of XLA's
`FusionProcessDumpProto`) if `--xla_dump_hlo_pass_re` names it. The last step about a producer holds the final reason.

The reasons are kept as comments at the end of the module's text, so that they go wherever the text goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from jaxprof.base.text import number

if TYPE_CHECKING:
    from jaxprof.hlo.text.model import Module

DUMP_ENDING = ".priority_fusion_dump.txt"
DUMP_PASS = "priority-fusion"
"""Name of the pass for `--xla_dump_hlo_pass_re`."""
_STEP = re.compile(r"^fusion_steps \{\s+(\w+) \{\n(.*?)^  \}\n\}", re.MULTILINE | re.DOTALL)
_FUSION_FIELD = re.compile(r'^\s+(\w+): (?:"((?:[^"\\]|\\.)*)"|([-\d.e+]+))\s*$', re.MULTILINE)
_REASON = re.compile(r"^// XLA priority-fusion: (\S+): (.*)$", re.MULTILINE)
_MOST_CHARACTERS = 300
"""Most characters of one reason."""


def with_reasons(text: str, dump: str) -> str:
    """Return the HLO text of one module with XLA's reasons from `dump` as comments at its end."""
    reasons = _final_reasons(dump)
    comments = "".join(f"// XLA priority-fusion: {name}: {reason}\n" for name, reason in reasons)
    return f"{text}{'' if text.endswith(chr(10)) else chr(10)}{comments}" if comments else text


def stated(module: Module) -> dict[str, str]:
    """Return XLA's reason for each producer that it did not fuse, by the producer's name; empty if none are kept."""
    text = module.source.text
    after_computations = max(text.rfind("\n}"), 0)
    return dict(_REASON.findall(text, after_computations))


def _final_reasons(dump: str) -> Iterator[tuple[str, str]]:
    words: dict[str, str] = {}
    for step in _STEP.finditer(dump):
        fields = {name: quoted or bare for name, quoted, bare in _FUSION_FIELD.findall(step[2])}
        producer = fields.get("producer_name", "")
        words.pop(producer, None)
        if step[1] == "producer_ineligible":
            words[producer] = fields.get("reason", "")
        elif step[1] == "update_priority":
            fused, apart = number(fields.get("us_fused", "")), number(fields.get("us_unfused", ""))
            if fused is not None and apart is not None and fused > apart:
                words[producer] = f"{fused:.4g} µs as one kernel, {apart:.4g} µs apart, by its cost model"
    for producer, reason in words.items():
        plain = " ".join(reason.replace("\\n", " ").split())[:_MOST_CHARACTERS]
        if producer and plain and not producer.split()[1:]:
            yield producer, plain
