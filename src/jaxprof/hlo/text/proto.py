"""Read a module from its proto: `HloModuleProto`, alone or inside an `HloProto` (XPlane files,
`--xla_dump_hlo_as_proto`).

The proto is written out as HLO text and that text is parsed, so there is one model: every source of a module is shown,
searched and analysed alike. Field numbers are those of `xla/service/hlo.proto` and `xla/xla_data.proto`. The file holds
the notation of shapes, literals and shardings first, then the attributes (each row or function handles one field or one
message, with its exceptions for single opcodes), then the module.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from math import prod

from jaxprof.base.errors import HloError
from jaxprof.base.limits import INSTRUCTIONS, UNPACKED
from jaxprof.hlo.text import end_of_brackets
from jaxprof.hlo.text.wire import Message

PRIMITIVE_TYPES: dict[int, str] = {
    1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64", 10: "f16", 11: "f32",
    12: "f64", 13: "tuple", 14: "opaque", 15: "c64", 16: "bf16", 17: "token", 18: "c128", 19: "f8e5m2", 20: "f8e4m3fn",
    21: "s4", 22: "u4", 23: "f8e4m3b11fnuz", 24: "f8e5m2fnuz", 25: "f8e4m3fnuz", 26: "s2", 27: "u2", 28: "f8e4m3",
    29: "f8e3m4", 30: "s1", 31: "u1", 32: "f4e2m1fn", 33: "f8e8m0fnu", 34: "buffer", 35: "f6e3m2fn", 36: "f6e2m3fn",
}  # fmt: skip
_PRED = 1
_TUPLE = 13  # as `PRIMITIVE_TYPES` has it, like the next
_BUFFER = 34
_UNBOUNDED = -(1 << 63)  # size of a dimension without a limit (`Shape::kUnboundedSize`)
_SHOWN_ELEMENTS = 16  # longer literals are `{...}`, as XLA prints them
_DEEPEST = 64  # a damaged proto may nest deeper than Python can call


def commas(numbers: Iterable[object]) -> str:
    return ",".join(map(str, numbers))


def in_braces(numbers: Iterable[object]) -> str:
    return "{" + commas(numbers) + "}"


def _iota(dimensions: Iterable[int], permutation: list[int]) -> str:
    """Return the order of devices that are counted in an array of these dimensions, which may then be transposed:
    `<=[2,4]T(1,0)`."""
    transposed = permutation != list(range(len(permutation)))
    return f"<=[{commas(dimensions)}]" + (f"T({commas(permutation)})" if transposed else "")


def quote(text: str) -> str:
    """Return `text` quoted as in HLO text, with C escapes for everything that is not printable ASCII."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text and "'" not in text:
        return f'"{text}"'
    letters = {9: "\\t", 10: "\\n", 13: "\\r", 34: '\\"', 39: "\\'", 92: "\\\\"}
    escapes = (
        letters.get(octet) or (chr(octet) if 32 <= octet < 127 else f"\\{octet:03o}")
        for octet in text.encode("utf-8", "replace")
    )
    return f'"{"".join(escapes)}"'


def shape_text(proto: Message, *, layouts: bool = True, depth: int = 0) -> str:
    """Return the text of a `ShapeProto`; leave out layouts for a computation's signature."""
    kind = proto.number(2)
    if kind in (_TUPLE, _BUFFER) and depth < _DEEPEST:
        members = [shape_text(member, layouts=layouts, depth=depth + 1) for member in proto.messages(4)]
        if kind == _BUFFER:
            return f"b({', '.join(members)})"
        return f"({', '.join(f'/*index={n}*/{m}' if n and n % 5 == 0 else m for n, m in enumerate(members))})"
    name = PRIMITIVE_TYPES.get(kind, f"type{kind}")
    dynamic = proto.numbers(6)
    sizes = []
    for number, size in enumerate(proto.numbers(3)):
        if size == _UNBOUNDED:
            sizes.append("?")
        else:
            sizes.append(f"<={size}" if number < len(dynamic) and dynamic[number] else str(size))
    written = f"{name}[{','.join(sizes)}]"
    return written + _layout(proto.message(5), len(sizes)) if layouts and 5 in proto else written


