"""Compare two modules line by line, whatever their names, numbers and order.

Computations are paired by their fingerprints (`fingerprint.diff`). Within a pair, instructions whose whole input is the
same match. The others are followed in text order: an instruction is the same if it does the same to matching operands,
and has changed if only its label (`op_name`, or its name without the number) and its operation are the same. So a
change shows where it was made, not in everything that depends on it.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, Literal, TypeAlias

from jaxprof.hlo.analysis.fingerprint import ComputationDifference, Fingerprints, diff, settings_of, split_code
from jaxprof.hlo.analysis.opcodes import FREE, base_opcode
from jaxprof.hlo.model import Computation, Instruction, Module

LineStatus: TypeAlias = Literal["same", "changed", "new", "gone"]
_NUMBER: Final = re.compile(r"(?:\.\d+|\.clone|\.remat\d*)+$")
_HEADER_LEFT_OUT: Final = frozenset({"is_scheduled", "frontend_attributes", "alias_passthrough_params"})


@dataclass(frozen=True, slots=True)
class LineDifference:
    """An instruction of one computation, or two that match."""

    status: LineStatus
    before: Instruction | None
    after: Instruction | None


@dataclass(frozen=True, slots=True)
class ComputationLines:
    """Two matching computations, or one that is new or gone, line by line."""

    computation: ComputationDifference
    lines: tuple[LineDifference, ...]
    """All lines in the order of the second computation; lines that are gone keep their place in the first."""


@dataclass(frozen=True, slots=True)
class HeaderDifference:
    """A changed attribute of the module: `input_output_alias` (what is donated), `num_partitions`; empty if absent."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class SettingDifference:
    """A changed setting of one kernel's code generator (`fusion_backend_config...num_warps`); empty if absent."""

    kernel: str
    """Name of the kernel in the second module."""
    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class TextDifference:
    """Differences between two modules; empty if they differ only in names, numbers or places."""

    header: tuple[HeaderDifference, ...]
    computations: tuple[ComputationLines, ...]
    """Computations with at least one line that is not the same."""
    settings: tuple[SettingDifference, ...] = ()
    """Settings by which XLA emits kernels that compute the same: tiles, warps, algorithms."""
    code: tuple[str, ...] = ()
    """Custom kernels (Pallas, Triton) whose code has other bytes. Whether it does the same is unknown, because it also
    holds its source lines."""
    reordered: tuple[tuple[str, str, str], ...] = ()
    """Computations that run in another order: the name, and the first instruction of each side that differs."""

    @property
    def differs(self) -> bool:
        """Whether anything is computed differently."""
        return bool(self.header or self.computations)


def text_difference(before: Module, after: Module) -> TextDifference:
    """Compare two modules; both are read completely."""
    if before.text == after.text:
        return TextDifference((), ())
    pairs = diff(before, after)
    tokens = {pair.before: pair.after for pair in pairs if pair.before and pair.after}
    ours, theirs = Fingerprints(before), Fingerprints(after)
    changed: list[ComputationLines] = []
    settings: list[SettingDifference] = []
    code: list[str] = []
    reordered: list[tuple[str, str, str]] = []
    scheduled = before.is_scheduled and after.is_scheduled
    for pair in pairs:
        first, second = before.get(pair.before), after.get(pair.after)
        if pair.status != "same":
            lines = tuple(_lines(first, second, tokens, ours, theirs))
            alike = [(line.before, line.after) for line in lines if line.before and line.after]
            if any(line.status != "same" for line in lines):
                changed.append(ComputationLines(pair, lines))
        elif first is not None and second is not None:
            alike = _alike(first, second, ours, theirs)
            if scheduled and _runs_in_order(after, second) and (parted := _first_order_difference(first, alike)):
                reordered.append((pair.after, *parted))
        for left, right in alike:
            settings += _setting_differences(left, right)
            if _code_differs(left, right):
                code.append(right.name)
    header = tuple(_header(before, after))
    return TextDifference(header, tuple(changed), tuple(settings), tuple(code), tuple(reordered))


Pairs: TypeAlias = list[tuple[Instruction, Instruction]]


