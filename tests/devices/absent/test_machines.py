"""How long a program takes at least: what overlaps overlaps. Collectives on machines,
calculated by hand. The figures of devices, chips, hosts and slices: each has a document and a date, and they agree."""

import re

import pytest

from hlo.kernels.programs import looped, parameters, written
from jaxprof.devices.absent import CHIPS, machine_for, machine_of, parse_target, target_config
from jaxprof.devices.absent.least_time import exchange, makespan_seconds, step_time
from jaxprof.hlo.kernels.collectives import collectives
from jaxprof.hlo.kernels.cost.peaks import DEVICES, ROWS, device, device_of_kind

X, W = "f32[4194304]", "bf16[8192,8192]"
REDUCE = "channel_id=1, replica_groups=[1,8]<=[8], to_apply=add"
START = f"start = {X} all-reduce-start(p0), {REDUCE}\n"
PRODUCT = f"dot = {W} dot(p1, p1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
DONE = f"done = {X} all-reduce-done(start)\n"
OUT = f"ROOT out = ({X}, {W}) tuple(done, dot)\n"
BESIDE, WAITED = START + PRODUCT + DONE + OUT, START + DONE + PRODUCT + OUT
DOT = 2 * 8192**3 / 989.4e12
"""Of the product on an H100: 1.1 ms."""
LINK = 16 * 2**20 / 450e9
"""Of the all-reduce over its NVLink, whose switch adds up: 37 us."""


def on(target):
    return machine_for(parse_target(target))


def step(text, target="h100:8", *, scheduled=True):
    header = f"{'is_scheduled=true, ' if scheduled else ''}num_partitions=8"
    return step_time(written(text, header), on(target))


@pytest.mark.parametrize(
    ("lines", "scheduled", "seconds"),
    [(BESIDE, True, DOT), (WAITED, True, DOT + LINK), (WAITED, False, DOT)],
    ids=["takes no time of its own", "is waited for at once", "may still be put beside it"],
)
def test_an_all_reduce_beside_a_product(lines, scheduled, seconds):
    assert step(parameters(X, W) + lines, scheduled=scheduled).bound_seconds == pytest.approx(seconds)


def test_loops_multiply_and_an_unknown_count_is_unknown():
    body = f"r = {X} all-reduce(x), {REDUCE}"
    assert step(looped(X, body, "r", 5)).bound_seconds == pytest.approx(5 * LINK)
    unknown = step(looped(X, body, "r"))
    assert (unknown.bound_seconds, unknown.limit) == (None, "")


def test_the_bound_takes_the_shorter_branch():
    found = step(f"""
        long {{
          v = {X} parameter(0)
          ROOT r = {X} all-reduce(v), {REDUCE}
        }}

        short {{
          ROOT v = {X} parameter(0)
        }}

        ENTRY main {{
          p = pred[] parameter(0)
          x = {X} parameter(1)
          ROOT c = {X} conditional(p, x, x), true_computation=long, false_computation=short
        }}
    """)  # fmt: skip
    assert found.bound_seconds == 0.0


def test_two_that_overlap_share_their_link():
    second = START.replace("start =", "second =").replace("channel_id=1", "channel_id=2")
    both = f"{START}{second}{DONE}two = {X} all-reduce-done(second)\nROOT out = ({X}, {W}) tuple(done, p1)"
    found = step(parameters(X, W) + both)
    assert found.bound_seconds == pytest.approx(2 * LINK)
    assert found.limit == "NVLink 4, 18 links"


@pytest.mark.parametrize(("negation", "seconds"), [(2.0, 6.0), (7.0, 8.0)])
def test_one_copy_runs_beside_the_others(negation, seconds):
    module = written("""
        x = f32[1024] parameter(0)
        s = (f32[1024], f32[1024], u32[]) copy-start(x)
        n = f32[1024] negate(x)
        d = f32[1024] copy-done(s)
        ROOT a = f32[1024] add(n, d)
    """)
    took = {"s": 5.0, "n": negation, "a": 1.0}
    assert makespan_seconds(module, lambda kernel: took[kernel.name]) == seconds