def _layout(proto: Message, rank: int) -> str:
    rest = "".join(f"({commas('*' if size < 0 else size for size in tile.numbers(1))})" for tile in proto.messages(6))
    rest = "T" + rest if rest else ""
    if alignment := proto.number(16):
        rest += f"L({alignment})" if alignment != 1 else ""
    if bits := proto.number(7):
        rest += f"E({bits})"
    if space := proto.number(8):
        rest += f"S({space})"
    if not rest and not rank:
        return ""
    return "{" + commas(proto.numbers(1)) + (":" + rest if rest else "") + "}"


_LITERALS = {
    4: (4, ""), 5: (5, ""), 8: (6, ""), 9: (7, ""), 11: (8, "f"), 12: (9, "d"), 2: (15, "b"), 6: (3, "B"), 3: (17, "h"),
    7: (16, "H"), 10: (11, "e"), 16: (13, "H"),
}  # fmt: skip
"""Field of a literal by primitive type, and the `struct` format of its elements; none for varints. bfloat16 is the
upper half of a float32."""
_UNSIGNED = (8, 9)  # their varints are read as signed
_BFLOAT16 = 16


def literal_text(proto: Message, depth: int = 0) -> str:
    """Return the text of a `LiteralProto` of at most 16 elements; `{...}` for a longer one, as XLA's printer writes
    it."""
    kind = proto.message(1).number(2)
    if kind == _TUPLE and depth < _DEEPEST:
        return f"( {', '.join(literal_text(member, depth + 1) for member in proto.messages(10)[:_SHOWN_ELEMENTS])} )"
    sizes = proto.message(1).numbers(3)
    count = prod(sizes) if all(size >= 0 for size in sizes) else _SHOWN_ELEMENTS + 1
    if count > _SHOWN_ELEMENTS or len(sizes) > _DEEPEST:
        return "{...}"
    values = _values(proto, kind)
    return _nested(values, sizes) if len(values) == count else "{...}"


def _values(proto: Message, kind: int) -> list[str]:
    if kind == _PRED:
        return ["true" if value else "false" for value in proto.numbers(2)]
    number, code = _LITERALS.get(kind, (0, ""))
    if not code:
        return [str(value % (1 << 64) if kind in _UNSIGNED else value) for value in proto.numbers(number)]
    values = proto.floats(number, code)
    if kind == _BFLOAT16:
        return [f"{struct.unpack('<f', struct.pack('<I', int(value) << 16))[0]:.4g}" for value in values]
    return [_shortest(value, code) if code in _DIGITS else str(value) for value in values]


_DIGITS = {"e": (5, 5), "f": (6, 9), "d": (15, 17)}


def _shortest(value: float, code: str) -> str:
    """Return the value as C's `%g` prints it, with more digits only if they are needed to identify the value."""
    few, all_of_them = _DIGITS[code]
    text = f"{value:.{few}g}"
    try:
        same = struct.pack(code, float(text)) == struct.pack(code, value)
    except OverflowError:
        same = False
    return text if same else f"{value:.{all_of_them}g}"


def _nested(values: Sequence[str], sizes: Sequence[int]) -> str:
    if not sizes:
        return values[0] if values else "{...}"
    if len(sizes) == 1:
        return "{" + ", ".join(values) + "}"
    step = prod(sizes[1:])
    parts = (_nested(values[n * step : (n + 1) * step], sizes[1:]) for n in range(sizes[0]))
    return "{ " + ", ".join(parts) + " }"


_SHARDING_TYPES = {0: "replicated", 3: "devices", 4: "manual", 5: "unknown", 6: "unreduced"}