def _alike(before: Computation, after: Computation, ours: Fingerprints, theirs: Fingerprints) -> Pairs:
    """Return the matching instructions of two equal computations, in the order of the second."""
    values, others = ours.values(before), theirs.values(after)
    waiting: dict[Hashable, list[Instruction]] = defaultdict(list)
    for instruction in reversed(list(before)):
        waiting[values.get(instruction.name)].append(instruction)
    matches = [(waiting.get(others.get(instruction.name)), instruction) for instruction in after]
    return [(partners.pop(), instruction) for partners, instruction in matches if partners]


def _runs_in_order(module: Module, computation: Computation) -> bool:
    """Return whether the computation's instructions are kernels that run one after the other: the entry, and what
    control flow calls."""
    called_by = {caller.opcode for caller in module.callers.get(computation.name, ())}
    return computation.is_entry or bool(called_by & {"while", "conditional", "call"})


def _first_order_difference(before: Computation, alike: Pairs) -> tuple[str, str] | None:
    """Return the first instructions at which the two orders differ; None if they are the same. Instructions that take
    no time are ignored."""
    place = {instruction.name: number for number, instruction in enumerate(before)}
    runs = [(place[left.name], left, right) for left, right in alike if base_opcode(left.opcode) not in FREE]
    for first, second in zip(sorted(runs, key=itemgetter(0)), runs, strict=True):
        if first is not second:
            return first[1].name, second[2].name
    return None


def _setting_differences(before: Instruction, after: Instruction) -> Iterator[SettingDifference]:
    """Yield the differences in a fusion's `backend_config`, leaf by leaf if it is JSON."""
    texts = before.attributes.get("backend_config", ""), after.attributes.get("backend_config", "")
    if texts[0] == texts[1] or after.opcode == "custom-call":
        return
    left, right = map(_leaves, texts)
    for name in dict.fromkeys((*left, *right)):
        if left.get(name) != right.get(name):
            yield SettingDifference(after.name, name, left.get(name, ""), right.get(name, ""))


def _leaves(config: str) -> dict[str, str]:
    try:
        value = json.loads(config) if config else {}
    except (ValueError, RecursionError):
        return {"backend_config": config}
    leaves: dict[str, str] = {}
    waiting = [("", value)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(f"{name}.{key}" if name else key, inner) for key, inner in value.items()]
        else:
            leaves[name] = value if isinstance(value, str) else repr(value)
    return leaves


def _code_differs(before: Instruction, after: Instruction) -> bool:
    ours, theirs = before.attributes.get("backend_config", ""), after.attributes.get("backend_config", "")
    return ours != theirs and split_code(ours)[1] != split_code(theirs)[1]


def _header(before: Module, after: Module) -> Iterator[HeaderDifference]:
    ours, theirs = before.attributes, after.attributes
    for name in dict.fromkeys((*ours, *theirs)):
        first, second = (" ".join(side.get(name, "").split()) for side in (ours, theirs))
        if first != second and name not in _HEADER_LEFT_OUT:
            yield HeaderDifference(name, first, second)


def _lines(
    before: Computation | None,
    after: Computation | None,
    tokens: Mapping[str, str],
    ours: Fingerprints,
    theirs: Fingerprints,
) -> Iterator[LineDifference]:
    if before is None or after is None:
        for instruction in before or after or ():
            yield (
                LineDifference("gone", instruction, None) if after is None else LineDifference("new", None, instruction)
            )
        return
    partners = _partners(before, after, tokens, ours.values(before), theirs.values(after))
    at: dict[str, list[Instruction]] = defaultdict(list)
    """Instructions that are gone, by the name of the next instruction of the first computation that has a match."""
    waiting: list[Instruction] = []
    taken = {instruction.name for instruction, _ in partners.values()}
    for instruction in before:
        if instruction.name in taken:
            at[instruction.name] += waiting
            waiting = []
        else:
            waiting.append(instruction)
    fresh: list[Instruction] = []
    for instruction in after:
        partner = partners.get(instruction.name)
        if partner is None:
            fresh.append(instruction)
            continue
        yield from (LineDifference("gone", removed, None) for removed in at[partner[0].name])
        yield from (LineDifference("new", None, added) for added in fresh)
        fresh = []
        yield LineDifference(partner[1], partner[0], instruction)
    yield from (LineDifference("gone", removed, None) for removed in waiting)
    yield from (LineDifference("new", None, added) for added in fresh)