GATHER = "g = f32[2097152] all-gather(p0), channel_id=7, replica_groups=[1,8]<=[8], dimensions={0}"
TPU = f"""gathers {{
{parameters("f32[262144]")}{GATHER}
ROOT t = (f32[262144], f32[2097152]) tuple(p0, g)
}}

finishes {{
{parameters("f32[262144]", "f32[2097152]")}ROOT {GATHER}
}}

ENTRY main {{
{parameters("f32[262144]", W)}
async-collective-start = (f32[262144], f32[2097152]) fusion(p0), kind=kCustom, calls=gathers
a = f32[262144] get-tuple-element(async-collective-start), index=0
b = f32[2097152] get-tuple-element(async-collective-start), index=1
{{}}ROOT out = (f32[2097152], {W}) tuple(async-collective-done, dot)
}}
"""
FINISH = "async-collective-done = f32[2097152] fusion(a, b), kind=kCustom, calls=finishes\n"
TPU_DOT = 2 * 8192**3 / 197e12


def test_two_fusions_of_a_tpu_collective_are_one():
    beside, waited = (TPU.replace("{}", lines) for lines in (PRODUCT + FINISH, FINISH + PRODUCT))
    (found,) = collectives(written(beside, "is_scheduled=true, num_partitions=8"))
    assert (found.kernel.name, found.opcode, found.bytes) == ("async-collective-start", "all-gather", 8 * 2**20)
    assert step(beside, "tpu-v5e:2x4").bound_seconds == pytest.approx(TPU_DOT)  # the product hides it
    assert step(waited, "tpu-v5e:2x4").bound_seconds == pytest.approx(TPU_DOT + 7 / 8 * 8 * 2**20 / 200e9)


MIB = 1 << 20


def of(instruction, size=4 * MIB):
    """The collective of `x`, an array of float32 of that many elements (16 MiB)."""
    text = f"x = f32[{size}]{{0}} parameter(0)\nROOT c = {instruction}"
    (found,) = collectives(written(text, "is_scheduled=true, num_partitions=32"))
    return found


def among(opcode, groups, given=4 * MIB, made=4 * MIB):
    """One along the first dimension, among these groups."""
    more = ", to_apply=add" if "reduce" in opcode else ""
    along = "" if opcode == "all-reduce" else ", dimensions={0}"
    return of(f"f32[{made}]{{0}} {opcode}(x), channel_id=1, replica_groups={groups}{along}{more}", given)


def all_reduce(groups):
    return among("all-reduce", groups)


def permute(pairs):
    return of(f"f32[{4 * MIB}]{{0}} collective-permute(x), channel_id=1, source_target_pairs={{{pairs}}}")


def shifted(by):
    return ",".join(f"{{{at},{(at + by) % 32}}}" for at in range(32))


S = 16 * MIB
NVLINK, NICS = 450e9, 8 * 50e9


def test_an_all_reduce_over_hosts_is_bound_by_interfaces():
    found = exchange(all_reduce("[1,32]<=[32]"), on("4xh100:8"))
    # Each host sends 2 (4 - 1) / 4 of the array over 400 GB/s; within the host the switch adds up, which is faster.
    assert found.bound_seconds == pytest.approx(2 * 3 / 4 * S / NICS)
    assert found.bound_seconds == pytest.approx(62.9e-6, rel=1e-3)
    assert found.link == "network, 8 × 400 Gb/s a host"


