"""What a program held when memory ran out, by source line, and what needs less: changes that were compiled, each with
the peak before and after, else what the message itself shows, with its bytes.

A finding claims that something fits only with a known limit: from the compiler's message, which compiles nothing
larger, or from what was free beside the arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jaxprof.analysis.kernels.memory import MemoryPicture, message_of, program_bytes
from jaxprof.analysis.kernels.out_of_memory import OutOfMemory
from jaxprof.base.files import is_own
from jaxprof.base.grouping import grouped
from jaxprof.base.text import safe
from jaxprof.base.units import and_more, bytes_, counted, integer
from jaxprof.events import HeldBuffer, LineArrays, RemedyTried, SourceLocation
from jaxprof.events.finding import CatalogueEntry, Finding
from jaxprof.session import Run

if TYPE_CHECKING:
    from jaxprof.hlo.kernels.liveness import LiveValue

_LINES_NAMED = 3
ON_CHIP_FIX = (
    "This memory is inside the device's cores, and one kernel may use so much at once: give a Pallas kernel smaller "
    "blocks (BlockSpec) or fewer stages, or a TPU's compiler more of it (xla_tpu_scoped_vmem_limit_kib)"
)
_LEAST_GAIN = 0.02
"""Least share of the peak that a change saves."""
_ACTIVATIONS = 0.75
"""Most that is left of the temporaries with half the rows of a batch."""
_LEAST_SHARE = 0.1
"""Least share of the requested or listed bytes that a cause in the message has."""


ENTRY = CatalogueEntry(
    "out_of_memory",
    "the device's memory was not enough",
    "An allocation was refused, or the program. What was alive is named by line; changes were compiled for their peak.",
    "Use a smaller size, donate what is replaced, checkpoint, or shard the largest arrays.",
    source="run",
    page="measuring.md#what-warnings-the-engine-raises",
)
_KERNELS_NAMED = 3
_FRAME = re.compile(r'^  File "([^"]+)", line (\d{1,9})', re.MULTILINE)


def finding_of_run(run: Run, picture: MemoryPicture, error: str) -> Finding:
    """Return that memory ran out in a run. `picture`: its memory, with the bytes that were requested."""
    message, schedule, limit = message_of(run), picture.schedule, None
    refused = message is not None and message.is_refusal
    if message is not None and refused:
        limit = message.bytes.get("limit")
    elif run.buffers is not None and run.buffers.free_bytes is not None:
        limit = run.buffers.free_bytes + (run.memory.argument_bytes or 0 if run.memory is not None else 0)
    temporaries = run.memory.temporary_bytes if run.memory is not None else None
    remedies = remedy_sentences(run.remedies, program_bytes(run.memory), temporaries, limit, refused=refused)
    buffers = schedule.alive(schedule.peak_at) if schedule is not None else picture.buffers
    found = memory_finding(error, picture.asked_bytes, buffers, message, remedies, run.shown.hint)
    if not found.places and run.finished is not None:  # op by op it is the line of the call
        frames = _FRAME.findall(run.finished.traceback)
        own = [SourceLocation(file, int(line)) for file, line in frames if is_own(file)]
        found = replace(found, places=tuple(own[-1:]))
    return found


def memory_finding(
    error: str,
    asked: int | None,
    buffers: Sequence[LiveValue],
    message: OutOfMemory | None,
    remedies: Sequence[str] = (),
    hint: str = "",
) -> Finding:
    """Return that memory ran out. `buffers`: what was alive then. Without `remedies`, they are those of the message."""
    shown = [*(remedies or (message_remedies(message) if message is not None else ()))]
    is_on_chip = message is not None and message.on_chip
    shown.append(f"{ON_CHIP_FIX}." if is_on_chip else hint or ENTRY.fix)
    texts = (error, figures_text(message) if message is not None else "", buffers_text(buffers))
    return Finding(
        "; ".join(filter(None, texts)),
        tuple(place for place, _ in lines_of(buffers)[:1]),
        own_fix=". ".join(shown),
        scope="call",
        bytes=asked,
        held=True,
        kernels=tuple(each.instruction for each in buffers[:_KERNELS_NAMED] if each.instruction),
        fault=True,
        code=ENTRY.code,
    )


def lines_of(buffers: Iterable[HeldBuffer]) -> list[tuple[SourceLocation, Sequence[HeldBuffer]]]:
    """Return the source lines of buffers, each with its own: the user's first, by size. Arguments have no line."""
    lines = grouped(((each.file, each.line), each) for each in buffers if each.file and each.kind != "argument")
    located = [(SourceLocation(file, line), held) for (file, line), held in lines.items()]
    return sorted(located, key=lambda item: (not is_own(item[0].file), -_sum(item[1])))


def buffers_text(buffers: Sequence[HeldBuffer], directory: str = "") -> str:
    """Return `alive then, by line: f.py:4 24.0 GiB (f32[1024,512], 3 buffers); arguments 2.00 GiB`, or nothing."""
    lines = [
        f"{safe(location.short(directory))} {bytes_(_sum(held))} "
        f"({safe(held[0].shape.partition('{')[0]) or 'shape unknown'}"
        + (f", {len(held)} buffers)" if len(held) > 1 else ")")
        for location, held in lines_of(buffers)
    ]
    arguments = _sum(each for each in buffers if each.kind == "argument")
    parts = [and_more(lines, _LINES_NAMED)] if lines else []
    parts += [f"arguments {bytes_(arguments)}"] if arguments else []
    return f"alive then, by line: {'; '.join(parts)}" if parts else ""


