"""Each finding with the events that give it, and with near ones that do not."""

from __future__ import annotations

from typing import Any

import pytest

import program_events as made
from jaxprof import events as e
from jaxprof.results.programs.derive import Finding
from jaxprof.results.programs.findings import CODES


def codes(*inside: e.Event, wall: float = 10.0) -> list[str]:
    return [one.code for one in made.result(*inside, wall=wall).findings]


def only(code: str, *inside: e.Event, wall: float = 10.0) -> Finding:
    (found,) = [one for one in made.result(*inside, wall=wall).findings if one.code == code]
    return found


def again(reason_code: str, count: int, **more: Any) -> list[e.Event]:
    """A function that is compiled for the first time, and `count` times more."""
    return [made.compiled(**more), *(made.compiled(reason_code=reason_code, **more) for _ in range(count))]


def statics(count: int) -> list[e.Event]:
    return [
        made.compiled(
            reason_code="static_argument" if value else "first",
            signature=[made.leaf("n", str(value), static=True)],
            reason=f"static argument n: {value - 1} → {value}" if value else "",
        )
        for value in range(count)
    ]


def tiny(count: int, **more: Any) -> list[e.Event]:
    """Programs of a few operations, each another function."""
    return [
        made.compiled(f"f{index}", **{"operations": 4, "defined_at": made.at(index, ""), **more})
        for index in range(count)
    ]


def eager(line: int = 40) -> list[e.Event]:
    return [
        made.compiled(name, line=line, op_by_op=True, operations=1, library=True, defined_at={})
        for name in ("add", "mul", "sin")
    ]


def stretches(line: dict[str, Any], count: int = 10) -> list[e.Event]:
    return made.steady(count, {line["state"]: 1.0}, [line])


BUSY = made.line(40, 0.5, "host_busy", "jnp.sin()")
SYNC = made.line(91, 0.4, "device_busy", "float()")
BIG = [{"type": "f32[2048,1024]", "bytes": 8 << 20}]

PAIRS: dict[str, tuple[list[e.Event], list[e.Event]]] = {
    "recompile_in_loop": (again("new_function", 3), again("new_function", 2)),
    "varying_shapes": (made.shaped(4), made.shaped(3)),
    "static_argument_varies": (statics(4), statics(3)),
    "weak_type_flips": (again("weak_type", 1, compile_seconds=0.5), again("weak_type", 1)),
    "arguments_vary": (again("structure", 3), again("structure", 2)),
    "many_tiny_jits": (tiny(20), tiny(20, operations=400)),
    "compile_dominates": (
        [made.compiled(), made.sampled(0, 10.0, {"compile": 5.2, "device_busy": 4.8})],
        [made.compiled(), made.sampled(0, 10.0, {"compile": 4.8, "device_busy": 5.2})],
    ),
    "slow_tracing": (
        [made.compiled(), made.sampled(0, 10.0, {"trace": 1.5, "device_busy": 8.5})],
        [made.compiled(), made.sampled(0, 10.0, {"trace": 0.5, "device_busy": 9.5})],
    ),
    "cache_off": (
        [made.compiled(cache="off", compile_seconds=2.5)],
        [made.compiled(cache="miss", compile_seconds=2.5)],
    ),
    "cache_thrashing": (
        again("unknown", 2, cache="miss", compile_seconds=1.5),
        [made.compiled(cache="miss", compile_seconds=1.5), made.compiled(cache="hit"), made.compiled(cache="hit")],
    ),
    "captured_constants": (
        [made.compiled(constants=BIG)],
        [made.compiled(constants=[{"type": "f32[100]", "bytes": 400}])],
    ),
    "op_by_op_loop": (
        [*eager(), *stretches(BUSY)],
        [*eager(), *stretches(made.line(55, 0.5, "host_busy", "prepare()"))],
    ),
    "host_sync": (stretches(SYNC), stretches(made.line(91, 0.4, "device_busy", "step"))),
    "data_waits": (
        stretches(made.line(30, 0.4, "data", "np.sort()")),
        [made.sampled(0, 10.0, {"data": 4.0, "device_busy": 6.0}, [made.line(30, 4.0, "data", "np.load()")])],
    ),
    "implicit_transfers": (
        [made.copies("host_to_device", 100, bytes=400)],
        [made.copies("host_to_device", 99, bytes=400)],
    ),
    "arrays_grow": (made.arrays(list(range(100, 600, 20))), made.arrays([100, 300, 500] + [600, 590] * 12)),
}


def test_every_finding_has_its_pair() -> None:
    assert set(PAIRS) == set(CODES)


@pytest.mark.parametrize("code", CODES)
def test_it_is_found(code: str) -> None:
    found = only(code, *PAIRS[code][0])
    assert found.message
    assert found.advice.endswith(".")


@pytest.mark.parametrize("code", CODES)
def test_near_ones_are_not_told(code: str) -> None:
    assert code not in codes(*PAIRS[code][1])


