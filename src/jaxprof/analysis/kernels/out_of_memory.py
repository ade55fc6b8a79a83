"""What an out-of-memory message of XLA says: the bytes it asked for, the limit, what is in use, and the buffers.

The compilers and allocators of CPUs, GPUs and TPUs write different reports, and change them between releases. So each
figure is looked for by its own words anywhere in the text, which may be a whole log, and one that is missing is None.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from jaxprof.base.files import open_regular
from jaxprof.base.values import frozen

if TYPE_CHECKING:
    from jaxprof.hlo.kernels.liveness import LiveValue

_SIZE = r"(\d{1,30}(?:\.\d{0,30})?)\s*((?:[KMGTPE]i?)?(?:B|bytes)?)\b"
_START = r"(?:^|[:\]]) *"
"""A line's start, or that of the text after what a log puts before it: `[rank3]: `, `ERROR train: `."""
_FORMS = {
    "asked": (
        r"out of memory (?:while )?(?:trying to )?allocat(?:e|ing) ",
        r"(?:attempting|trying|failed|unable) to (?:allocate|reserve) (?:request for )?",
        r"requested memory exceeds[^.]{0,200}?requested:? ",
        r"ran out of memory in memory space \w+[^.]{0,200}?\. ?used ",
        r"ran out of memory on \w+, the total memory required for [^(]{1,40}\(",
        r"total \w+ usage >= ",
        r"shared memory size limit exceeded: requested ",
    ),
    "limit": (
        r"shared memory size limit exceeded: requested \d{1,30}, available: ",
        rf"used {_SIZE} of ",
        r"exceeds available \w+ \(",
        r"^limit: +(?!0$)",  # an allocator without a limit writes 0
        r"\w capacity ",
        r"memory/total memory: \d+/",
    ),
    "free": (r"that was not possible\. there are ", r"reported by cuda: free memory/total memory: "),
    "in use": (r"^inuse: +", r"currently allocated: +"),
    "argument": (r"\bparameter allocation: +", rf"{_START}arguments +"),
    "output": (r"maybe_live_out allocation: +", rf"{_START}output size ", rf"{_START}output +"),
    "shared": (rf"{_START}output size [^;]{{1,20}}; shares ",),
    "temporary": (r"preallocated temp allocation: +", rf"{_START}hlo temp +"),
}
"""Words before each figure: what was asked for (of a compiler, all that the program needs), what the device has, what
of it is free or in use, the parts of the program, and what of its output is in the place of arguments."""
_FIGURES = {
    name: [re.compile(words + _SIZE, re.IGNORECASE | re.MULTILINE) for words in forms] for name, forms in _FORMS.items()
}
_REFUSAL = re.compile(r"ran out of memory (?:in memory space|on) \w+[.,]", re.IGNORECASE)
_ON_CHIP = re.compile(r"in memory space (\w*mem)\b|(shared memory) size limit exceeded", re.IGNORECASE)
_HARMLESS = re.compile(r"^.*The caller indicates that this is not a failure.*$", re.MULTILINE)
"""A warning of the allocator about a request that something smaller replaces."""
_BUFFER = re.compile(rf"(?:\bBuffer \d+:|\b\d+\.)\s+Size: {_SIZE}(.*?)(?======|\Z)", re.DOTALL)
_DETAILS = {
    "op_name": re.compile(r'\bop_name="((?:[^"\\]|\\.)*)"', re.DOTALL),
    "file": re.compile(r'\bsource_file="([^"]*)"'),
    "line": re.compile(r"\bsource_line=(\d{1,9})"),
    "shape": re.compile(r"^[^\n]*?\b(?:Entry Parameter Subs|S)hape: (\S*)", re.MULTILINE),
    "instruction": re.compile(r"XLA [Ll]abel: %?([^\s=]+)"),
}
_PADDING = re.compile(rf"Extra memory due to padding: {_SIZE}")
_MOST_BUFFERS, _LONGEST_BUFFER, _LONGEST_FILE = 100, 20_000, 64 << 20
"""Most buffers that are read, characters of one, and bytes at the end of a file; XLA lists 15 or 20."""
_POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}


@frozen
class OutOfMemory:
    """What an out-of-memory message says."""

    bytes: Mapping[str, int]
    """Figures by their names in `_FORMS`; unknown ones are missing, but for `asked`."""
    is_refusal: bool
    """Whether a compiler refused the program for its need: it compiles none that does not fit."""
    buffers: tuple[LiveValue, ...]
    """The buffers that the message lists, as it orders them: the largest first."""
    padding: tuple[int, ...]
    """Bytes of each of `buffers` that only fill it up to the device's tiles."""
    on_chip: str = ""
    """The memory inside the device's cores that one kernel wants too much of: `vmem`; empty for that of the device."""


def read_out_of_memory(text: str) -> OutOfMemory | None:
    """Return what an out-of-memory message says, also in the middle of a log; None if there is none. XLA and NumPy
    write bytes, or K, M, G, T (with or without `iB`) for powers of 1024."""
    text = _HARMLESS.sub("", text)
    found = {name: next(filter(None, (form.search(text) for form in forms)), None) for name, forms in _FIGURES.items()}
    if found["asked"] is None:
        return None
    from jaxprof.hlo.kernels.liveness import LiveValue  # half of HLO's reader, which only such a text needs

    listed = [match.groups() for match in islice(_BUFFER.finditer(text), _MOST_BUFFERS)]
    padding = [_PADDING.search(rest[:_LONGEST_BUFFER]) for *_, rest in listed]
    on_chip = _ON_CHIP.search(text)
    buffers: list[LiveValue] = []
    for number, unit, rest in listed:
        held = rest[:_LONGEST_BUFFER]
        said = {name: match[1] if (match := form.search(held)) else "" for name, form in _DETAILS.items()}
        kinds = {"Entry Parameter": "argument", "type: HLO temp": "temporary"}
        kind = next((kind for mark, kind in kinds.items() if mark in held), "")
        op_name, line = " ".join(said["op_name"].split()), int(said["line"]) if said["line"] else None
        buffers.append(LiveValue(
            bytes=_bytes(number, unit), kind=kind, instruction=said["instruction"], shape=said["shape"],
            op_name=op_name, file=said["file"], line=line,
        ))  # fmt: skip
    return OutOfMemory(
        bytes={name: _bytes(*match.groups()[-2:]) for name, match in found.items() if match is not None},
        is_refusal=_REFUSAL.search(text) is not None,
        buffers=tuple(buffers),
        padding=tuple(_bytes(*match.groups()) if match is not None else 0 for match in padding),
        on_chip=(on_chip[1] or on_chip[2]).lower() if on_chip is not None else "",
    )


def read_message(path: Path) -> OutOfMemory | None:
    """Return what the out-of-memory message in a file says, of a long log at its end; None without one."""
    with suppress(OSError), open_regular(path) as file:
        file.seek(max(0, path.stat().st_size - _LONGEST_FILE))
        return read_out_of_memory(file.read(_LONGEST_FILE).decode("utf-8", "replace"))
    return None


def _bytes(number: str, unit: str) -> int:
    return int(float(number) * 1024 ** _POWERS[unit[:1].upper().replace("B", "")])
