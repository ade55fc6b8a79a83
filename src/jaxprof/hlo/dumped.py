"""What XLA's GPU compiler writes beside a module: why it did not fuse kernels, and how its runtime launches each
instruction.

The pass `priority-fusion` dumps its steps (`NAME.priority_fusion_dump.txt`, the text form of XLA's
`FusionProcessDumpProto`) if `--xla_dump_hlo_pass_re` names it. The last step about a producer holds the final reason.

`NAME.thunk_sequence_after_thunk_passes.txt` (before command buffers are made: `NAME.thunk_sequence.txt`) has a line for
each thunk, those of loops and command buffers indented below theirs; `NAME.thunk_metadata.txt` has the instruction that
each thunk is for. The format is that of `Thunk::ToString` and `ThunkMetadataListProto` in XLA, as jaxlib 0.10 writes
them.

Both are kept as comments at the end of the module's text, so that they go wherever the text goes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from jaxprof.units import bytes_, counted, integer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jaxprof.hlo.model import Module

DUMP_ENDING: Final = ".priority_fusion_dump.txt"
DUMP_PASS: Final = "priority-fusion"
"""Name of the pass for `--xla_dump_hlo_pass_re`."""
_STEP: Final = re.compile(r"^fusion_steps \{\s+(\w+) \{\n(.*?)^  \}\n\}", re.MULTILINE | re.DOTALL)
_FUSION_FIELD: Final = re.compile(r'^\s+(\w+): (?:"((?:[^"\\]|\\.)*)"|([-\d.e+]+))\s*$', re.MULTILINE)
_REASON: Final = re.compile(r"^// XLA priority-fusion: (\S+): (.*)$", re.MULTILINE)
_MOST_CHARACTERS: Final = 300
"""Most characters of one reason."""


def with_reasons(text: str, dump: str) -> str:
    """Return the HLO text of one module with XLA's reasons from `dump` as comments at its end."""
    reasons = _final_reasons(dump)
    return _with_comments(text, "".join(f"// XLA priority-fusion: {name}: {reason}\n" for name, reason in reasons))


def stated(module: Module) -> dict[str, str]:
    """Return XLA's reason for each producer that it did not fuse, by the producer's name; empty if none are kept."""
    return module.once(_stated)


def _stated(module: Module) -> dict[str, str]:
    text = module.source.text
    return dict(_REASON.findall(text, _comments_begin(text)))


def _final_reasons(dump: str) -> Iterator[tuple[str, str]]:
    words: dict[str, str] = {}
    for step in _STEP.finditer(dump):
        fields = {name: quoted or number for name, quoted, number in _FUSION_FIELD.findall(step[2])}
        producer = fields.get("producer_name", "")
        words.pop(producer, None)
        if step[1] == "producer_ineligible":
            words[producer] = fields.get("reason", "")
        elif step[1] == "update_priority":
            fused, apart = _microseconds(fields.get("us_fused")), _microseconds(fields.get("us_unfused"))
            if fused is not None and apart is not None and fused > apart:
                words[producer] = f"{fused:.4g} µs as one kernel, {apart:.4g} µs apart, by its cost model"
    for producer, reason in words.items():
        plain = " ".join(reason.replace("\\n", " ").split())[:_MOST_CHARACTERS]
        if producer and plain and not producer.split()[1:]:
            yield producer, plain


def _microseconds(number: str | None) -> float | None:
    try:
        return float(number or "")
    except ValueError:
        return None