def sharding_text(proto: Message, depth: int = 0) -> str:
    """Return the text of an `OpSharding`: `{replicated}`, `{devices=[2,4]<=[8]}`, or a braced list for a tuple."""
    # OpSharding: 1 type, 4 tile_assignment_devices, 5 tuple_shardings. Newer ones name the axes of a mesh instead (14).
    if 14 in proto:
        proto = proto.message(14)
        on = proto.message(2)
        if not on.messages(1) and len(on.numbers(2)) == 1:
            return f"{{single_device[device_id={on.numbers(2)[0]}]}}"
        dimensions = [axes_text(on, dimension.messages(1)) for dimension in proto.messages(3)]
        rest = [
            f"{name}={axes_text(on, proto.messages(number))}"
            for number, name in ((4, "replicated"), (5, "unreduced"), (7, "manual"))
            if number in proto
        ]
        return "{" + ", ".join([mesh_text(on), f"[{', '.join(dimensions)}]", *rest]) + "}"
    kind = proto.number(1)
    if kind == 2 and depth < _DEEPEST:
        return "{" + ", ".join(sharding_text(member, depth + 1) for member in proto.messages(5)) + "}"
    if kind == 1:
        return f"{{maximal device={commas(proto.numbers(4))}}}"
    if kind != 3:
        return "{" + _SHARDING_TYPES.get(kind, f"type{kind}") + "}"
    reshape = proto.numbers(9)
    order = _iota(reshape, proto.numbers(10)) if reshape else commas(proto.numbers(4))
    tiles = f"devices=[{commas(proto.numbers(3))}]{order}"
    if proto.number(6):
        tiles += " last_tile_dim_replicate"
    if last := proto.numbers(8):
        tiles += (
            f" last_tile_dims={{{', '.join(_SHARDING_TYPES.get(dimension, str(dimension)) for dimension in last)}}}"
        )
    return "{" + tiles + "}"


def mesh_text(proto: Message) -> str:
    """Return the text of a `MeshProto`: `mesh['data'=4,'model'=2]`."""
    sizes = ",".join(f"'{axis.text(1)}'={axis.number(2)}" for axis in proto.messages(1))
    if devices := proto.numbers(2):
        sizes += f", device_ids=({commas(devices)})"
    return f"mesh[{sizes}]"


def axes_text(mesh_proto: Message, references: Iterable[Message]) -> str:
    """Return `AxisRefProto`s by name: `{'data'}`, or `'data':(2)2` for a part of an axis (size before it, then its own
    size)."""
    names = [axis.text(1) for axis in mesh_proto.messages(1)]
    written = []
    for reference in references:
        number = reference.number(1)
        name = names[number] if 0 <= number < len(names) else str(number)
        part = reference.message(2)
        written.append(f"'{name}':({part.number(1)}){part.number(2)}" if 2 in reference else f"'{name}'")
    return in_braces(written)


_Writer = Callable[[Message], Iterator[str]]

