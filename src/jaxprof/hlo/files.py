"""Read HLO text from a file (text or proto, also compressed), with what XLA's GPU compiler writes beside it: why it did
not fuse kernels. Anything else is named and refused.

The pass `priority-fusion` dumps its steps (`NAME.priority_fusion_dump.txt`, the text form of XLA's
`FusionProcessDumpProto`) if `--xla_dump_hlo_pass_re` names it. The last step about a producer holds the final reason.
Passes after it rename most kernels, so a reason goes to the kernel that computes what the producer does in the module
as it was dumped right after the pass.

The reasons are kept as comments at the end of the module's text, so that they go wherever the text goes.
"""

from __future__ import annotations

import glob
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from jaxprof.base.errors import FileRefusedError, HloError, system_words
from jaxprof.base.files import open_regular, read_whole, unpack
from jaxprof.base.grouping import grouped
from jaxprof.base.text import number
from jaxprof.hlo.text import proto
from jaxprof.hlo.text.model import Module
from jaxprof.hlo.text.parse import begins_like_hlo, module

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"ML\xefR", "MLIR bytecode (StableHLO, most likely)"),
    (b"BC\xc0\xde", "LLVM bitcode"),
    (b"\x7fELF", "an ELF binary"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\x89PNG", "a PNG picture"),
    (b"%PDF", "a PDF document"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x80\x04", "a Python pickle"),
    (b"\x80\x05", "a Python pickle"),
)
_GZIP = b"\x1f\x8b"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_HEAD_BYTES = 1 << 16  # comments may precede the module


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the HLO text in the file at `path`, in UTF-8 or UTF-16, also packed by gzip; an HloProto or HloModuleProto
    is written out as text. Raises HloError if the file cannot be read, or is neither; whether a text is HLO shows only
    when it is parsed."""
    try:
        data = read_whole(path)
        if data.startswith(_GZIP):
            try:
                data = b"".join(unpack(data, "the gzip archive"))
            except zlib.error as error:
                raise HloError(f"the gzip archive is damaged: {error}") from None
            except EOFError:
                raise HloError("the gzip archive is truncated", "Copy the file again.") from None
        if not data:
            raise HloError("the file is empty")
        for magic, what in _MAGIC:
            if data.startswith(magic):
                raise HloError(f"this is {what}, not HLO", "Give HLO text or an HLO proto.")
        if data.startswith(_UTF_16):
            return data.decode("utf-16", "replace")
        # A proto always has some of the bytes that cannot occur in text; a damaged text has few.
        if controls := sum(octet < 9 or 13 < octet < 27 or 27 < octet < 32 for octet in data[:4096]):
            try:
                return proto.text(data)
            except proto.BeyondLimitError:
                raise
            except HloError as error:
                if controls > 16:
                    hint = "Give HLO text, an HloProto or an HloModuleProto."
                    raise HloError(f"this is a binary file, but not an HLO proto: {error.what}", hint) from None
        return data.decode("utf-8-sig", "replace")
    except OSError as error:
        raise HloError(f"{path}: {system_words(error)}") from None
    except FileRefusedError as error:
        raise HloError(f"{path}: {error.what}", error.hint) from None


def holds_hlo(path: str | os.PathLike[str]) -> bool:
    """Return whether the file at `path` is HLO, judged by its beginning: a text with a `HloModule` line, or the proto
    of a module. The cost does not depend on its size. False if it cannot be read."""
    try:
        with open_regular(path) as opened:
            head = opened.read(_HEAD_BYTES)
    except OSError:
        return False
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, _HEAD_BYTES)  # 31: with a header of gzip
        except zlib.error:
            return False
    if head.startswith(_UTF_16):
        head = head.decode("utf-16", "replace").encode()
    return begins_like_hlo(head)


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


def reasons_in(module: Module) -> dict[str, str]:
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
