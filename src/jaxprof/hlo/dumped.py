"""What XLA's GPU compiler writes beside a module: why it did not fuse kernels.

The pass `priority-fusion` dumps its steps (`NAME.priority_fusion_dump.txt`, the text form of XLA's
`FusionProcessDumpProto`) if `--xla_dump_hlo_pass_re` names it. The last step about a producer holds the final reason.
Passes after it rename most kernels, so a reason goes to the kernel that computes what the producer does in the module
as it was dumped right after the pass.

The reasons are kept as comments at the end of the module's text, so that they go wherever the text goes.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.base.errors import HloError
from jaxprof.base.grouping import grouped
from jaxprof.base.text import number
from jaxprof.hlo.text.files import read_text

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


def with_reasons(text: str, dump: str, after: str = "") -> str:
    """Return the HLO text of one module with XLA's reasons from `dump` as comments at its end. `after`: the module as
    it was dumped right after the pass, if it was."""
    reasons: Iterable[tuple[str, str]] = _final_reasons(dump)
    if after:
        reasons = _of_final_kernels(dict(reasons), text, after)
    comments = "".join(f"// XLA priority-fusion: {name}: {reason}\n" for name, reason in reasons)
    return f"{text}{'' if text.endswith(chr(10)) else chr(10)}{comments}" if comments else text


def stated(module: Module) -> dict[str, str]:
    """Return XLA's reason for each producer that it did not fuse, by the producer's name; empty if none are kept."""
    text = module.source.text
    after_computations = max(text.rfind("\n}"), 0)
    return dict(_REASON.findall(text, after_computations))


def reasons_beside(folder: Path, text: str, name: str = "") -> str:
    """Return the HLO text of the module that was dumped last in `folder` (or of the module `name`, such as
    `module_0001.jit_step`), with XLA's reasons from the dumps there, if there are any."""
    steps = sorted(folder.glob(f"{glob.escape(name)}{'' if name else '*'}{DUMP_ENDING}"))
    if not steps:
        return text
    stem = glob.escape(steps[-1].name.removesuffix(DUMP_ENDING))
    after = sorted(folder.glob(f"{stem}.*.after_{DUMP_PASS}.*.txt"))
    return with_reasons(text, read_text(steps[-1]), read_text(after[-1]) if after else "")


def _of_final_kernels(reasons: Mapping[str, str], text: str, after: str) -> Iterator[tuple[str, str]]:
    """Yield the names of the kernels of the final module with the reasons that were given to their former names. Of
    kernels that compute the same, some may have had another reason or none: then these are left out."""
    from jaxprof.hlo.fingerprint import Fingerprints  # not to read a text
    from jaxprof.hlo.text.parse import module

    try:
        before, final = module(after), module(text)
    except HloError:
        return

    def kernels(of: Module) -> Iterator[tuple[str, str]]:
        fingerprints = of.once(Fingerprints)
        for computation in of.computations.values():
            for instruction in computation.instructions:
                # By what is fused: operands get other layouts and names. Other kernels keep their names.
                if instruction.opcode == "fusion" and instruction.called:
                    yield fingerprints.of(instruction.called[0]), instruction.name
                elif instruction.name in reasons:
                    yield f"{instruction.name} {instruction.opcode}", instruction.name

    given = grouped((key, reasons.get(name, "")) for key, name in kernels(before))
    for key, name in kernels(final):
        alike = set(given.get(key, ()))
        if len(alike) == 1 and (reason := alike.pop()):
            yield name, reason


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
