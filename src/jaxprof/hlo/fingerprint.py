"""Fingerprints of computations that do not depend on names, ids or text order; and what changed between two modules.

Equal fingerprints mean the same operations with the same shapes, layouts and attributes, connected in the same way.
Everything that differs between two compilations of the same program is left out: names, metadata, channel ids,
schedules, and a backend's settings (autotuning), except those of library calls, where they determine what is computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from hashlib import blake2b

from jaxprof.base.grouping import Pair, pairs
from jaxprof.hlo.text import unquote
from jaxprof.hlo.text.model import Computation, Instruction, Module
from jaxprof.hlo.text.record import CALLING_ATTRIBUTES

_LEFT_OUT = frozenset(
    {"metadata", "channel_id", "frontend_attributes", "control-predecessors", "backend_config", "origin", "id"}
) | frozenset(CALLING_ATTRIBUTES)
_TEXT = re.compile(r'(?P<key>"?\b(?:body|ir|code|ptx)"?\s*+[:=]\s*+)?"(?P<text>[^"\\]*+(?:\\.[^"\\]*+)*)"')
NUMBERS = re.compile(r"(?:\.\d+|\.clone|\.remat\d*)+$")
"""Suffixes that XLA appends to names."""


class Fingerprints:
    """Fingerprints of one module's computations, each computed once: `module.once(Fingerprints)`."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._known: dict[str, str] = {}
        self._values: dict[str, dict[str, bytes]] = {}

    def of(self, name: str) -> str:
        """Return the fingerprint of the computation `name`; empty if the module has none of that name."""
        order = [name]
        while order:
            current = order[-1]
            if current in self._known:
                order.pop()
                continue
            computation = self._module.get(current)
            if computation is None:
                self._known[current] = ""
                continue
            wanted = [called for i in computation.instructions for called in i.called]
            missing = [called for called in dict.fromkeys(wanted) if called not in self._known and called not in order]
            if missing:
                order.extend(missing)
            else:
                values = self._values.setdefault(computation.name, {})
                root = computation.root
                self._hash([] if root is None else [root], values)
                result = blake2b(digest_size=16)
                result.update(values.get(root.name, b"") if root is not None else b"empty")
                effects = [i for i in computation.instructions if i.name not in values and i.opcode != "parameter"]
                if effects:  # what nothing depends on (outfeeds, sends, dead code), as a set, because it has no order
                    self._hash(list(effects), values)
                    for value in sorted(values[i.name] for i in effects):
                        result.update(value)
                for parameter in computation.parameters:
                    result.update(str(parameter.shape.without_layout()).encode("utf-8", "replace"))
                self._known[current] = result.hexdigest()
        return self._known[name]

    def of_instruction(self, instruction: Instruction) -> str:
        """Return the fingerprint of one instruction and everything that it calls. For its operands only the shapes
        count, not where they come from."""
        for name in instruction.called:
            self.of(name)
        shapes = [f"{operand.shape};".encode("utf-8", "replace") for operand in instruction.operand_instructions()]
        return self._value(instruction, shapes).hex()

    def of_value(self, instruction: Instruction) -> bytes:
        """Return the fingerprint of an instruction with everything that it depends on."""
        name = instruction.computation.name
        self.of(name)
        values = self._values.setdefault(name, {})
        self._hash([instruction], values)
        return values[instruction.name]

    def _hash(self, stack: list[Instruction], values: dict[str, bytes]) -> None:
        open_: set[str] = set()
        while stack:
            instruction = stack[-1]
            if instruction.name in values:
                stack.pop()
                continue
            operands = instruction.operand_instructions()
            missing = [i for i in operands if i.name not in values and i.name not in open_]
            if missing and instruction.name not in open_:
                open_.add(instruction.name)
                stack.extend(missing)
                continue
            values[instruction.name] = self._value(
                instruction, [values.get(name, b"?") for name in instruction.operands]
            )
            stack.pop()

    def _value(self, instruction: Instruction, operands: Iterable[bytes]) -> bytes:
        opcode = instruction.opcode
        result = blake2b(digest_size=16)

        def add(text: str) -> None:
            raw = text.encode("utf-8", "replace")
            result.update(len(raw).to_bytes(8, "little") + raw)

        add(opcode)
        add(str(instruction.shape))
        add(instruction.literal if opcode == "constant" else str(instruction.parameter_number))
        for operand in operands:
            result.update(operand)
        for name in instruction.called:
            add(self._known.get(name, ""))
        for key, text in settings_of(instruction).items():
            add(key)
            add(text)
        return result.digest()


def settings_of(instruction: Instruction) -> dict[str, str]:
    """Return the attributes that determine what an instruction computes, as written, ordered by name. The code of a
    custom kernel (Pallas, Triton) is left out, because it holds its source lines."""
    keeps_config = instruction.opcode == "custom-call"
    return {
        key: " ".join((split_code(text)[0] if key == "backend_config" else text).split())
        for key, text in sorted(instruction.attributes.items())
        if key not in _LEFT_OUT or (key == "backend_config" and keeps_config)
    }


def split_code(config: str) -> tuple[str, list[str]]:
    """Split a `backend_config` into the rest and the code of a custom kernel: MLIR, LLVM or PTX, as text or in base64.
    A config quoted as a whole is unquoted first."""
    code: list[str] = []

    def leave_out(found: re.Match[str]) -> str:
        # A longer text counts as code, whatever its key.
        if found["key"] is None and len(found["text"]) < 200:
            return found[0]
        code.append(found["text"])
        return f'{found["key"] or ""}"..."'

    inside = unquote(config)
    return _TEXT.sub(leave_out, inside if inside.lstrip().startswith("{") else config), code


def diff(first: Module, second: Module) -> list[Pair[Computation]]:
    """Compare the computations of two modules.

    Computations with equal fingerprints are the same, whatever their names. Others that have equal names
    (without the numbers that XLA appends) have changed; the rest are gone or new. The result has the order of the
    second module, with those that are gone at the end.
    """
    prints: dict[Computation, tuple[str, bool]] = {}  # an entry is distinct from the computations that it calls
    for module in (first, second):
        known = module.once(Fingerprints)
        for name, computation in module.computations.items():
            prints[computation] = known.of(name), computation.is_entry
    keys: list[Callable[[Computation], Hashable]] = [
        lambda one: (prints[one], one.name),
        prints.__getitem__,
        lambda one: one.name,
        lambda one: one.is_entry or NUMBERS.sub("", one.name),
    ]
    return pairs(list(first.computations.values()), list(second.computations.values()), keys, prints.__getitem__)
