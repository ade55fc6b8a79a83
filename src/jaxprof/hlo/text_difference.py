"""Compare two modules line by line, whatever their names, numbers and order.

Computations are paired by their fingerprints (`fingerprint.diff`). Within a pair, instructions whose whole input is the
same match. The others are followed in text order: an instruction is the same if it does the same to matching operands,
and has changed if only its label (`op_name`, or its name without the number) and its operation are the same. So a
change shows where it was made, not in everything that depends on it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from operator import eq

from jaxprof.base.grouping import Existence, Pair, pair_up
from jaxprof.base.values import frozen
from jaxprof.hlo.fingerprint import NUMBERS, Fingerprints, diff, settings_of, split_code
from jaxprof.hlo.kernels import FREE, base_opcode
from jaxprof.hlo.text.model import Computation, Instruction, Module

_HEADER_LEFT_OUT = frozenset({"is_scheduled", "frontend_attributes", "alias_passthrough_params"})


@frozen
class ComputationLines:
    """Two matching computations, or one that is new or gone, line by line."""

    computation: Pair[Computation]
    lines: tuple[Pair[Instruction], ...]
    """All lines in the order of the second computation; lines that are gone keep their place in the first."""


@frozen
class SettingDifference:
    """A changed attribute of the module (`input_output_alias`, `num_partitions`), or a changed setting of one kernel's
    code generator (`fusion_backend_config...num_warps`)."""

    kernel: str
    """Name of the kernel in the second module; empty for an attribute of the module."""
    name: str
    before: str
    after: str
    """Value in the second module; as for `before`, empty if it is absent."""


@frozen
class TextDifference:
    """Differences between two modules; empty if they differ only in names, numbers or source locations."""

    header: tuple[SettingDifference, ...]
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
    computations = diff(before, after)
    tokens = {pair.before.name: pair.after.name for pair in computations if pair.before and pair.after}
    changed: list[ComputationLines] = []
    settings: list[SettingDifference] = []
    code: list[str] = []
    reordered: list[tuple[str, str, str]] = []
    scheduled = before.is_scheduled and after.is_scheduled
    for pair in computations:
        first, second = pair.before, pair.after
        if pair.status != "same":
            lines = tuple(_lines(first, second, tokens))
            alike = [(line.before, line.after) for line in lines if line.before and line.after]
            if any(line.status != "same" for line in lines):
                changed.append(ComputationLines(pair, lines))
        elif first is not None and second is not None:
            every = pair_up(first.instructions, second.instructions, [_value])
            alike = [(left, right) for left, right in every if left and right]
            # Only kernels run one after the other: those of the entry, and of what control flow calls.
            called_by = {caller.opcode for caller in after.callers.get(second.name, ())}
            in_order = second.is_entry or bool(called_by & {"while", "conditional", "call"})
            if scheduled and in_order:
                runs = [(left, right) for left, right in alike if base_opcode(left.opcode) not in FREE]
                sides = zip(sorted(runs, key=lambda pair: pair[0].position), runs, strict=True)
                reordered += [(second.name, one[0].name, other[1].name) for one, other in sides if one is not other][:1]
        for left, right in alike:
            settings += _setting_differences(left, right)
            ours, theirs = left.attributes.get("backend_config", ""), right.attributes.get("backend_config", "")
            if ours != theirs and split_code(ours)[1] != split_code(theirs)[1]:
                code.append(right.name)
    header: list[SettingDifference] = []
    for name in dict.fromkeys((*before.attributes, *after.attributes)):
        ours, theirs = (" ".join(side.attributes.get(name, "").split()) for side in (before, after))
        if ours != theirs and name not in _HEADER_LEFT_OUT:
            header.append(SettingDifference("", name, ours, theirs))
    return TextDifference(tuple(header), tuple(changed), tuple(settings), tuple(code), tuple(reordered))


def _value(instruction: Instruction) -> bytes:
    return instruction.computation.module.once(Fingerprints).of_value(instruction)


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


def _lines(
    before: Computation | None, after: Computation | None, tokens: Mapping[str, str]
) -> Iterator[Pair[Instruction]]:
    """Yield `ComputationLines.lines`. `tokens`: the name in the second module of each matching computation."""
    if before is None or after is None:
        yield from (Pair("gone", removed, None) for removed in before or ())
        yield from (Pair("new", None, added) for added in after or ())
        return
    partners = _partners(before, after, tokens)
    at: dict[str, list[Instruction]] = defaultdict(list)
    """Instructions that are gone, by the name of the next instruction of the first computation that has a match."""
    waiting: list[Instruction] = []
    # The lines are in the order of the second module; a line that is gone stands before the next one that is left.
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
        yield from (Pair("gone", removed, None) for removed in at[partner[0].name])
        yield from (Pair("new", None, added) for added in fresh)
        fresh = []
        yield Pair(partner[1], partner[0], instruction)
    yield from (Pair("gone", removed, None) for removed in waiting)
    yield from (Pair("new", None, added) for added in fresh)


def _partners(
    before: Computation, after: Computation, tokens: Mapping[str, str]
) -> dict[str, tuple[Instruction, Existence]]:
    """Return for each instruction of `after`, by name, its match in `before` and whether the two are the same."""
    keys: list[Callable[[Instruction], Hashable]] = [
        lambda one: (_value(one), one.is_root, one.name),
        lambda one: (_value(one), one.is_root),
    ]
    partners: dict[str, tuple[Instruction, Existence]] = {
        other.name: (one, "same")
        for one, other in pair_up(before.instructions, after.instructions, keys)
        if one is not None and other is not None
    }
    matched = {one.name for one, _ in partners.values()}
    # A value is everything that an instruction depends on, so one change makes all that follows unlike. What is left
    # is matched in the order of the program, by its own work and by partners of its operands that were found before.
    left = {instruction.name: instruction for instruction in before if instruction.name not in matched}
    exact: dict[Hashable, list[Instruction]] = defaultdict(list)
    loose: dict[Hashable, list[Instruction]] = defaultdict(list)
    for instruction in left.values():
        exact[_work(instruction, tokens), instruction.operands].append(instruction)
        for label in _labels(instruction):
            loose[label].append(instruction)
    for instruction in after:
        if instruction.name in partners:
            continue
        # Operands stand before their users in HLO, so that their partners are known; an empty name matches nothing.
        operands = tuple(partners[name][0].name if name in partners else "" for name in instruction.operands)
        alike = [candidate for candidate in exact.get((_work(instruction, {}), operands), ()) if candidate.name in left]
        status: Existence = "same"
        if not alike:
            status = "changed"
            named = (
                candidate
                for label in _labels(instruction)
                for candidate in loose.get(label, ())
                if candidate.name in left
            )
            # Of equals the first one, which is the one with the surest label.
            best = max(named, key=lambda candidate: sum(map(eq, candidate.operands, operands)), default=None)
            alike = [best] if best is not None else []
        if alike:
            partners[instruction.name] = left.pop(alike[0].name), status
    # Which operands are gone is known only now, and a line that differs in nothing but a gone operand is the same.
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
    partners: Mapping[str, tuple[Instruction, Existence]],
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
    yield opcode, "named", NUMBERS.sub("", instruction.name)