@pytest.mark.parametrize(
    ("collective", "target", "seconds"),
    [
        # Within a host the switch adds up; those of an A100 do not: 2 (8 - 1) / 8 of the array over 300 GB/s.
        (all_reduce("[4,8]<=[32]"), "4xh100:8", S / NVLINK),
        (all_reduce("[4,8]<=[32]"), "4xa100:8", 2 * 7 / 8 * S / 300e9),
        # Of a gathering a device gets 31 of 32 parts over NVLink and its own interface; the hosts of H100s get 3 of 4
        # over all of theirs, sooner.
        (among("all-gather", "[1,32]<=[32]", MIB // 8), "4xh100:8", 31 / 32 * S / (NVLINK + 50e9)),
        (among("all-gather", "[1,32]<=[32]", MIB // 8), "4xa100:8", 3 / 4 * S / (8 * 25e9)),
        (among("reduce-scatter", "[1,32]<=[32]", made=MIB // 8), "4xa100:8", 3 / 4 * S / (8 * 25e9)),
        # Eight devices of a host each send 24 of 32 parts of their 16 MiB to other hosts.
        (among("all-to-all", "[1,32]<=[32]"), "4xh100:8", 8 * 24 / 32 * S / NICS),
        (among("all-to-all", "[4,8]<=[32]"), "4xh100:8", 7 / 8 * S / NVLINK),
        # One pair of a ring leaves each host, which has all its interfaces for it.
        (permute(shifted(1)), "4xh100:8", S / NICS),
        (permute(shifted(8)), "4xh100:8", 8 * S / NICS),
        (permute("{0,1},{1,0}"), "4xh100:8", S / NVLINK),
    ],
)
def test_what_goes_over_which_links(collective, target, seconds):
    found = exchange(collective, on(target))
    assert found.bound_seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("target", "seconds"),
    [
        # A chip of v5e has 4 links of 50 GB/s, one of v5p 6 of 100 GB/s; in a slice without rings some are idle.
        ("tpu-v5e:2x2", 2 * 3 / 4 * S / 200e9),
        ("tpu-v5e:16x16", 2 * 255 / 256 * S / 200e9),
        ("tpu-v5p:4x4x4", 2 * 63 / 64 * S / 600e9),
        # Eight devices on four chips of TPU7x, whose chips exchange over 6 links of 100 GB/s.
        ("tpu-v7:2x2x1", 2 * 3 / 4 * S / 600e9),
    ],
)
def test_an_all_reduce_over_a_slice(target, seconds):
    count = parse_target(target).devices
    found = exchange(all_reduce(f"[1,{count}]<=[{count}]"), on(target))
    assert found.bound_seconds == pytest.approx(seconds)


def test_what_is_not_known_is_unknown():
    assert exchange(all_reduce("mesh['a'=4] {'b'}"), on("4xh100:8")).bound_seconds is None
    assert exchange(all_reduce("[1,8]<=[8]"), on("l4:8")).bound_seconds is None
    assert machine_of(device("h100-pcie")).levels == ()


@pytest.mark.parametrize("name", DEVICES)
def test_every_figure_has_a_document_and_its_date(name):
    row = DEVICES[name]
    assert re.search(r"\b20[12]\d\b", row.source), row.source
    for level in machine_of(row).levels:
        assert re.search(r"\b20[12]\d\b", level.document), level.document
        assert level.name


@pytest.mark.parametrize("row", CHIPS, ids=lambda row: row.name)
def test_what_is_compiled_for_has_ceilings_that_fit(row):
    known = device(row.name)
    assert row.devices == known.devices_per_chip
    assert device_of_kind(row.device_kind) is DEVICES[row.name]
    if row.vendor == "nvidia":
        assert row.config["memory_bandwidth"] == pytest.approx(known.bandwidth, rel=0.05)
        stated = ROWS[row.name]["memory"] * 2**30
        assert 0.9 * stated < row.config["device_memory_size"] == known.memory_bytes <= stated
        config = target_config(row)
        assert ": 0 " not in config.partition("cuda_compute_capability")[0]  # a forgotten figure
        assert config.count("{") == config.count("}")
        assert row.config["shared_memory_per_block_optin"] <= row.config["shared_memory_per_core"]