def test_a_short_clean_program_has_no_finding() -> None:
    inside = [made.compiled(), *made.steady(10, {"device_busy": 0.9, "host_busy": 0.1}), made.steps(500, 0.02)]
    assert codes(*inside, *made.arrays([50] * 10)) == []


class TestRecompiles:
    def test_a_jit_in_a_loop_names_the_line_to_change(self) -> None:
        found = only("recompile_in_loop", *again("new_function", 11))
        assert found.where is not None
        assert found.where.text == f"{made.FOLDER}/train.py:88"
        assert "away from train.py:88" in found.advice
        assert found.seconds == pytest.approx(1.1)

    def test_padding_is_counted_and_not_guessed(self) -> None:
        found = only("varying_shapes", *made.shaped(412), wall=60.0)
        assert "x f32[1..412,128]" in found.message
        assert "10 compilations instead of 412" in found.advice

    def test_sizes_that_lie_close_together_are_padded_to_the_largest(self) -> None:
        rows = [
            made.compiled(reason_code="shape" if size > 200 else "first", signature=[made.leaf("x", f"f32[{size}]")])
            for size in range(200, 206)
        ]
        assert "to the largest (sizes 200..205): one compilation instead of 6" in only("varying_shapes", *rows).advice

    def test_operations_outside_any_jit_are_no_function_to_pad(self) -> None:
        assert "varying_shapes" not in codes(*made.shaped(30, "add", op_by_op=True))

    def test_a_static_argument_is_named_with_its_values(self) -> None:
        assert "n = 0, 1, 2, … (6 values)" in only("static_argument_varies", *statics(6)).message

    def test_an_object_that_is_another_each_time_has_its_own_advice(self) -> None:
        words = "static argument self: Model → another Model"
        found = only("static_argument_varies", *again("static_argument", 3, reason=words))
        assert words in found.message
        assert "__eq__" in found.advice

    def test_many_cheap_weak_types_are_told_too(self) -> None:
        assert "weak_type_flips" in codes(*again("weak_type", 3))

    @pytest.mark.parametrize(
        ("code", "words"), [("dtype", "dtypes"), ("sharding", "device_put"), ("config", "jax.config")]
    )
    def test_each_other_reason_has_its_own_advice(self, code: str, words: str) -> None:
        found = only("arguments_vary", *again(code, 3))
        assert words in found.message + found.advice


class TestCost:
    def test_many_programs_that_cost_nothing_are_not_told(self) -> None:
        assert "many_tiny_jits" not in codes(*tiny(30, trace_seconds=None, lower_seconds=None, compile_seconds=0.001))

    def test_single_operations_are_counted_among_the_tiny_ones(self) -> None:
        rows = [row for _ in range(7) for row in eager()]
        assert "21 of them single operations outside any jit" in only("many_tiny_jits", *rows).message

    def test_a_script_of_half_a_second_may_compile_for_most_of_it(self) -> None:
        inside = [made.compiled(), made.sampled(0, 0.5, {"compile": 0.4, "device_busy": 0.1})]
        assert "compile_dominates" not in codes(*inside, wall=0.5)

    def test_a_large_program_is_taken_for_an_unrolled_loop(self) -> None:
        inside = [made.compiled(operations=60_000), made.sampled(0, 10.0, {"compile": 8.0})]
        assert only("compile_dominates", *inside).advice.startswith("Its program is large: let lax.scan")

    def test_tracing_names_its_lines(self) -> None:
        line = made.line(33, 0.4, "trace", "attend()")
        found = only("slow_tracing", made.compiled(), *made.steady(10, {"trace": 0.5, "device_busy": 0.5}, [line]))
        assert "by samples: train.py:33 4.0 s" in found.message
        assert found.where is not None
        assert found.where.line == 33

    def test_what_the_cache_would_not_keep_is_said(self) -> None:
        small = [made.compiled(f"f{index}", cache="off", compile_seconds=0.3) for index in range(10)]
        assert "min_compile_time_secs to 0" in only("cache_off", *small).advice
        assert "min_compile" not in only("cache_off", made.compiled(cache="off", compile_seconds=5.0)).advice

    def test_misses_that_are_too_short_to_be_kept_are_told_apart(self) -> None:
        assert (
            "min_compile_time_secs"
            in only("cache_thrashing", *again("unknown", 5, cache="miss", compile_seconds=0.2)).advice
        )

    def test_constants_are_told_once_for_all_compilations(self) -> None:
        found = only("captured_constants", *again("shape", 4, constants=BIG))
        assert "8.00 MiB of constants (f32[2048,1024]), in each of its 5 compilations" in found.message
        assert found.where is not None
        assert found.where.line == 20