_NUMBERS = (
    (13, "index"), (18, "exponent_bits"), (19, "mantissa_bits"), (25, "feature_index"), (66, "delta"), (81, "k"),
    (80, "cross_program_prefetch_index"),
)  # fmt: skip
"""Attributes that are printed if the field is present or the opcode always has it (see `_BY_NATURE`)."""
_BY_NATURE = {
    "get-tuple-element": {13}, "reduce-precision": {18, 19}, "batch-norm-training": {25}, "batch-norm-grad": {25},
    "batch-norm-inference": {25}, "rng-get-and-update-state": {66}, "topk": {81},
}  # fmt: skip
_FLAGS = (
    (47, "is_host_transfer"), (60, "is_stable"), (67, "indices_are_sorted"), (69, "unique_indices"),
    (71, "use_global_device_ids"), (65, "custom_call_has_side_effect"), (89, "is_composite"), (94, "is_reverse"),
)  # fmt: skip
_LISTS = ((20, "dynamic_slice_sizes"), (32, "fft_length"), (34, "slice_sizes"))
_TEXTS = ((11, "kind", False), (63, "direction", False), (28, "custom_call_target", True))
_NO_DIMENSIONS_TOO = frozenset({"broadcast", "map", "reduce", "transpose"})
_FFT = ("FFT", "IFFT", "RFFT", "IRFFT")
_PRECISIONS = ("default", "high", "highest")
_ALGORITHMS = (
    "unset", "dot_any_f8_any_f8_f32", "dot_any_f8_any_f8_f32_fast_accum", "dot_f16_f16_f16", "dot_f16_f16_f32",
    "dot_bf16_bf16_bf16", "dot_bf16_bf16_f32", "dot_bf16_bf16_f32_x3", "dot_bf16_bf16_f32_x6", "dot_tf32_tf32_f32",
    "dot_tf32_tf32_f32_x3", "dot_f32_f32_f32", "dot_f64_f64_f64", "dot_bf16_bf16_f32_x9",
)  # fmt: skip
_API_VERSIONS = {2: "STATUS_RETURNING", 3: "STATUS_RETURNING_UNIFIED", 4: "TYPED_FFI"}
_TRANSPOSES = ("TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
_DISTRIBUTIONS = {1: "rng_uniform", 2: "rng_normal"}
_RANDOM_ALGORITHMS = ("rng_default", "rng_three_fry", "rng_philox")


def attributes(instruction: Message) -> Iterator[str]:
    """Yield `name=value` for each field that is set, except names of other instructions and computations."""
    opcode = instruction.text(2)
    yield from _simple(instruction, opcode)
    for number, write in _MESSAGES.items():
        if number in instruction:
            yield from write(instruction.message(number))
    parts = []
    for dimension in instruction.messages(17):
        stride = f":{dimension.number(3)}" if dimension.number(3) > 1 else ""
        parts.append(f"[{dimension.number(1)}:{dimension.number(2)}{stride}]")
    if parts:
        yield f"slice={{{', '.join(parts)}}}"
    if channel := instruction.number(26):
        yield f"channel_id={channel}"
    # Newer protos have the short form beside the list of groups; older ones have it inside the list.
    iota = instruction.message(92) if 92 in instruction else instruction.message(87).message(2)
    groups = [in_braces(group.numbers(1)) for group in instruction.messages(49) or instruction.message(87).messages(1)]
    if iota.numbers(3):
        yield f"replica_groups=[{iota.number(1)},{iota.number(2)}]{_iota(iota.numbers(3), iota.numbers(4))}"
    elif 93 in instruction:
        by_axes = instruction.message(93)
        on = by_axes.message(1)
        yield f"replica_groups={mesh_text(on)} {axes_text(on, by_axes.messages(2))}"
    elif groups or 87 in instruction:
        yield f"replica_groups={{{','.join(groups)}}}"
    if pairs := [in_braces((pair.number(1), pair.number(2))) for pair in instruction.messages(52)]:
        yield f"source_target_pairs={{{','.join(pairs)}}}"
    if opcode == "custom-call":
        if instruction.number(56):
            shapes = ", ".join(map(shape_text, instruction.messages(57)))
            yield f"operand_layout_constraints={{{shapes}}}"
        if version := _API_VERSIONS.get(instruction.number(77)):
            yield f"api_version=API_VERSION_{version}"
        if aliases := instruction.messages(74):
            listed = (
                f"{in_braces(alias.numbers(1))}: ({alias.number(2)}, {in_braces(alias.numbers(3))})"
                for alias in aliases
            )
            yield f"output_to_operand_aliasing={{{', '.join(listed)}}}"
    if 40 in instruction:
        yield f"sharding={sharding_text(instruction.message(40))}"
    if (thread := instruction.text(79)) and thread != "main":
        yield f"async_execution_thread={quote(thread)}"
    if frontends := [(entry.text(1), entry.text(2)) for entry in instruction.message(68).messages(1)]:
        yield f"frontend_attributes={{{','.join(f'{key}={frontend(value)}' for key, value in sorted(frontends))}}}"
    proto = instruction.message(82)
    values = "".join(
        f",{statistic.text(1)}={next(iter(statistic.floats(2, 'd')), 0.0):g}" for statistic in proto.messages(2)
    )
    if values:
        yield f"statistics={{visualizing_index={proto.number(1)}{values}}}"


def frontend(value: str) -> str:
    """Return the value of a frontend attribute in quotes, unless it has braces of its own."""
    return value if value.startswith("{") and value.endswith("}") else quote(value)


def _simple(instruction: Message, opcode: str) -> Iterator[str]:
    dimensions = instruction.numbers(14)
    if opcode == "iota":
        yield f"iota_dimension={dimensions[0] if dimensions else 0}"
    elif dimensions or opcode in _NO_DIMENSIONS_TOO:
        yield f"dimensions={in_braces(dimensions)}"
    natural: Set[int] = _BY_NATURE.get(opcode, frozenset())
    for number, name in _NUMBERS:
        if number in instruction or number in natural:
            yield f"{name}={instruction.number(number)}"
    yield from _flags(*_FLAGS)(instruction)
    if opcode == "all-to-all" and instruction.number(56):
        yield "constrain_layout=true"
    yield from _lists(*_LISTS)(instruction)
    for number, name, in_quotes in _TEXTS:
        if text := instruction.text(number):
            yield f"{name}={quote(text) if in_quotes else text}"
    if instruction.text(72) == "TOTALORDER":
        yield "type=TOTALORDER"
    if 24 in instruction or opcode.startswith("batch-norm"):
        yield f"epsilon={next(iter(instruction.floats(24, 'f')), 0.0):.9g}"
    if opcode == "topk":
        yield f"largest={str(bool(instruction.number(85))).lower()}"
    if opcode == "fft":
        yield f"fft_type={_FFT[instruction.number(31) % 4]}"
    if 23 in instruction:
        yield f"distribution={_DISTRIBUTIONS.get(instruction.number(23), 'rng_invalid')}"
    if opcode == "rng-bit-generator":
        yield f"algorithm={_RANDOM_ALGORITHMS[instruction.number(70) % 3]}"
    for number, name in ((50, "feature_group_count"), (58, "batch_group_count")):
        if instruction.number(number) > 1:
            yield f"{name}={instruction.number(number)}"


def _lists(*fields: tuple[int, str]) -> _Writer:
    """Return a writer of integer lists that skips lists absent from the message."""

    def write(proto: Message) -> Iterator[str]:
        for number, name in fields:
            if number in proto:
                yield f"{name}={in_braces(proto.numbers(number))}"

    return write


def _indexed(*fields: tuple[int, str]) -> _Writer:
    """Return a writer of gather's and scatter's lists: always the first three, batching lists only if present."""

    def write(proto: Message) -> Iterator[str]:
        for position, (number, name) in enumerate(fields):
            if position < 3 or number in proto:
                yield f"{name}={in_braces(proto.numbers(number))}"
        yield f"index_vector_dim={proto.number(4)}"

    return write


_WINDOW = (
    ("size", (1,), ""), ("stride", (2,), "1"), ("pad", (3, 4), "0_0"), ("lhs_dilate", (6,), "1"),
    ("rhs_dilate", (5,), "1"), ("rhs_reversal", (7,), "0"),
)  # fmt: skip
"""Parts of a window, the fields that one has of each dimension, and the value that is left out."""


def _window(proto: Message) -> Iterator[str]:
    dimensions = proto.messages(1)
    parts = []
    for name, fields, plain in _WINDOW:
        values = ["_".join(str(dimension.number(field)) for field in fields) for dimension in dimensions]
        if any(value != plain for value in values):
            parts.append(f"{name}={'x'.join(values)}")
    if parts:
        yield f"window={{{' '.join(parts)}}}"


def _dimension_labels(proto: Message) -> Iterator[str]:
    def labels(first: tuple[str, int], second: tuple[str, int], spatial: list[int]) -> str:
        label_of = {first[1]: first[0], second[1]: second[0]} | {at: str(n) for n, at in enumerate(spatial)}
        return "".join(label_of[dimension] for dimension in sorted(label_of))

    yield "dim_labels=" + "".join(
        (
            labels(("b", proto.number(7)), ("f", proto.number(8)), proto.numbers(11)),
            "_",
            labels(("i", proto.number(3)), ("o", proto.number(4)), proto.numbers(6)),
            "->",
            labels(("b", proto.number(9)), ("f", proto.number(10)), proto.numbers(12)),
        )
    )


def _padding(proto: Message) -> Iterator[str]:
    parts = []
    for dimension in proto.messages(1):
        interior = f"_{dimension.number(3)}" if dimension.number(3) else ""
        parts.append(f"{dimension.number(1)}_{dimension.number(2)}{interior}")
    yield f"padding={'x'.join(parts)}"


def _precision(proto: Message) -> Iterator[str]:
    precisions = proto.numbers(1)
    if any(precisions):
        yield f"operand_precision={in_braces(_PRECISIONS[precision % 3] for precision in precisions)}"
    if algorithm := proto.number(2):
        yield f"algorithm={_ALGORITHMS[algorithm] if algorithm < len(_ALGORITHMS) else algorithm}"


def _flags(*fields: tuple[int, str]) -> _Writer:

    def write(proto: Message) -> Iterator[str]:
        yield from (f"{name}=true" for number, name in fields if proto.number(number))

    return write


def _triangular_solve(proto: Message) -> Iterator[str]:
    yield from _flags((1, "left_side"), (2, "lower"), (3, "unit_diagonal"))(proto)
    yield f"transpose_a={_TRANSPOSES[proto.number(4) % 4]}"


_DOT = _lists((3, "lhs_batch_dims"), (1, "lhs_contracting_dims"), (4, "rhs_batch_dims"), (2, "rhs_contracting_dims"))


def _ragged_dot(proto: Message) -> Iterator[str]:
    yield from _DOT(proto.message(1))
    yield from _lists((2, "lhs_ragged_dims"), (3, "rhs_group_dims"))(proto)


_MESSAGES: dict[int, _Writer] = {
    15: _window,
    16: _dimension_labels,
    21: _padding,
    30: _DOT,
    33: _indexed(
        (1, "offset_dims"), (2, "collapsed_slice_dims"), (3, "start_index_map"), (5, "operand_batching_dims"),
        (6, "start_indices_batching_dims"),
    ),
    48: _indexed(
        (1, "update_window_dims"), (2, "inserted_window_dims"), (3, "scatter_dims_to_operand_dims"),
        (5, "input_batching_dims"), (6, "scatter_indices_batching_dims"),
    ),
    51: _precision,
    59: _triangular_solve,
    62: _flags((1, "lower")),
    90: _ragged_dot,
}  # fmt: skip


_CALLING = {
    "fusion": ("calls",),
    "while": ("body", "condition"),
    "select-and-scatter": ("select", "scatter"),
    "async-start": ("calls",),
    "async-update": ("calls",),
    "async-done": ("calls",),
}
"""Attributes in which an opcode names the computations that it calls, one each. Other opcodes use `to_apply` or a
list."""
_CALLING_LISTS = {"conditional": "branch_computations", "custom-call": "called_computations"}
_ALIAS_KINDS = {1: "may-alias", 2: "must-alias"}
OWN_ID = (1 << 32) - 1
"""Mask of an instruction's own number, above which newer protos write that of its computation."""


class BeyondLimitError(HloError):
    """Raised for a module proto that is larger than the limits allow."""


def text(data: bytes) -> str:
    """Return the HLO text of the module in `data`, with literals of more than 16 elements elided.

    Raises HloError if `data` is neither of the two messages, is damaged, or exceeds the limits `instructions` and, as
    text, `unpack`.
    """
    return "".join(_ModuleWriter(module_message(data)).write())


def module_message(data: bytes) -> Message:
    """Return the `HloModuleProto` in `data`. Raises HloError as `text` does."""
    outer = Message(data)
    candidates = [outer]
    with suppress(HloError):  # field 1 of an HloModuleProto is its name
        candidates.insert(0, outer.message(1))
    for proto in candidates:
        if 3 in proto and 1 in proto:
            _check_count(proto.count(3))
            computations = proto.messages(3)
            if computations and all(2 in computation and 1 in computation for computation in computations[:3]):
                return proto
    raise HloError("the protobuf holds no HLO module", "Give an HloProto or an HloModuleProto, or HLO text.")


def _check_count(instructions: int) -> None:
    if instructions > INSTRUCTIONS.most:
        raise BeyondLimitError(f"the protobuf has {INSTRUCTIONS.words}", INSTRUCTIONS.hint)


class _ModuleWriter:
    """Writer of one `HloModuleProto` as text."""

    def __init__(self, proto: Message) -> None:
        self._proto = proto
        self._computations = proto.messages(3)
        _check_count(sum(1 + computation.count(2) for computation in self._computations))
        self._left = UNPACKED.most
        """Characters that may still be written; a message can name one operand a million times."""
        self._names = {computation.number(5): computation.text(1) for computation in self._computations}
        self._payloads = proto.all_octets(22)
        self._sequences: Mapping[int, list[int]] = {
            entry.number(1): entry.message(2).numbers(1) for entry in proto.message(7).messages(1)
        }

    def write(self) -> Iterator[str]:
        yield ", ".join([f"HloModule {self._proto.text(1)}", *self._header()]) + "\n\n"
        yield from _tables(self._proto.message(17))
        # HloModuleProto: 1 name, 4 host_program_shape, 6 entry_computation_id, 7 schedule, 8 input_output_alias, 17
        # stack_frame_index, 18 buffer_donor, 19 frontend_attributes.
        entry = self._proto.number(6)
        for computation in self._computations:
            for written in self._computation(computation, is_entry=computation.number(5) == entry):
                self._left -= len(written)
                self._check(0)
                yield written

    def _check(self, length: int) -> None:
        """Raise HloError if a text of this length exceeds what may still be written."""
        if length > self._left:
            raise BeyondLimitError(f"the protobuf has {UNPACKED.words} as text", UNPACKED.hint)

    def _name_list(self, names: list[str]) -> str:
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
                f"{in_braces(pair.numbers(1))}: ({pair.number(2)}, {in_braces(pair.numbers(3))}, {kind(pair)})"
                for pair in aliases
            )
            yield f"input_output_alias={{ {', '.join(pairs)} }}"
        if donors := proto.message(18).messages(1):
            pairs = (f"({pair.number(1)}, {in_braces(pair.numbers(2))})" for pair in donors)
            yield f"buffer_donor={{ {', '.join(pairs)} }}"
        if 4 in proto:
            program = proto.message(4)
            parameters = ", ".join(shape_text(shape) for shape in program.messages(1))
            yield f"entry_computation_layout={{({parameters})->{shape_text(program.message(2))}}}"
        if entries := proto.message(19).messages(1):
            pairs = (f"{entry.text(1)}={frontend(entry.text(2))}" for entry in entries)
            yield f"frontend_attributes={{{','.join(pairs)}}}"

    def _computation(self, computation: Message, *, is_entry: bool) -> Iterator[str]:
        # HloComputationProto: 1 name, 2 instructions, 4 program_shape, 5 id, 6 root_id, 8 execution_thread.
        program = computation.message(4)
        parameters = ", ".join(
            f"{name}: {shape_text(shape, layouts=False)}"
            for name, shape in zip(program.texts(3), program.messages(1), strict=False)
        )
        result = shape_text(program.message(2), layouts=False)
        yield f"{'ENTRY ' * is_entry}%{computation.text(1)} ({parameters}) -> {result} {{\n"
        instructions = computation.messages(2)
        names = {instruction.number(35): instruction.text(1) for instruction in instructions}
        # Newer protos name an instruction by its computation's number and its own; older ones by its own.
        names = {number & OWN_ID: name for number, name in names.items()} | names
        if order := self._sequences.get(computation.number(5)):
            position = {number & OWN_ID: index for index, number in enumerate(order)}
            instructions.sort(key=lambda instruction: position.get(instruction.number(35) & OWN_ID, len(position)))
        predicates = {
            instruction.number(35) & OWN_ID for instruction in instructions if instruction.message(3).number(2) == _PRED
        }
        root = computation.number(6)
        for instruction in instructions:
            is_root = instruction.number(35) & OWN_ID == root & OWN_ID
            # HloInstructionProto: 1 name, 2 opcode, 3 shape, 7 metadata, 8 literal, 9 parameter_number, 35 id, 36
            # operand_ids, 37 control_predecessor_ids, 38 called_computation_ids, 43 backend_config.
            opcode = instruction.text(2)
            if opcode == "parameter":
                inside = str(instruction.number(9))
            elif opcode == "constant":
                inside = literal_text(instruction.message(8))
            else:
                inside = self._name_list([_name(number, names) for number in instruction.numbers(36)])
            selector = instruction.numbers(36)[:1] if opcode == "conditional" else []
            by_predicate = bool(selector) and selector[0] & OWN_ID in predicates
            parts = [
                f"%{instruction.text(1)} = {shape_text(instruction.message(3))} {opcode}({inside})",
                *attributes(instruction),
                *self._callee_attributes(opcode, instruction.numbers(38), by_predicate=by_predicate),
            ]
            if predecessors := instruction.numbers(37):
                listed = self._name_list([_name(predecessor, names) for predecessor in predecessors])
                parts.append(f"control-predecessors={{{listed}}}")
            if metadata := self._metadata(instruction):
                parts.append(f"metadata={{{metadata}}}")
            if config := instruction.octets(43) or self._payload(instruction.message(99)):
                written = config.decode("utf-8", "replace")
                # A JSON object stands out from the text around, so the printer leaves out its quotes.
                is_object = written.startswith("{") and end_of_brackets(written, 0, len(written)) == len(written)
                parts.append(f"backend_config={written if is_object else quote(written)}")
            yield f"  {'ROOT ' * is_root}{', '.join(parts)}\n"
        thread = computation.text(8)
        yield f"}}, execution_thread={quote(thread)}\n\n" if thread and thread != "main" else "}\n\n"

    def _callee_attributes(self, opcode: str, numbers: list[int], *, by_predicate: bool) -> Iterator[str]:
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
        """Return the octets of a long field, which newer modules keep in a separate table and number from 1."""
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
        parts = [f"{name}={quote(value)}" for number, name in texts if (value := proto.text(number))]
        parts += [f"{name}={content}" for number, name in numbers if (content := proto.number(number))]
        return " ".join(parts)


def _name(number: int, names: Mapping[int, str]) -> str:
    return names.get(number) or names.get(number & OWN_ID) or f"unknown.{number}"


def _tables(index: Message) -> Iterator[str]:
    """Yield the four tables of `StackFrameIndexProto`; a parent's number is increased by 1, as in HLO text."""
    if not index.messages(4):
        return
    for title, names in (("FileNames", index.texts(1)), ("FunctionNames", index.texts(2))):
        yield title + "".join(f"\n{number} {quote(name)}" for number, name in enumerate(names, start=1)) + "\n\n"
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
