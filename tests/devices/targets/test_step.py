"""How long a program takes at least: what overlaps overlaps, and a bound is no estimate."""

from __future__ import annotations

import pytest

from jaxprof.devices.targets import machine_for, parse_target, step_time
from jaxprof.devices.targets.step import elapsed_seconds
from jaxprof.hlo.analysis.collectives import collectives
from jaxprof.hlo.model import Module
from jaxprof.hlo.read.parse import module

HEAD = """HloModule m, {scheduled}num_partitions=8

%add (a: f32[], b: f32[]) -> f32[] {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}}

"""
ASYNC = """ENTRY %main (x: f32[4194304], w: bf16[8192,8192]) -> (f32[4194304], bf16[8192,8192]) {
  %x = f32[4194304]{0} parameter(0)
  %w = bf16[8192,8192]{1,0} parameter(1)
  %start = f32[4194304]{0} all-reduce-start(%x), channel_id=1, replica_groups=[1,8]<=[8], to_apply=%add
  %dot = bf16[8192,8192]{1,0} dot(%w, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %done = f32[4194304]{0} all-reduce-done(%start)
  ROOT %out = (f32[4194304]{0}, bf16[8192,8192]{1,0}) tuple(%done, %dot)
}
"""
DOT = 2 * 8192**3 / 989.4e12
"""Of the product on an H100: 1.1 ms."""
LINK = 16 * 2**20 / 450e9
"""Of the all-reduce over its NVLink, whose switch adds up: 37 us."""


def program(body: str, *, scheduled: bool = True) -> Module:
    return module(HEAD.format(scheduled="is_scheduled=true, " if scheduled else "") + body)


def bound(body: str, target: str = "h100:8", *, scheduled: bool = True) -> float | None:
    return step_time(program(body, scheduled=scheduled), machine_for(parse_target(target))).bound_seconds


def test_an_all_reduce_beside_a_product_takes_no_time_of_its_own() -> None:
    assert bound(ASYNC) == pytest.approx(DOT)


def test_an_all_reduce_that_is_waited_for_at_once_does() -> None:
    lines = ASYNC.splitlines()
    waited = "\n".join([*lines[:4], lines[5], lines[4], *lines[6:]])
    assert bound(waited) == pytest.approx(DOT + LINK)


def test_what_is_not_scheduled_yet_may_still_overlap() -> None:
    lines = ASYNC.splitlines()
    waited = "\n".join([*lines[:4], lines[5], lines[4], *lines[6:]])
    assert bound(waited, scheduled=False) == pytest.approx(DOT)


SYNC = """ENTRY %main (x: f32[4194304]) -> f32[4194304] {
  %x = f32[4194304]{0} parameter(0)
  ROOT %r = f32[4194304]{0} all-reduce(%x), channel_id=1, replica_groups=[1,8]<=[8], to_apply=%add
}
"""


LOOP = """%body (s: (s32[], f32[4194304])) -> (s32[], f32[4194304]) {
  %s = (s32[], f32[4194304]{0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %v = f32[4194304]{0} get-tuple-element(%s), index=1
  %r = f32[4194304]{0} all-reduce(%v), channel_id=1, replica_groups=[1,8]<=[8], to_apply=%add
  ROOT %t = (s32[], f32[4194304]{0}) tuple(%i, %r)
}

%condition (s: (s32[], f32[4194304])) -> pred[] {
  %s = (s32[], f32[4194304]{0}) parameter(0)
  ROOT %go = pred[] constant(true)
}

ENTRY %main (x: (s32[], f32[4194304])) -> (s32[], f32[4194304]) {
  %x = (s32[], f32[4194304]{0}) parameter(0)
  ROOT %loop = (s32[], f32[4194304]{0}) while(%x), condition=%condition, body=%bodyBACKEND
}
"""


def test_loops_multiply_and_an_unknown_count_is_unknown() -> None:
    counted = LOOP.replace("BACKEND", ', backend_config={"known_trip_count":{"n":"5"}}')
    assert bound(counted) == pytest.approx(5 * LINK)
    unknown = step_time(program(LOOP.replace("BACKEND", "")), machine_for(parse_target("h100:8")))
    assert (unknown.bound_seconds, unknown.estimate_seconds, unknown.limit) == (None, None, "")


BRANCHES = """%long (v: f32[4194304]) -> f32[4194304] {
  %v = f32[4194304]{0} parameter(0)
  ROOT %r = f32[4194304]{0} all-reduce(%v), channel_id=1, replica_groups=[1,8]<=[8], to_apply=%add
}

%short (v: f32[4194304]) -> f32[4194304] {
  ROOT %v = f32[4194304]{0} parameter(0)
}

ENTRY %main (p: pred[], x: f32[4194304]) -> f32[4194304] {
  %p = pred[] parameter(0)
  %x = f32[4194304]{0} parameter(1)
  ROOT %c = f32[4194304]{0} conditional(%p, %x, %x), true_computation=%long, false_computation=%short
}
"""