class TestHost:
    def test_estimates_are_marked(self) -> None:
        assert only("host_sync", *stretches(SYNC)).estimate
        assert only("op_by_op_loop", *eager(), *stretches(BUSY)).estimate
        assert not only("varying_shapes", *made.shaped(9)).estimate

    @pytest.mark.parametrize(
        "call", ["float()", "int()", ".item()", "loss.item()", "np.asarray()", "print()", ".tolist()", "f-string"]
    )
    def test_calls_that_fetch_a_value(self, call: str) -> None:
        assert "host_sync" in codes(*stretches({**SYNC, "call": call}))

    @pytest.mark.parametrize(
        "call", ["step", "jnp.asarray()", "block_until_ready()", "jax.numpy.array()", "blueprint()"]
    )
    def test_calls_that_do_not(self, call: str) -> None:
        assert "host_sync" not in codes(*stretches({**SYNC, "call": call}))

    def test_a_line_that_calls_two_things_is_named_once(self) -> None:
        lines = [made.line(30, 0.3, "data", "np.sort()"), made.line(30, 0.2, "data", "np.load()")]
        found = only("data_waits", *made.steady(10, {"data": 1.0}, [*lines, made.line(31, 0.1, "data")]))
        assert found.message.count(":30 (5.0 s)") == found.message.count(":30") == 1

    @pytest.mark.parametrize(("call", "found"), [("q.get()", True), ("time.sleep()", False), ("lock.acquire()", False)])
    def test_an_empty_queue_is_a_wait_for_data(self, call: str, found: bool) -> None:
        assert ("data_waits" in codes(*stretches(made.line(12, 0.8, "waiting", call)))) == found

    def test_a_value_that_is_fetched_once_at_the_end_is_no_loop(self) -> None:
        inside = [*made.steady(9, {"host_busy": 1.0}), made.sampled(9, 1.0, {"device_busy": 1.0}, [SYNC])]
        assert "host_sync" not in codes(*inside)

    def test_a_short_program_is_believed_where_the_loop_was_counted(self) -> None:
        inside = [made.sampled(0, 1.0, {"device_busy": 1.0}, [SYNC]), made.steps(100, 0.01, 91)]
        assert "host_sync" in codes(*inside, wall=1.0)

    def test_a_loop_of_a_jitted_function_is_not_op_by_op(self) -> None:
        call = made.line(88, 0.9, "device_busy", "step")
        assert "op_by_op_loop" not in codes(*eager(72), made.compiled(line=88), *stretches(call))

    def test_a_line_that_fetches_a_value_is_told_once(self) -> None:
        copies = made.copies("device_to_host", 40, "samples", seconds=4.0, **made.at(91, ""))
        assert codes(*stretches(SYNC), copies) == ["host_sync"]
        assert "implicit_transfers" in codes(*stretches({**SYNC, "call": "x > 3"}), copies)

    def test_a_share_is_of_the_time_in_which_the_program_worked(self) -> None:
        first = made.sampled(0, 90.0, {"import": 45.0, "compile": 45.0})
        rest = [made.sampled(90 + second, 1.0, {"device_busy": 1.0}, [SYNC]) for second in range(10)]
        assert "host_sync" in codes(first, *rest, wall=100.0)

    def test_lines_that_samples_saw_stand_beside_what_the_guard_counted(self) -> None:
        found = only(
            "implicit_transfers",
            made.copies("host_to_device", 500, bytes=1 << 20),
            made.copies("host_to_device", 40, "samples", seconds=0.4, **made.at(88)),
        )
        assert "500 implicit copies from host to device, 1.00 MiB; by samples about 400 ms" in found.message
        assert found.where is not None
        assert found.where.line == 88
        assert not found.estimate

    def test_copies_of_which_no_size_is_known_are_not_hidden_in_a_sum(self) -> None:
        found = only(
            "implicit_transfers",
            made.copies("host_to_device", 2, bytes=32, type="f32[4]"),
            made.copies("host_to_device", 998),
        )
        assert found.message.startswith(
            "1\u202f000 implicit copies from host to device, 32 B; of 998 JAX tells no size"
        )


class TestArrays:
    def test_what_grows_at_first_and_then_stays_is_a_start(self) -> None:
        assert "arrays_grow" not in codes(*made.arrays([*range(10, 300, 10), *[300] * 30]))

    def test_one_odd_count_does_not_hide_a_leak(self) -> None:
        counts = list(range(100, 1100, 25))
        counts[20] = 50
        assert "1 500 arrays a minute".replace(" ", "\u202f", 1) in only("arrays_grow", *made.arrays(counts)).message

    def test_too_few_counts_tell_nothing(self) -> None:
        assert "arrays_grow" not in codes(*made.arrays([100, 200, 300, 400, 500]))


def test_the_dearest_finding_comes_first() -> None:
    found = made.result(*made.shaped(30), *again("new_function", 3)).findings
    assert [one.seconds for one in found] == sorted((one.seconds for one in found), key=lambda took: -(took or 0.0))
