"""The lines of JAX's transfer guard: what they say, and how they are taken out of what a program writes."""

import pytest

from jaxprof.runner.program import COLLECT_SECONDS, MOST_KINDS, OTHER_TYPES, GuardFilter, read_copy

PREFIXES = {
    "0.7.2": b"W1121 08:44:11.564065   28963 guard_lib.cc:115] ",
    "0.10.2": b"W1121 08:44:15.955764   29028 guard_lib.cc:125] ",
    "before absl's start": b"W0000 00:00:1763714661.621391   29103 transfer_guard_lib.cc:115] ",
}
ONE = "dst_sharding=SingleDeviceSharding(device=CpuDevice(id=0), memory_kind=device)"
OLD_MESH = (
    "NamedSharding(mesh=Mesh('x': 2, 'y': 4, axis_types=(Auto, Auto)), spec=PartitionSpec({}), memory_kind=device)"
)
NEW_MESH = "NamedSharding(mesh=Mesh('x': 2, 'y': 4, axis_types=(Explicit, Explicit)), spec=P({}), memory_kind=device)"
SAID = {
    f"aval=ShapedArray(int32[4]), {ONE}": ("i32[4]", 16),
    f"aval=ShapedArray(float32[], weak_type=True), {ONE}": ("f32[]", 4),
    f"aval=ShapedArray(bfloat16[2,3]), {ONE}": ("bf16[2,3]", 12),
    f"aval=ShapedArray(float8_e4m3fn[5]), {ONE}": ("f8_e4m3fn[5]", 5),
    f"aval=ShapedArray(uint4[3]), {ONE}": ("u4[3]", 3),
    f"aval=ShapedArray(key<fry>[2]), {ONE}": ("key<fry>[2]", None),
    f"aval=ShapedArray(float32[n,3]), {ONE}": ("f32[n,3]", None),
    f"aval=ShapedArray(float32[8,6]), dst_sharding={OLD_MESH.format('')}": ("f32[8,6]", 192),
    f"aval=ShapedArray(float32[8,6]), dst_sharding={OLD_MESH.format(repr('x') + ',')}": ("f32[8,6]", 96),
    f"aval=ShapedArray(float32[8@x,6]), dst_sharding={NEW_MESH.format(repr('x') + ', None')}": ("f32[8,6]", 96),
    f"aval=ShapedArray(float32[8@(x,y),6]), dst_sharding={NEW_MESH.format(repr(('x', 'y')) + ', None')}": (
        "f32[8,6]",
        24,
    ),
    "aval=ShapedArray(float32[8]), dst_sharding=GSPMDSharding({devices=[2]<=[2]})": ("f32[8]", None),
    "shape=(4), dtype=F32, device=CudaDevice(id=0)": ("f32[4]", 16),
    "shape=(), dtype=PRED": ("bool[]", 1),
    "": ("", None),
    "something else altogether": ("", None),
}


@pytest.mark.parametrize("said", SAID)
def test_what_a_line_says(said):
    copy = read_copy("host-to-device", said)
    assert copy.direction == "host_to_device"
    assert (copy.type, copy.bytes) == SAID[said]


def line(direction="host-to-device", said="", prefix=PREFIXES["0.10.2"]):
    return prefix + f"{direction} transfer: {said}\n".encode()


def rows(guard, now=0.0):
    seen = guard.collect(now, last=True)
    assert seen is None or all(row.source == "guard" for row in seen.rows)
    return [(row.direction, row.type, row.count, row.bytes) for row in seen.rows] if seen is not None else []


@pytest.mark.parametrize("version", PREFIXES)
def test_the_lines_of_every_version_are_counted_and_nothing_of_them_is_left(version):
    guard = GuardFilter()
    said = f"aval=ShapedArray(int32[4]), {ONE}"
    kinds = [("host-to-device", said), ("device-to-host", said), ("device-to-device", ""), ("host-to-device", said)]
    assert guard.feed(b"".join(line(*kind, PREFIXES[version]) for kind in kinds), 0.0) == b""
    assert rows(guard) == [
        ("host_to_device", "i32[4]", 2, 32),
        ("device_to_host", "i32[4]", 1, 16),
        ("device_to_device", "", 1, None),
    ]
    assert rows(guard) == []


OWN = {
    "lines, and the begin of one": b"first\nsecond\nW",
    "a progress bar": b"\r 10 %\r 20 %",
    "bytes that are no text": bytes(range(256)) * 2,
    "a log line of absl's": b"W1121 08:44:11.564065   28963 cpu_client.cc:115] something else\n",
    "what looks like it": b"host-to-device transfer: mine\nW1121 08:44",
}


@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize("size", [1, 7, 50, 100_000])
def test_every_other_byte_is_passed_on(own, size):
    guard = GuardFilter()
    data = OWN[own] + line() + OWN[own] + line(said=f"aval=ShapedArray(int32[4]), {ONE}") + OWN[own]
    passed = b"".join(guard.feed(data[at : at + size], 0.0) for at in range(0, len(data), size)) + guard.release()
    assert passed == OWN[own] * 3
    assert rows(guard) == [("host_to_device", "", 1, None), ("host_to_device", "i32[4]", 1, 16)]


def test_counts_come_at_most_once_a_second_and_none_is_lost():
    guard = GuardFilter()
    counted = []
    for tenth in range(40):
        guard.feed(line(), tenth / 10)
        counted.append(guard.collect(10 + tenth / 10 * COLLECT_SECONDS))
    told = [seen for seen in counted if seen is not None]
    assert len(told) == 4
    assert sum(row.count for seen in told for row in seen.rows) + sum(row[2] for row in rows(guard)) == 40


def test_kinds_are_bounded_and_the_rest_is_counted_together():
    guard = GuardFilter()
    for size in range(MOST_KINDS + 10):
        guard.feed(line(said=f"aval=ShapedArray(uint8[{size}]), {ONE}"), 0.0)
    told = rows(guard)
    assert len(told) == MOST_KINDS + 1
    assert told[-1] == ("host_to_device", OTHER_TYPES, 10, sum(range(MOST_KINDS, MOST_KINDS + 10)))
