"""A module from its proto: `HloModuleProto`, alone or inside an `HloProto` (XPlane files, `--xla_dump_hlo_as_proto`).

The proto is written out as HLO text, and the text is read, so that there is one model: what is shown, searched and
analysed is the same for every source of a module. Field numbers are those of `xla/service/hlo.proto`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jaxprof.errors import HloError
from jaxprof.hlo.read import proto_values as values
from jaxprof.hlo.read.proto_attributes import attributes, frontend
from jaxprof.hlo.read.proto_values import braced, quoted
from jaxprof.hlo.read.syntax import balanced_end
from jaxprof.hlo.read.wire import Message
from jaxprof.limits import INSTRUCTIONS, UNPACKED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Set

_CALLING: Final = {
    "fusion": ("calls",),
    "while": ("body", "condition"),
    "select-and-scatter": ("select", "scatter"),
    "async-start": ("calls",),
    "async-update": ("calls",),
    "async-done": ("calls",),
}
"""The attributes in which an opcode names the computations that it calls, one each; other opcodes use `to_apply`, or a
list."""
_CALLING_LISTS: Final = {"conditional": "branch_computations", "custom-call": "called_computations"}
_ALIAS_KINDS: Final = {1: "may-alias", 2: "must-alias"}
_PRED: Final = 1
_LOCAL: Final = (1 << 32) - 1


class BeyondLimitError(HloError):
    """A proto that is one, and larger than the limits allow."""


def text(data: bytes) -> str:
    """The HLO text of the module in `data`: literals of more than 16 elements are elided.

    Raises HloError where it is neither of the two messages, damaged, or beyond the limits `instructions` and, as text,
    `unpacked`.
    """
    proto = module_message(data)
    return "".join(_Writer(proto).write())


def module_message(data: bytes) -> Message:
    """The `HloModuleProto` in `data`. Raises HloError as `text` does."""
    outer = Message(data)
    for proto in (_inner(outer), outer):
        if proto is not None and 3 in proto and 1 in proto:
            if proto.count(3) > INSTRUCTIONS.most:
                raise BeyondLimitError(f"the protobuf has {INSTRUCTIONS.words}", INSTRUCTIONS.hint)
            computations = proto.messages(3)
            if computations and all(2 in computation and 1 in computation for computation in computations[:3]):
                return proto
    raise HloError("the protobuf holds no HLO module", "Give an HloProto or an HloModuleProto, or HLO text.")


def _inner(outer: Message) -> Message | None:
    try:
        return outer.message(1) if 1 in outer else None
    except HloError:
        return None  # the name of a module, not a message


class _Writer:
    """Writes one `HloModuleProto` as text."""

    def __init__(self, proto: Message) -> None:
        self._proto = proto
        self._computations = proto.messages(3)
        self._left = UNPACKED.most
        """Characters that may still be written. A message can name one operand a million times."""
        self._names = {computation.number(5): computation.text(1) for computation in self._computations}
        self._payloads = proto.all_octets(22)
        self._sequences: Mapping[int, list[int]] = {
            entry.number(1): entry.message(2).numbers(1) for entry in proto.message(7).messages(1)
        }

    def write(self) -> Iterator[str]:
        yield ", ".join([f"HloModule {self._proto.text(1)}", *self._header()]) + "\n\n"
        yield from _tables(self._proto.message(17))
        entry = self._proto.number(6)
        most = INSTRUCTIONS.most
        for computation in self._computations:
            most -= 1 + computation.count(2)
            if most < 0:
                raise BeyondLimitError(f"the protobuf has {INSTRUCTIONS.words}", INSTRUCTIONS.hint)
            for written in self._computation(computation, is_entry=computation.number(5) == entry):
                self._left -= len(written)
                self._check(0)
                yield written

    def _check(self, length: int) -> None:
        """Raises HloError where a text of this length is beyond what may still be written."""
        if length > self._left:
            raise BeyondLimitError(f"the protobuf has {UNPACKED.words} as text", UNPACKED.hint)

    def _listed(self, names: list[str]) -> str:
        self._check(sum(map(len, names)))
        return ", ".join(f"%{name}" for name in names)

    def _header(self) -> Iterator[str]:
        proto = self._proto
        if 7 in proto:
            yield "is_scheduled=true"
        if aliases := proto.message(8).messages(1):

            def kind(alias: Message) -> str:
                return _ALIAS_KINDS.get(alias.number(4), "none")

            pairs = (
                f"{braced(pair.numbers(1))}: ({pair.number(2)}, {braced(pair.numbers(3))}, {kind(pair)})"
                for pair in aliases
            )
            yield f"input_output_alias={{ {', '.join(pairs)} }}"
        if donors := proto.message(18).messages(1):
            pairs = (f"({pair.number(1)}, {braced(pair.numbers(2))})" for pair in donors)
            yield f"buffer_donor={{ {', '.join(pairs)} }}"
        if 4 in proto:
            program = proto.message(4)
            parameters = ", ".join(values.shape(shape) for shape in program.messages(1))
            yield f"entry_computation_layout={{({parameters})->{values.shape(program.message(2))}}}"
        if entries := proto.message(19).messages(1):
            pairs = (f"{entry.text(1)}={frontend(entry.text(2))}" for entry in entries)
            yield f"frontend_attributes={{{','.join(pairs)}}}"

    def _computation(self, computation: Message, *, is_entry: bool) -> Iterator[str]:
        program = computation.message(4)
        parameters = ", ".join(
            f"{name}: {values.shape(shape, layouts=False)}"
            for name, shape in zip(program.texts(3), program.messages(1), strict=False)
        )
        result = values.shape(program.message(2), layouts=False)
        yield f"{'ENTRY ' * is_entry}%{computation.text(1)} ({parameters}) -> {result} {{\n"
        instructions = computation.messages(2)
        names = {instruction.number(35): instruction.text(1) for instruction in instructions}
        # Newer protos name an instruction by its computation's number and its own; older ones by its own.
        names = {number & _LOCAL: name for number, name in names.items()} | names
        if order := self._sequences.get(computation.number(5)):
            place = {number & _LOCAL: position for position, number in enumerate(order)}
            instructions.sort(key=lambda instruction: place.get(instruction.number(35) & _LOCAL, len(place)))
        predicates = {
            instruction.number(35) & _LOCAL for instruction in instructions if instruction.message(3).number(2) == _PRED
        }
        root = computation.number(6)
        for instruction in instructions:
            is_root = instruction.number(35) & _LOCAL == root & _LOCAL
            yield f"  {'ROOT ' * is_root}{self._instruction(instruction, names, predicates)}\n"
        thread = computation.text(8)
        yield f"}}, execution_thread={quoted(thread)}\n\n" if thread and thread != "main" else "}\n\n"

    def _instruction(self, instruction: Message, names: Mapping[int, str], predicates: Set[int]) -> str:
        opcode = instruction.text(2)
        if opcode == "parameter":
            inside = str(instruction.number(9))
        elif opcode == "constant":
            inside = values.literal(instruction.message(8))
        else:
            inside = self._listed([_name(number, names) for number in instruction.numbers(36)])
        selector = instruction.numbers(36)[:1] if opcode == "conditional" else []
        by_predicate = bool(selector) and selector[0] & _LOCAL in predicates
        parts = [
            f"%{instruction.text(1)} = {values.shape(instruction.message(3))} {opcode}({inside})",
            *attributes(instruction),
            *self._called(opcode, instruction.numbers(38), by_predicate=by_predicate),
        ]
        if predecessors := instruction.numbers(37):
            listed = self._listed([_name(predecessor, names) for predecessor in predecessors])
            parts.append(f"control-predecessors={{{listed}}}")
        if metadata := self._metadata(instruction):
            parts.append(f"metadata={{{metadata}}}")
        if config := instruction.octets(43) or self._payload(instruction.message(99)):
            written = config.decode("utf-8", "replace")
            parts.append(f"backend_config={written if _is_bare(written) else quoted(written)}")
        return ", ".join(parts)

    def _called(self, opcode: str, numbers: list[int], *, by_predicate: bool) -> Iterator[str]:
        named = [self._names.get(number, f"computation.{number}") for number in numbers]
        self._check(sum(map(len, named)))
        called = ["%" + name for name in named]
        if opcode == "conditional" and by_predicate and len(called) == 2:
            yield f"true_computation={called[0]}"
            yield f"false_computation={called[1]}"
        elif opcode in _CALLING_LISTS:
            if called:
                yield f"{_CALLING_LISTS[opcode]}={{{', '.join(called)}}}"
        elif opcode in _CALLING and len(called) <= len(_CALLING[opcode]):
            yield from (f"{name}={computation}" for name, computation in zip(_CALLING[opcode], called, strict=False))
        elif len(called) == 1:
            yield f"to_apply={called[0]}"
        elif called:
            yield f"called_computations={{{', '.join(called)}}}"

    def _payload(self, payload: Message) -> bytes:
        """Newer modules keep long fields in a separate table, and refer to them by number from 1."""
        number = payload.number(2)
        return payload.octets(1) or (self._payloads[number - 1] if 0 < number <= len(self._payloads) else b"")

    def _metadata(self, instruction: Message) -> str:
        proto = instruction.message(7)
        if 20 in proto and (payload := self._payload(proto.message(20))):
            proto = Message(payload)
        texts = ((1, "op_type"), (2, "op_name"), (3, "source_file"), (16, "scheduling_name"), (12, "deduplicated_name"))
        numbers = (
            (4, "source_line"), (17, "source_end_line"), (18, "source_column"), (19, "source_end_column"),
            (15, "stack_frame_id"),
        )  # fmt: skip
        parts = [f"{name}={quoted(value)}" for number, name in texts if (value := proto.text(number))]
        parts += [f"{name}={content}" for number, name in numbers if (content := proto.number(number))]
        return " ".join(parts)


def _name(number: int, names: Mapping[int, str]) -> str:
    return names.get(number) or names.get(number & _LOCAL) or f"unknown.{number}"


def _is_bare(config: str) -> bool:
    """Whether the printer writes these settings without quotes: a JSON object, which cannot be mistaken for the text
    around it."""
    return config.startswith("{") and balanced_end(config, 0, len(config)) == len(config)


def _tables(index: Message) -> Iterator[str]:
    """The four tables of `StackFrameIndexProto`, with a parent's number plus 1, as in text."""
    if not index.messages(4):
        return
    for title, names in (("FileNames", index.texts(1)), ("FunctionNames", index.texts(2))):
        yield title + "".join(f"\n{number} {quoted(name)}" for number, name in enumerate(names, start=1)) + "\n\n"
    yield "FileLocations"
    for number, row in enumerate(index.messages(3), start=1):
        yield (
            f"\n{number} {{file_name_id={row.number(1)} function_name_id={row.number(2)} line={row.number(3)} "
            f"end_line={row.number(5)} column={row.number(4)} end_column={row.number(6)}}}"
        )
    yield "\n\nStackFrames"
    for number, row in enumerate(index.messages(4), start=1):
        yield f"\n{number} {{file_location_id={row.number(1)} parent_frame_id={row.number(2) + 1}}}"
    yield "\n\n\n"