def _partners(
    before: Computation,
    after: Computation,
    tokens: Mapping[str, str],
    values_before: Mapping[str, bytes],
    values_after: Mapping[str, bytes],
) -> dict[str, tuple[Instruction, LineStatus]]:
    """Return for each instruction of `after`, by name, its match in `before` and whether the two are the same."""
    partners: dict[str, tuple[Instruction, LineStatus]] = {}
    left = {instruction.name: instruction for instruction in before}
    by_value: dict[Hashable, list[Instruction]] = defaultdict(list)
    for instruction in before:
        by_value[values_before.get(instruction.name), instruction.is_root].append(instruction)
    for instruction in after:
        alike = by_value.get((values_after.get(instruction.name), instruction.is_root))
        if alike:
            partner = next((candidate for candidate in alike if candidate.name == instruction.name), alike[0])
            alike.remove(partner)
            partners[instruction.name] = left.pop(partner.name), "same"
    exact: dict[Hashable, list[Instruction]] = defaultdict(list)
    loose: dict[Hashable, list[Instruction]] = defaultdict(list)
    for instruction in left.values():
        exact[_work(instruction, tokens), instruction.operands].append(instruction)
        for label in _labels(instruction):
            loose[label].append(instruction)
    for instruction in after:
        if instruction.name in partners:
            continue
        operands = tuple(partners[name][0].name if name in partners else "" for name in instruction.operands)
        alike = [candidate for candidate in exact.get((_work(instruction, {}), operands), ()) if candidate.name in left]
        status: LineStatus = "same"
        if not alike:
            status = "changed"
            named = (
                candidate
                for label in _labels(instruction)
                for candidate in loose.get(label, ())
                if candidate.name in left
            )
            best = max(named, key=lambda candidate: _shared(candidate.operands, operands), default=None)
            alike = [best] if best is not None else []
        if alike:
            partners[instruction.name] = left.pop(alike[0].name), status
    return {
        name: (
            partner,
            "same" if status == "changed" and _is_same(partner, after[name], partners, left, tokens) else status,
        )
        for name, (partner, status) in partners.items()
    }


def _is_same(
    before: Instruction,
    after: Instruction,
    partners: Mapping[str, tuple[Instruction, LineStatus]],
    gone: Mapping[str, Instruction],
    tokens: Mapping[str, str],
) -> bool:
    """Return whether two lines do the same and their operands match. A gone operand and a new one also match, because
    that change is shown at the operand."""
    if _work(before, tokens) != _work(after, {}) or len(before.operands) != len(after.operands):
        return False
    return all(
        partners[theirs][0].name == ours if theirs in partners else ours in gone
        for ours, theirs in zip(before.operands, after.operands, strict=True)
    )


def _work(instruction: Instruction, tokens: Mapping[str, str]) -> Hashable:
    """Return what an instruction does to its operands, whatever their names."""
    return (
        instruction.opcode,
        str(instruction.shape),
        instruction.literal,
        instruction.parameter_number,
        instruction.is_root,
        tuple(tokens.get(name, name) for name in instruction.called),
        tuple(settings_of(instruction).items()),
    )


def _labels(instruction: Instruction) -> Iterator[Hashable]:
    """Yield what a changed instruction still has in common with its former self, the surest first."""
    opcode = instruction.opcode
    if opcode == "parameter":
        yield opcode, instruction.parameter_number
        return
    if instruction.metadata.op_name:
        yield opcode, "from", instruction.metadata.op_name
    yield opcode, "named", _NUMBER.sub("", instruction.name)


def _shared(first: tuple[str, ...], second: tuple[str, ...]) -> int:
    return sum(ours == theirs for ours, theirs in zip(first, second, strict=False))