def test_the_bound_takes_the_shorter_branch_and_the_estimate_the_longer_one() -> None:
    step = step_time(program(BRANCHES), machine_for(parse_target("h100:8")))
    assert step.bound_seconds == 0.0
    assert step.estimate_seconds > LINK


def test_two_that_overlap_share_their_link() -> None:
    lines = ASYNC.splitlines()
    second = lines[3].replace("%start", "%second").replace("channel_id=1", "channel_id=2")
    both = "\n".join(
        [*lines[:3], lines[3], second, lines[5], "  %two = f32[4194304]{0} all-reduce-done(%second)", *lines[6:]]
    ).replace("tuple(%done, %dot)", "tuple(%done, %w)")
    step = step_time(program(both), machine_for(parse_target("h100:8")))
    assert step.bound_seconds == pytest.approx(2 * LINK)
    assert step.limit == "NVLink 4, 18 links"


def test_the_estimate_is_never_below_the_bound() -> None:
    for target in ("h100:8", "4xh100:8", "tpu-v5e:2x4", "tpu-v7:2x2x1"):
        step = step_time(program(SYNC), machine_for(parse_target(target)))
        assert step.estimate_seconds is not None
        assert 0 < step.bound_seconds < step.estimate_seconds


def test_one_copy_runs_beside_the_others() -> None:
    body = """ENTRY %main (x: f32[1024]) -> f32[1024] {
  %x = f32[1024]{0} parameter(0)
  %s = (f32[1024]{0}, f32[1024]{0}, u32[]) copy-start(%x)
  %n = f32[1024]{0} negate(%x)
  %d = f32[1024]{0} copy-done(%s)
  ROOT %a = f32[1024]{0} add(%n, %d)
}
"""
    took = {"s": 5.0, "n": 2.0, "a": 1.0}
    assert elapsed_seconds(program(body), lambda kernel: took[kernel.name]) == 6.0
    took["n"] = 7.0
    assert elapsed_seconds(program(body), lambda kernel: took[kernel.name]) == 8.0


TPU = """%gathers (p: f32[262144]) -> (f32[262144], f32[2097152]) {
  %p = f32[262144]{0} parameter(0)
  %g = f32[2097152]{0} all-gather(%p), channel_id=7, replica_groups=[1,8]<=[8], dimensions={0}
  ROOT %t = (f32[262144]{0}, f32[2097152]{0}) tuple(%p, %g)
}

%finishes (p: f32[262144], q: f32[2097152]) -> f32[2097152] {
  %p = f32[262144]{0} parameter(0)
  %q = f32[2097152]{0} parameter(1)
  ROOT %g = f32[2097152]{0} all-gather(%p), channel_id=7, replica_groups=[1,8]<=[8], dimensions={0}
}

ENTRY %main (x: f32[262144], w: bf16[8192,8192]) -> (f32[2097152], bf16[8192,8192]) {
  %x = f32[262144]{0} parameter(0)
  %w = bf16[8192,8192]{1,0} parameter(1)
  %async-collective-start = (f32[262144]{0}, f32[2097152]{0}) fusion(%x), kind=kCustom, calls=%gathers
  %a = f32[262144]{0} get-tuple-element(%async-collective-start), index=0
  %b = f32[2097152]{0} get-tuple-element(%async-collective-start), index=1
  %dot = bf16[8192,8192]{1,0} dot(%w, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %async-collective-done = f32[2097152]{0} fusion(%a, %b), kind=kCustom, calls=%finishes
  ROOT %out = (f32[2097152]{0}, bf16[8192,8192]{1,0}) tuple(%async-collective-done, %dot)
}
"""


def test_the_two_fusions_of_a_tpus_asynchronous_collective_are_one() -> None:
    one, machine = program(TPU), machine_for(parse_target("tpu-v5e:2x4"))
    (found,) = collectives(one)
    assert (found.kernel.name, found.opcode, found.bytes) == ("async-collective-start", "all-gather", 8 * 2**20)
    assert step_time(one, machine).bound_seconds == pytest.approx(2 * 8192**3 / 197e12)  # the product hides it
    lines = TPU.splitlines()
    dot = next(line for line in lines if "%dot = " in line)
    done = next(line for line in lines if "%async-collective-done = " in line)
    turned = TPU.replace(dot, "LATER").replace(done, done + "\n" + dot).replace("LATER\n", "")
    waited = step_time(program(turned), machine).bound_seconds
    assert waited == pytest.approx(2 * 8192**3 / 197e12 + 7 / 8 * 8 * 2**20 / 100e9)