def arrays_text(arrays: Sequence[LineArrays], directory: str = "") -> str:
    """Return `arrays of the program then: 3.00 GiB made at train.py:12 (4 arrays), ...`."""
    made = [
        f"{bytes_(each.bytes)} made at "
        f"{safe(each.location.short(directory)) if each.location else 'no line of the user'} "
        f"({counted(each.count, 'array')})"
        for each in arrays
    ]
    return f"arrays of the program then: {and_more(made, _LINES_NAMED)}"


def figures_text(message: OutOfMemory) -> str:
    """Return what else the message says: `37.4 GiB of 37.5 GiB were in use; the program: temporary 20.0 GiB`."""
    used, limit, free, asked = (message.bytes.get(name) for name in ("in use", "limit", "free", "asked"))
    of = f" of {bytes_(limit)}" if limit else ""
    where = f"the {message.on_chip} of a core" if message.on_chip else "the device"
    state = f"{where} has {bytes_(limit)}" if limit else ""
    if used is not None:
        state = f"{bytes_(used)}{of} were in use"
    elif free is not None:
        state = f"{bytes_(free)}{of} were free" + (", in smaller pieces" if asked is not None and asked <= free else "")
    kinds = (kind for kind in ("argument", "output", "temporary") if message.bytes.get(kind))
    parts = ", ".join(f"{kind} {bytes_(message.bytes[kind])}" for kind in kinds)
    return "; ".join(filter(None, (state, f"the program: {parts}" if parts else "")))


def remedy_sentences(
    tried: Iterable[RemedyTried],
    peak: int | None,
    temporaries: int | None,
    limit: int | None,
    *,
    refused: bool = False,
) -> list[str]:
    """Return a sentence for each kind of change that was compiled and needs less, those that fit first.

    `peak`, `temporaries`: bytes that the program needs as it is. `limit`: the most that it may need. `refused`: its
    compiler refuses what does not fit, so what it compiled fits. Unknown bytes are None.
    """
    best: dict[str, RemedyTried] = {}
    for each in tried:
        before, is_half = best.get(each.remedy), each.remedy == "half"
        if is_half and temporaries is not None and (each.temporary_bytes or 0) > _ACTIVATIONS * temporaries:
            continue  # the rows of parameters: those of a batch have halved the activations
        is_smallest = before is None or (each.peak_bytes < before.peak_bytes and not is_half)  # the first is the batch
        needs_less = each.peak_bytes <= (1 - _LEAST_GAIN) * peak if peak is not None else refused
        if is_smallest and needs_less:
            best[each.remedy] = each
    found: list[tuple[bool, int, str]] = []
    for each in best.values():
        after = each.peak_bytes
        fits = refused or (limit is not None and after <= limit)
        change = f"peak {bytes_(peak)} → {bytes_(after)}" if peak is not None else f"peak {bytes_(after)}"
        verdict = f": fits{f' in {bytes_(limit)}' if limit is not None else ''}" if fits else ""
        found.append((not fits, after, f"{_change_text(each)}: {change}{verdict}"))
    return [sentence for *_, sentence in sorted(found)]


def _change_text(tried: RemedyTried) -> str:
    subject = ", ".join(f"`{safe(name)}`" for name in tried.subject.split(", "))
    at = safe(tried.location.short())
    return {
        "donate": f"Donating {subject} (donate_argnums)",
        "checkpoint_scan": f"jax.checkpoint around the body of the scan at {at}",
        "checkpoint": f"jax.checkpoint around {subject} ({at})",
        "half": f"{subject} with half the rows, {integer(tried.size)}",
        "bfloat16": f"{subject} in bfloat16 (other numbers)",
    }.get(tried.remedy, f"{safe(tried.remedy)} of {subject}")


def message_remedies(message: OutOfMemory, directory: str = "") -> Iterator[str]:
    """Yield what the message shows of how to need less, with the bytes that it is about."""
    buffers = message.buffers
    listed = _sum(buffers)
    padded = sum(message.padding)
    if padded and padded >= _LEAST_SHARE * message.bytes["asked"]:
        most, buffer = max(zip(message.padding, buffers, strict=True), key=lambda item: item[0])
        yield (
            f"{bytes_(padded)} is padding to the device's tiles, {bytes_(most)} of it of "
            f"{safe(buffer.shape.partition('{')[0])}: make its two minor axes multiples of the tile"
        )
    replaceable = min(message.bytes.get("output", 0), message.bytes.get("argument", 0))
    if message.bytes.get("shared") == 0 and replaceable:
        yield (
            f"No result takes the place of an argument: donating what the results replace (donate_argnums) frees up to "
            f"{bytes_(replaceable)}"
        )
    forward = [each for each in buffers if "jvp(" in each.op_name and "transpose(" not in each.op_name]
    if len(forward) > 1 and _sum(forward) >= _LEAST_SHARE * listed:
        at = [f", most at {safe(location.short(directory))}" for location, _ in lines_of(forward)[:1]]
        yield (
            f"{bytes_(_sum(forward))} of the listed buffers are of the forward pass of a gradient{''.join(at)}: "
            "jax.checkpoint around that block keeps its inputs alone"
        )
    wide = _sum(each for each in buffers if each.shape.startswith("f32["))
    if listed and 2 * wide >= listed:
        yield f"{bytes_(wide)} of the listed buffers are float32: bfloat16 takes half (other numbers)"


def _sum(buffers: Iterable[HeldBuffer]) -> int:
    return sum(each.bytes for each in buffers)
