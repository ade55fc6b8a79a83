"""How long a program takes at least: what overlaps overlaps, and a bound is no estimate."""

import pytest

from hlo.analysis.programs import looped, parameters, written
from jaxprof.devices.targets import machine_for, parse_target, step_time
from jaxprof.devices.targets.step import elapsed_seconds
from jaxprof.hlo.analysis.collectives import collectives

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


def step(text, target="h100:8", *, scheduled=True):
    header = f"{'is_scheduled=true, ' if scheduled else ''}num_partitions=8"
    return step_time(written(text, header), machine_for(parse_target(target)))


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
    assert (unknown.bound_seconds, unknown.estimate_seconds, unknown.limit) == (None, None, "")


def test_the_bound_takes_the_shorter_branch_and_the_estimate_the_longer_one():
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
    assert found.estimate_seconds > LINK


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
    assert elapsed_seconds(module, lambda kernel: took[kernel.name]) == seconds


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


def test_the_two_fusions_of_a_tpus_asynchronous_collective_are_one():
    beside, waited = (TPU.replace("{}", lines) for lines in (PRODUCT + FINISH, FINISH + PRODUCT))
    (found,) = collectives(written(beside, "is_scheduled=true, num_partitions=8"))
    assert (found.kernel.name, found.opcode, found.bytes) == ("async-collective-start", "all-gather", 8 * 2**20)
    assert step(beside, "tpu-v5e:2x4").bound_seconds == pytest.approx(TPU_DOT)  # the product hides it
    assert step(waited, "tpu-v5e:2x4").bound_seconds == pytest.approx(TPU_DOT + 7 / 8 * 8 * 2**20 / 100e9)