SEQUENCE_ENDINGS: Final = (".thunk_sequence_after_thunk_passes.txt", ".thunk_sequence.txt")
"""The best first."""
METADATA_ENDING: Final = ".thunk_metadata.txt"
_NUMBER: Final = r"\d{1,12}"
"""Sizes of more digits are no sizes: a text can come from anywhere."""
_SHAPE: Final = rf"{_NUMBER}x{_NUMBER}x{_NUMBER}"
_THUNK: Final = re.compile(r"^(?P<indent> *)(?P<number>\d{1,9}): k(?P<kind>[A-Za-z]+)(?P<rest>[^\n]*)", re.MULTILINE)
_SIZES: Final = re.compile(
    rf"grid: \[({_NUMBER}), ({_NUMBER}), ({_NUMBER})\] threads: \[({_NUMBER}), ({_NUMBER}), ({_NUMBER})\]"
    rf"(?:\s+shared_memory: ({_NUMBER}) bytes)?"
)
_METADATA: Final = re.compile(r"^thunk_metadata \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_THUNK_FIELD: Final = re.compile(r'^\s+(profile_annotation|thunk_id): (?:"([^"\\\s]+)"|(\d+))\s*$', re.MULTILINE)
_LAUNCHES: Final = re.compile(
    r"^// XLA thunks: (?P<name>\S+): (?P<kinds>\w+(?:,\w+)*)"
    rf"(?: grid=(?P<grid>{_SHAPE}) block=(?P<block>{_SHAPE})(?: shared=(?P<shared>{_NUMBER}))?)?"
    rf"(?: buffer=(?P<buffer>{_NUMBER}))?$",
    re.MULTILINE,
)
_HOLDERS: Final = frozenset({"CommandBuffer", "While", "Conditional", "Sequential"})
"""Thunks that launch nothing themselves."""


class Launches(NamedTuple):
    """What the runtime starts for one execution of an instruction."""

    kinds: tuple[str, ...]
    """Thunks in order, in XLA's words: `CustomKernel`, `Copy`, `Gemm`."""
    grid: tuple[int, ...] | None = None
    """Blocks of the first kernel, x, y, z; None for a copy, or a library that chooses by itself."""
    block: tuple[int, ...] | None = None
    """Threads of a block, x, y, z."""
    shared_bytes: int | None = None
    """Shared memory of a block."""
    command_buffer: int | None = None
    """Number of the command buffer (a CUDA graph) that holds it, from 1; None outside one."""

    @property
    def parts(self) -> list[str]:
        """What is known of it in words, one entry for each figure."""
        parts = [counted(len(self.kinds), "launch", "launches") + f" ({', '.join(self.kinds)})"]
        if self.grid is not None and self.block is not None:
            parts.append(f"{_product(self.grid, 'block')} of {_product(self.block, 'thread')}")
        if self.shared_bytes:
            parts.append(f"{bytes_(self.shared_bytes)} of shared memory")
        if self.command_buffer is not None:
            parts.append(f"in command buffer {self.command_buffer}")
        return parts


def _product(sizes: tuple[int, ...], one: str) -> str:
    """Return `1 block`, `32 blocks`, `8 × 2 blocks`."""
    factors = [integer(size) for size in sizes if size != 1]
    return f"{' × '.join(factors)} {one}s" if factors else f"1 {one}"


def with_launches(text: str, sequence: str, metadata: str) -> str:
    """Return the HLO text of one module with its launches as comments at its end."""
    return _with_comments(text, "".join(_comments(sequence, _instructions(metadata))))


def thunk_files(folder: Path, stem: str) -> tuple[Path, Path] | None:
    """Return the files of the sequence and the metadata of the module `stem`; None if XLA wrote none."""
    metadata = folder / f"{stem}{METADATA_ENDING}"
    sequence = next((path for end in SEQUENCE_ENDINGS if (path := folder / f"{stem}{end}").is_file()), None)
    return (sequence, metadata) if sequence is not None and metadata.is_file() else None


def launches(module: Module) -> dict[str, Launches]:
    """Return the launches of each instruction, by its name; empty if the thunk sequence is not kept."""
    return module.once(_read_launches)


def _read_launches(module: Module) -> dict[str, Launches]:
    text = module.source.text
    return {
        found["name"]: Launches(
            tuple(found["kinds"].split(",")),
            _numbers(found["grid"]),
            _numbers(found["block"]),
            int(found["shared"]) if found["shared"] is not None else None,
            int(found["buffer"]) if found["buffer"] is not None else None,
        )
        for found in _LAUNCHES.finditer(text, _comments_begin(text))
    }


def _numbers(written: str | None) -> tuple[int, ...] | None:
    return tuple(map(int, written.split("x"))) if written is not None else None


def _instructions(metadata: str) -> dict[str, str]:
    """Return the name of the instruction by the number of its thunk."""
    named: dict[str, str] = {}
    for entry in _METADATA.finditer(metadata):
        fields = {key: quoted or number for key, quoted, number in _THUNK_FIELD.findall(entry[1])}
        if fields.keys() == {"profile_annotation", "thunk_id"}:
            named.setdefault(fields["thunk_id"], fields["profile_annotation"])
    return named


def _comments(sequence: str, instructions: dict[str, str]) -> Iterator[str]:
    kinds: dict[str, list[str]] = {}
    sizes: dict[str, str] = {}
    buffers: dict[str, int] = {}
    count, buffer_indent = 0, -1
    for thunk in _THUNK.finditer(sequence):
        indent, kind = len(thunk["indent"]), thunk["kind"]
        if indent <= buffer_indent:
            buffer_indent = -1
        if kind == "CommandBuffer":
            count, buffer_indent = count + 1, indent
        name = instructions.get(str(int(thunk["number"])), "")
        if not name or kind in _HOLDERS:
            continue
        kinds.setdefault(name, []).append(kind)
        if buffer_indent >= 0:
            buffers[name] = count
        if found := _SIZES.search(thunk["rest"]):
            grid, block = "x".join(found.group(1, 2, 3)), "x".join(found.group(4, 5, 6))
            shared = f" shared={found[7]}" if found[7] is not None else ""
            sizes.setdefault(name, f" grid={grid} block={block}{shared}")
    for name, launched in kinds.items():
        buffer = f" buffer={buffers[name]}" if name in buffers else ""
        yield f"// XLA thunks: {name}: {','.join(launched)}{sizes.get(name, '')}{buffer}\n"


def _with_comments(text: str, comments: str) -> str:
    """Return HLO text with lines of comments at its end, so that they go wherever the text goes."""
    return f"{text}{'' if text.endswith(chr(10)) else chr(10)}{comments}" if comments else text


def _comments_begin(text: str) -> int:
    """Return the offset after the last computation of HLO text, from which `_with_comments` has added lines."""
    return max(text.rfind("\n}"), 0)
