"""The attributes of an `HloInstructionProto` (`xla/service/hlo.proto`), written as XLA's text printer writes them.

Each row or function below handles one field or one message; the exceptions for single opcodes are in these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import Final

from jaxprof.hlo.read import proto_values as values
from jaxprof.hlo.read.proto_values import braced, quoted
from jaxprof.hlo.read.wire import Message

_Writer = Callable[[Message], Iterator[str]]

_NUMBERS: Final = (
    (13, "index"), (18, "exponent_bits"), (19, "mantissa_bits"), (25, "feature_index"), (66, "delta"), (81, "k"),
    (80, "cross_program_prefetch_index"),
)  # fmt: skip
"""Printed where the field is present, or where the opcode has it by nature (see `_BY_NATURE`)."""
_BY_NATURE: Final = {
    "get-tuple-element": {13}, "reduce-precision": {18, 19}, "batch-norm-training": {25}, "batch-norm-grad": {25},
    "batch-norm-inference": {25}, "rng-get-and-update-state": {66}, "topk": {81},
}  # fmt: skip
_FLAGS: Final = (
    (47, "is_host_transfer"), (60, "is_stable"), (67, "indices_are_sorted"), (69, "unique_indices"),
    (71, "use_global_device_ids"), (65, "custom_call_has_side_effect"), (89, "is_composite"), (94, "is_reverse"),
)  # fmt: skip
_LISTS: Final = ((20, "dynamic_slice_sizes"), (32, "fft_length"), (34, "slice_sizes"))
_TEXTS: Final = ((11, "kind", False), (63, "direction", False), (28, "custom_call_target", True))
_NO_DIMENSIONS_TOO: Final = frozenset({"broadcast", "map", "reduce", "transpose"})
_FFT: Final = ("FFT", "IFFT", "RFFT", "IRFFT")
_PRECISIONS: Final = ("default", "high", "highest")
_ALGORITHMS: Final = (
    "unset", "dot_any_f8_any_f8_f32", "dot_any_f8_any_f8_f32_fast_accum", "dot_f16_f16_f16", "dot_f16_f16_f32",
    "dot_bf16_bf16_bf16", "dot_bf16_bf16_f32", "dot_bf16_bf16_f32_x3", "dot_bf16_bf16_f32_x6", "dot_tf32_tf32_f32",
    "dot_tf32_tf32_f32_x3", "dot_f32_f32_f32", "dot_f64_f64_f64", "dot_bf16_bf16_f32_x9",
)  # fmt: skip
_API_VERSIONS: Final = {2: "STATUS_RETURNING", 3: "STATUS_RETURNING_UNIFIED", 4: "TYPED_FFI"}
_TRANSPOSES: Final = ("TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
_DISTRIBUTIONS: Final = {1: "rng_uniform", 2: "rng_normal"}
_RANDOM_ALGORITHMS: Final = ("rng_default", "rng_three_fry", "rng_philox")


def attributes(instruction: Message) -> Iterator[str]:
    """`name=value` for each field that says something, except names of other instructions and computations."""
    opcode = instruction.text(2)
    yield from _simple(instruction, opcode)
    for number, write in _MESSAGES.items():
        if number in instruction:
            yield from write(instruction.message(number))
    yield from _slices(instruction)
    yield from _collective(instruction)
    if opcode == "custom-call":
        yield from _custom_call(instruction)
    if 40 in instruction:
        yield f"sharding={values.sharding(instruction.message(40))}"
    if (thread := instruction.text(79)) and thread != "main":
        yield f"async_execution_thread={quoted(thread)}"
    if pairs := [(entry.text(1), entry.text(2)) for entry in instruction.message(68).messages(1)]:
        yield f"frontend_attributes={{{','.join(f'{key}={frontend(value)}' for key, value in sorted(pairs))}}}"
    yield from _statistics(instruction.message(82))


def frontend(value: str) -> str:
    """The value of a frontend attribute: in quotes, but for one that has braces of its own."""
    return value if value.startswith("{") and value.endswith("}") else quoted(value)


def _simple(instruction: Message, opcode: str) -> Iterator[str]:
    dimensions = instruction.numbers(14)
    if opcode == "iota":
        yield f"iota_dimension={dimensions[0] if dimensions else 0}"
    elif dimensions or opcode in _NO_DIMENSIONS_TOO:
        yield f"dimensions={braced(dimensions)}"
    natural: Set[int] = _BY_NATURE.get(opcode, frozenset())
    for number, name in _NUMBERS:
        if number in instruction or number in natural:
            yield f"{name}={instruction.number(number)}"
    for number, name in _FLAGS:
        if instruction.number(number):
            yield f"{name}=true"
    if opcode == "all-to-all" and instruction.number(56):
        yield "constrain_layout=true"
    for number, name in _LISTS:
        if number in instruction:
            yield f"{name}={braced(instruction.numbers(number))}"
    for number, name, in_quotes in _TEXTS:
        if text := instruction.text(number):
            yield f"{name}={quoted(text) if in_quotes else text}"
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
    """Writes lists of integers; those of which the message has none are left out."""

    def write(proto: Message) -> Iterator[str]:
        for number, name in fields:
            if number in proto:
                yield f"{name}={braced(proto.numbers(number))}"

    return write


def _indexed(*fields: tuple[int, str]) -> _Writer:
    """Writes gather's and scatter's lists: the first three always, the batching ones where there are any."""

    def write(proto: Message) -> Iterator[str]:
        for position, (number, name) in enumerate(fields):
            if position < 3 or number in proto:
                yield f"{name}={braced(proto.numbers(number))}"
        yield f"index_vector_dim={proto.number(4)}"

    return write


def _window(proto: Message) -> Iterator[str]:
    dimensions = proto.messages(1)

    def row(name: str, numbers: list[str], plain: str) -> list[str]:
        return [f"{name}={'x'.join(numbers)}"] if any(number != plain for number in numbers) else []

    parts = [f"size={'x'.join(str(dimension.number(1)) for dimension in dimensions)}"] if dimensions else []
    parts += row("stride", [str(dimension.number(2)) for dimension in dimensions], "1")
    parts += row("pad", [f"{dimension.number(3)}_{dimension.number(4)}" for dimension in dimensions], "0_0")
    parts += row("lhs_dilate", [str(dimension.number(6)) for dimension in dimensions], "1")
    parts += row("rhs_dilate", [str(dimension.number(5)) for dimension in dimensions], "1")
    parts += row("rhs_reversal", [str(dimension.number(7)) for dimension in dimensions], "0")
    if parts:
        yield f"window={{{' '.join(parts)}}}"


def _dimension_labels(proto: Message) -> Iterator[str]:
    def labels(first: tuple[str, int], second: tuple[str, int], spatial: list[int]) -> str:
        placed = {first[1]: first[0], second[1]: second[0]} | {place: str(n) for n, place in enumerate(spatial)}
        return "".join(placed[place] for place in sorted(placed))

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
        yield f"operand_precision={braced(_PRECISIONS[precision % 3] for precision in precisions)}"
    if algorithm := proto.number(2):
        yield f"algorithm={_ALGORITHMS[algorithm] if algorithm < len(_ALGORITHMS) else algorithm}"


def _triangular_solve(proto: Message) -> Iterator[str]:
    for number, name in ((1, "left_side"), (2, "lower"), (3, "unit_diagonal")):
        if proto.number(number):
            yield f"{name}=true"
    yield f"transpose_a={_TRANSPOSES[proto.number(4) % 4]}"


def _cholesky(proto: Message) -> Iterator[str]:
    if proto.number(1):
        yield "lower=true"


_DOT: Final = _lists(
    (3, "lhs_batch_dims"), (1, "lhs_contracting_dims"), (4, "rhs_batch_dims"), (2, "rhs_contracting_dims")
)


def _ragged_dot(proto: Message) -> Iterator[str]:
    yield from _DOT(proto.message(1))
    yield from _lists((2, "lhs_ragged_dims"), (3, "rhs_group_dims"))(proto)


_MESSAGES: Final[dict[int, _Writer]] = {
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
    62: _cholesky,
    90: _ragged_dot,
}  # fmt: skip


def _slices(instruction: Message) -> Iterator[str]:
    parts = []
    for dimension in instruction.messages(17):
        stride = f":{dimension.number(3)}" if dimension.number(3) > 1 else ""
        parts.append(f"[{dimension.number(1)}:{dimension.number(2)}{stride}]")
    if parts:
        yield f"slice={{{', '.join(parts)}}}"


def _collective(instruction: Message) -> Iterator[str]:
    if channel := instruction.number(26):
        yield f"channel_id={channel}"
    # Newer protos have the short form beside the list of groups, older ones inside it.
    iota = instruction.message(92) if 92 in instruction else instruction.message(87).message(2)
    groups = [braced(group.numbers(1)) for group in instruction.messages(49) or instruction.message(87).messages(1)]
    if iota.numbers(3):
        groups_by_size = f"[{iota.number(1)},{iota.number(2)}]<=[{','.join(map(str, iota.numbers(3)))}]"
        permutation = iota.numbers(4)
        turned = f"T({','.join(map(str, permutation))})" if permutation != list(range(len(permutation))) else ""
        yield f"replica_groups={groups_by_size}{turned}"
    elif 93 in instruction:
        by_axes = instruction.message(93)
        on = by_axes.message(1)
        yield f"replica_groups={values.mesh(on)} {values.axes(on, by_axes.messages(2))}"
    elif groups or 87 in instruction:
        yield f"replica_groups={{{','.join(groups)}}}"
    if pairs := [braced((pair.number(1), pair.number(2))) for pair in instruction.messages(52)]:
        yield f"source_target_pairs={{{','.join(pairs)}}}"


def _custom_call(instruction: Message) -> Iterator[str]:
    if instruction.number(56):
        shapes = ", ".join(values.shape(shape) for shape in instruction.messages(57))
        yield f"operand_layout_constraints={{{shapes}}}"
    if version := _API_VERSIONS.get(instruction.number(77)):
        yield f"api_version=API_VERSION_{version}"
    if 74 in instruction:
        pairs = (
            f"{braced(alias.numbers(1))}: ({alias.number(2)}, {braced(alias.numbers(3))})"
            for alias in instruction.messages(74)
        )
        yield f"output_to_operand_aliasing={{{', '.join(pairs)}}}"


def _statistics(proto: Message) -> Iterator[str]:
    values = "".join(
        f",{statistic.text(1)}={next(iter(statistic.floats(2, 'd')), 0.0):g}" for statistic in proto.messages(2)
    )
    if values:
        yield f"statistics={{visualizing_index={proto.number(1)}{values}}}"
