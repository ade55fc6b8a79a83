"""Each finding with the events that give it, and with near ones that do not."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest

import program_events as made
from folding import fold
from jaxprof import events as e
from jaxprof.analysis.explain.catalogue import entries
from jaxprof.analysis.finding import Finding
from jaxprof.analysis.programs.derive import program_result
from jaxprof.analysis.programs.findings import CODES


def codes(*inside: e.Event, wall: float = 10.0) -> list[str]:
    return [one.code for one in made.result(*seen(list(inside)), wall=wall).findings]


def only(code: str, *inside: e.Event, wall: float = 10.0) -> Finding:
    (found,) = [one for one in made.result(*seen(list(inside)), wall=wall).findings if one.code == code]
    return found


def remark(code: str, *inside: e.Event, wall: float = 10.0) -> Finding | None:
    found = made.result(*inside, wall=wall).remarks
    return next((one for one in found if one.code == code), None)


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
        made.compiled(
            name, called_from=made.at(line, "advance"), op_by_op=True, operations=1, library=True, defined_at=e.NOWHERE
        )
        for name in ("add", "mul", "sin")
    ]


STEP = made.line(88, 0.4, "device_busy", "step")
BUSY = made.line(40, 0.5, "host_busy", "jnp.sin()", "advance", kind="dispatch", under=89)
SYNC = made.line(91, 0.4, "device_busy", "float()", kind="sync")
FETCH = made.line(92, 0.4, "transfer", "jax.device_get()", kind="transfer", bytes=8 << 20)
FED = made.line(88, 0.4, "transfer", "step", kind="fed")
CALL = made.line(88, 0.8, "host_busy", "step", kind="call")
BIG = [e.ProgramArray(type="f32[2048,1024]", bytes=8 << 20)]


def loop(*lines: dict[str, Any], count: int = 10) -> list[e.Event]:
    """`count` seconds of a loop that calls a compiled function besides."""
    taken = sum(line["seconds"] for line in lines)
    states = {"device_busy": 1.0 - taken} | {line["state"]: line["seconds"] for line in lines}
    return made.steady(count, states, [*lines, {**STEP, "seconds": 1.0 - taken}])


def checked(setting: str, count: int) -> list[e.Event]:
    """`count` seconds of work with a setting of JAX on."""
    windows = [made.sampled(second, 1.0, {"device_busy": 1.0}) for second in range(count)]
    return [replace(window, debug_settings=[setting]) for window in windows]


def ended(exit_code: int, error: str = "ValueError: no loss") -> e.ProgramEnded:
    """The end of a program whose line 91 raised something last."""
    return e.ProgramEnded(run=made.RUN, exit_code=exit_code, wall_seconds=10.0, error=error, error_at=made.at(91))


PAIRS: dict[str, tuple[list[e.Event], list[e.Event]]] = {
    "program_failed": ([*loop(), ended(1)], [*loop(), ended(0)]),
    "stopped": (
        [e.ProgramStopped(run=made.RUN, began_seconds=102.0, seconds=1.0, found_by="state")],
        [e.ProgramStopped(run=made.RUN, began_seconds=102.0, seconds=0.1, found_by="state"), *loop()],
    ),
    "debug_settings": (
        [made.sampled(0, 3.0, {"import": 3.0}), *checked("jax_debug_nans", 6), *made.steady(4, {"device_busy": 1.0})],
        [made.sampled(0, 3.0, {"import": 3.0}), *checked("jax_debug_nans", 4), *made.steady(6, {"device_busy": 1.0})],
    ),
    "caches_cleared": (
        again("caches_cleared", 2, cleared_at=made.at(97)),
        again("caches_cleared", 1, cleared_at=made.at(97)),
    ),
    "closure_varies": (
        again("closure", 3, made_at=made.at(86), factory="make_step", closure=[e.ClosureChange(name="rate")]),
        again("closure", 2, made_at=made.at(86), factory="make_step", closure=[e.ClosureChange(name="rate")]),
    ),
    "recompile_in_loop": (again("new_function", 3), again("new_function", 2)),
    "varying_shapes": (made.shaped(4), made.shaped(3)),
    "static_argument_varies": (statics(4), statics(3)),
    "weak_type_flips": (again("weak_type", 1, compile_seconds=0.5), again("weak_type", 1)),
    "arguments_vary": (again("structure", 3), again("structure", 2)),
    "cache_thrashing": (
        again("unknown", 2, cache="miss", compile_seconds=1.5),
        [made.compiled(cache="miss", compile_seconds=1.5), made.compiled(cache="hit"), made.compiled(cache="hit")],
    ),
    "large_program": (
        [made.compiled(operations=60_000, compile_seconds=4.0)],
        [made.compiled(operations=400, compile_seconds=4.0)],
    ),
    "callback_in_loop": (
        loop(made.line(88, 0.4, "host_busy", "step", kind="callback")),
        loop(made.line(88, 0.04, "host_busy", "step", kind="callback")),
    ),
    "repeated_fetch": (loop(FETCH), loop({**FETCH, "bytes": 4000})),
    "host_sync": (loop(SYNC), loop({**SYNC, "kind": "compiled", "call": "step"})),
    "op_by_op_loop": ([*eager(), *loop(BUSY)], [*eager(), *loop({**BUSY, "kind": "host", "call": "plt.draw()"})]),
    "numpy_argument": ([made.compiled(numpy_bytes=8 << 20), *loop(FED)], loop({**FED, "kind": "compiled"})),
    "implicit_transfers": (
        [made.copies("host_to_device", 100, bytes=400)],
        [made.copies("host_to_device", 99, bytes=400)],
    ),
    "data_waits": (
        loop(made.line(30, 0.4, "data", "prepare", under=86)),
        loop(made.line(30, 0.4, "host_busy", "prepare", under=86)),
    ),
    "host_work": (
        loop(made.line(95, 0.4, "host_busy", "plt.draw()")),
        loop(made.line(95, 0.04, "host_busy", "plt.draw()")),
    ),
    "dispatch_bound": (
        [*loop(CALL), made.steps(100_000, 14e-6, lines={88: 1.0})],
        [*loop({**CALL, "kind": "compiled", "state": "device_busy"}), made.steps(100_000, 14e-6, lines={88: 1.0})],
    ),
    "many_tiny_jits": (tiny(20), tiny(20, operations=400)),
    "slow_tracing": (
        [made.compiled(trace_seconds=2.0), *made.steady(10, {"trace": 0.2, "device_busy": 0.8})],
        [made.compiled(trace_seconds=0.5), *made.steady(10, {"trace": 0.05, "device_busy": 0.95})],
    ),
    "captured_constants": (
        [made.compiled(constants=BIG)],
        [made.compiled(constants=[e.ProgramArray(type="f32[100]", bytes=400)])],
    ),
    "unused_donation": (
        [made.compiled(unused_donations=[e.ProgramArray(name="w", type="f32[1024,1024]", bytes=4 << 20)])],
        [made.compiled(unused_donations=[e.ProgramArray(name="w", type="f32[16,16]", bytes=1024)])],
    ),
    "arrays_grow": (made.arrays(list(range(100, 600, 20)), 1 << 20), made.arrays([100, 300, 500] + [600, 590] * 12)),
}
WORKS = {"compile": 0.5, "device_busy": 0.5}
"""What a second of a program goes to whose pair says nothing of it."""


def seen(inside: list[e.Event]) -> list[e.Event]:
    """With time in which the program worked, where none was given: a share is of that."""
    has = any(isinstance(event, e.ProgramSampled) for event in inside)
    return inside if has else [*made.steady(10, WORKS), *inside]


REMARKS: dict[str, tuple[list[e.Event], list[e.Event]]] = {
    "compile_dominates": (
        [made.compiled(), *made.steady(10, {"compile": 0.6, "device_busy": 0.4})],
        [made.compiled(), *made.steady(10, {"compile": 0.4, "device_busy": 0.6})],
    ),
    "cache_off": (
        [made.compiled(cache="off", compile_seconds=5.0)],
        [made.compiled(cache="hit", compile_seconds=0.1)],
    ),
}


def test_every_finding_has_its_pair() -> None:
    assert set(PAIRS) == set(CODES)
    assert {entry.code for entry in entries().values() if entry.source == "program"} == {*PAIRS, *REMARKS}


@pytest.mark.parametrize("code", REMARKS)
def test_a_remark_is_made_of_one_program_and_not_of_the_other(code: str) -> None:
    assert remark(code, *REMARKS[code][0]) is not None
    assert remark(code, *REMARKS[code][1]) is None


@pytest.mark.parametrize("code", CODES)
def test_it_is_found(code: str) -> None:
    found = only(code, *PAIRS[code][0])
    assert found.message
    assert found.advice.endswith(".")
    assert "jax.jit on `" not in found.advice, "a generator, or a method that JAX cannot trace, may have the name"


@pytest.mark.parametrize("code", CODES)
def test_near_ones_are_not_told(code: str) -> None:
    assert code not in codes(*PAIRS[code][1])


def test_a_short_clean_program_has_no_finding() -> None:
    inside = [made.compiled(), *made.steady(10, {"device_busy": 0.9, "host_busy": 0.1}), made.steps(500, 0.02)]
    assert codes(*inside, *made.arrays([50] * 10)) == []


def test_what_few_brief_passes_leave_open_is_not_called_dispatch() -> None:
    """Twenty passes of 19 µs do not make a second: the samples saw something else, such as the wait for their work."""
    assert "dispatch_bound" in codes(*loop(CALL, count=1), made.steps(250, 19e-6, lines={88: 1.0}), wall=1.0)
    assert "dispatch_bound" not in codes(*loop(CALL, count=1), made.steps(20, 19e-6, lines={88: 1.0}), wall=1.0)


class TestDispatch:
    def test_a_library_around_the_calls_is_named_where_most_go_through_it(self) -> None:
        through, plain = {**CALL, "through": "flax.nnx"}, {**CALL, "seconds": 0.1}
        found = only("dispatch_bound", *loop(through), made.steps(1_000, 2e-3, lines={88: 1.0}))
        assert "flax.nnx" in found.message
        assert "nnx.cached_partial" in found.advice
        mixed = only("dispatch_bound", *loop({**through, "seconds": 0.3}, {**CALL, "seconds": 0.5}))
        assert "flax" not in mixed.message + mixed.advice
        quarter = {**through, "seconds": 0.3}
        assert "dispatch_bound" in codes(*loop(quarter))
        assert "dispatch_bound" not in codes(*loop({**quarter, "through": ""}))
        assert "dispatch_bound" not in codes(*loop({**through, "seconds": 0.1}, plain))

    @pytest.mark.parametrize(
        ("leaves", "operations", "many", "unused"),
        [(3000, 3, True, True), (3000, 3000, True, False), (99, 3, False, False)],
    )
    def test_many_leaves_are(self, leaves: int, operations: int, *, many: bool, unused: bool) -> None:
        first = [made.leaf("x", "f32[3]")]
        row = made.compiled("step", signature=first, signature_more=leaves - 1, operations=operations)
        found = only("dispatch_bound", row, *loop(CALL))
        assert ("leaves" in found.message, "unused" in found.message) == (many, unused)
        assert found.function == ("step" if unused else "")

    def test_the_function_that_could_be_bound_is_named_where_there_is_one(self) -> None:
        through = {**CALL, "through": "flax.nnx"}
        assert only("dispatch_bound", made.compiled("step"), *loop(through)).function == "step"
        assert only("dispatch_bound", *map(made.compiled, ("step", "evaluate")), *loop(through)).function == ""
        assert only("dispatch_bound", made.compiled("step"), *loop({**CALL, "through": "equinox"})).function == ""


class TestFailures:
    def test_it_comes_before_what_costs_most(self) -> None:
        first, second = made.result(*loop(SYNC), ended(1)).findings
        assert (first.code, second.code) == ("program_failed", "host_sync")
        assert first.where == made.at(91)
        assert first.message == "it ended with ValueError: no loss"

    @pytest.mark.parametrize(
        ("error", "size"),
        [
            ("JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 35184372088832 bytes.", 32 << 40),
            ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8.00 TiB for an array", 8 << 40),
            ("MemoryError", None),
        ],
    )
    def test_out_of_memory_has_what_was_asked_for(self, error: str, size: int | None) -> None:
        found = only("program_failed", ended(1, error))
        assert found.bytes == size
        assert found.message.startswith("it ran out of memory")

    def test_an_exit_code_has_no_line_and_an_interrupt_is_no_failure(self) -> None:
        found = only("program_failed", *loop(), ended(3, ""))
        assert (found.message, found.where) == ("it ended: exit code 3", None)
        assert "program_failed" not in codes(*loop(), ended(130, ""))

    def test_after_a_signal_the_line_of_the_last_samples_is_named(self) -> None:
        crashed = e.RunFinished(run=made.RUN, status="crashed", error="crashed with SIGSEGV")
        session = fold(made.HEADER, [*made.program(*loop(SYNC), ended(139, ""))[:-3], crashed])
        (found,) = [one for one in program_result(session, made.RUN).findings if one.code == "program_failed"]
        assert found.message == "it ended: crashed with SIGSEGV; before that it was mostly at train.py:88"


class TestRecompiles:
    def test_a_jit_in_a_loop_names_the_line_to_change(self) -> None:
        found = only("recompile_in_loop", *again("new_function", 11))
        assert found.where.text == f"{made.FOLDER}/train.py:88"
        assert "made anew for each call at train.py:88 belongs" in found.advice
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

    def test_operations_beside_a_function_vary_with_it_and_belong_to_it(self) -> None:
        """`tokens = jnp.append(tokens, next_token(tokens))`: padding mends both."""
        growing = made.shaped(30, "append", op_by_op=True, operations=2, compile_seconds=0.04)
        elsewhere = [replace(row, called_from=made.at(12, "prepare")) for row in growing if isinstance(row, e.Compiled)]
        found = only("varying_shapes", *made.shaped(30), *growing)
        assert found.seconds == pytest.approx(29 * 0.1 + 29 * 0.07)
        assert "the operations around it 2.03 s" in found.message
        assert "many_tiny_jits" not in codes(*made.shaped(30), *growing)
        assert "many_tiny_jits" in codes(*made.shaped(30), *elsewhere)
        assert "around it" not in only("varying_shapes", *made.shaped(30), *elsewhere).message

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

    @pytest.mark.parametrize(("seconds", "told"), [(1.5, True), (0.5, False)])
    @pytest.mark.parametrize("code", ["dtype", "structure", "sharding"])
    def test_a_single_one_is_told_where_it_is_dear(self, code: str, seconds: float, told: bool) -> None:
        words = "params: [0] not committed → P() over 8 devices"
        events = again(code, 1, compile_seconds=seconds, reason=words)
        assert ("arguments_vary" in codes(*events)) == told
        if told:
            assert (
                f"compiled again once for other {code}s of its arguments: {words}"
                in only("arguments_vary", *events).message
            )

    def test_a_factory_is_told_at_the_line_that_calls_it(self) -> None:
        found = only("closure_varies", *PAIRS["closure_varies"][0])
        assert found.where.line == 86
        assert "made anew by `make_step` each time, with other values of rate" in found.message

    def test_cleared_caches_are_told_at_the_line_that_clears_them(self) -> None:
        found = only("caches_cleared", *PAIRS["caches_cleared"][0])
        assert found.where.line == 97
        assert found.saves_seconds == pytest.approx(0.2)


class TestCost:
    def test_many_programs_that_cost_nothing_are_not_told(self) -> None:
        assert "many_tiny_jits" not in codes(*tiny(30, trace_seconds=None, lower_seconds=None, compile_seconds=0.001))

    def test_single_operations_are_counted_among_the_tiny_ones(self) -> None:
        rows = [row for _ in range(7) for row in eager()]
        assert "21 of them single operations outside any jit" in only("many_tiny_jits", *rows).message

    def test_compiling_for_most_of_the_time_is_a_remark(self) -> None:
        def of(compiling: float, wall: float = 10.0) -> Finding | None:
            rest = wall - compiling
            inside = made.sampled(0, wall, {"compile": compiling, "device_busy": rest})
            return remark("compile_dominates", made.compiled(), inside, wall=wall)

        assert of(5.2) is not None
        assert of(4.8) is None
        assert of(0.4, wall=0.5) is None

    def test_tracing_names_its_lines(self) -> None:
        line = made.line(33, 0.4, "trace", "attend()")
        rows = [made.compiled(trace_seconds=5.0)]
        found = only("slow_tracing", *rows, *made.steady(10, {"trace": 0.5, "device_busy": 0.5}, [line]))
        assert "by samples: train.py:33 4.0 s" in found.message
        assert found.where.line == 33

    @pytest.mark.parametrize(("through", "unrolled"), [("", True), ("diffrax", False)])
    @pytest.mark.parametrize("code", ["slow_tracing", "large_program"])
    def test_loops_are_blamed_only_where_the_users_own_code_is_traced(
        self, code: str, through: str, unrolled: bool
    ) -> None:
        """A solver of a library has stages of its own, and the code that calls it may have no loop at all."""
        line = made.line(33, 0.4, "trace", "diffeqsolve()", through=through)
        size = {"operations": 9000, "compile_seconds": 9.0} if code == "large_program" else {}
        rows = [made.compiled(trace_seconds=5.0, **size)]
        advice = only(code, *rows, *made.steady(10, {"trace": 0.5, "device_busy": 0.5}, [line])).advice
        assert ("lax.scan" in advice) == unrolled
        assert (through in advice) == (bool(through) or unrolled)

    def test_a_cache_that_is_off_is_a_remark_that_says_what_it_would_not_keep(self) -> None:
        small = [made.compiled(f"f{index}", cache="off", compile_seconds=0.3) for index in range(10)]
        found, large = remark("cache_off", *small), remark("cache_off", made.compiled(cache="off", compile_seconds=5.0))
        assert "min_compile_time_secs to 0" in found.advice
        assert "min_compile" not in large.advice
        assert remark("cache_off", made.compiled(cache="miss", compile_seconds=5.0)) is None

    def test_misses_that_are_too_short_to_be_kept_are_told_apart(self) -> None:
        assert (
            "min_compile_time_secs"
            in only("cache_thrashing", *again("unknown", 5, cache="miss", compile_seconds=0.2)).advice
        )

    def test_constants_are_told_once_for_all_compilations(self) -> None:
        found = only("captured_constants", *again("shape", 4, constants=BIG))
        assert "8.00 MiB of constants (f32[2048,1024]), in each of its 5 compilations" in found.message
        assert found.where.line == 20

    @pytest.mark.parametrize(
        ("operations", "took", "found"), [(2_500, 4.0, True), (2_500, 1.5, False), (900, 4.0, False)]
    )
    def test_a_large_program_is_told_where_making_it_is_most_of_the_work(
        self, operations: int, took: float, found: bool
    ) -> None:
        assert ("large_program" in codes(made.compiled(operations=operations, compile_seconds=took))) == found

    def test_a_large_program_of_a_library_is_not_the_readers_to_change(self) -> None:
        made_by = {"operations": 2_500, "compile_seconds": 4.0}
        assert "large_program" in codes(made.compiled(library=False, **made_by))
        assert "large_program" not in codes(made.compiled(library=True, **made_by))

    def test_a_program_that_may_be_as_large_as_its_model_saves_half_as_surely(self) -> None:
        saves = [
            only("large_program", made.compiled(operations=count, compile_seconds=5.0)).saves_seconds or 0.0
            for count in (4_900, 5_100)
        ]
        assert 2 * saves[0] < saves[1] < 2.1 * saves[0]

    @pytest.mark.parametrize(
        ("setting", "words"),
        [("jax_debug_nans", "waits for its results"), ("jax_disable_jit", "one operation at a time")],
    )
    def test_a_setting_is_said_with_what_it_does_and_how_it_is_switched_off(self, setting: str, words: str) -> None:
        found = only("debug_settings", *checked(setting, 5))
        assert found.message.startswith(f"{setting} was on: ")
        assert words in found.message
        assert f"{setting.upper()}=0" in found.advice

    def test_a_setting_has_the_line_that_names_it(self) -> None:
        windows = checked("jax_debug_nans", 5)
        assert only("debug_settings", *windows).where is None
        at = {"jax_debug_nans": made.at(7)}
        assert only("debug_settings", *[replace(each, debug_settings_at=at) for each in windows]).where == made.at(7)  # type: ignore[call-arg]


def test_arrays_that_are_counted_ever_more_seldom_grow_all_the_same() -> None:
    """Beside other work a count is followed by a long pause: the last one then has most of the growth."""
    moments = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 2.7, 5.7]
    counts = [
        e.ArraysCounted(run=made.RUN, monotonic_seconds=made.BEGAN + at, count=round(3000 * at), bytes=round(3e6 * at))
        for at in moments
    ]
    assert only("arrays_grow", *counts).estimate


class TestHost:
    def test_a_callback_is_told_with_the_function_that_takes_the_time(self) -> None:
        inside = made.line(88, 0.4, "host_busy", "step", kind="callback", through="plot")
        assert ", in plot()" in only("callback_in_loop", *loop(inside)).message
        helper = made.line(40, 0.4, "host_busy", "step", "train", kind="callback", under=88)
        assert ", in train()" not in only("callback_in_loop", *loop(helper)).message
        assert "(), in " not in only("callback_in_loop", *PAIRS["callback_in_loop"][0]).message

    def test_estimates_are_marked(self) -> None:
        assert only("host_sync", *loop(SYNC)).estimate
        assert only("op_by_op_loop", *eager(), *loop(BUSY)).estimate
        assert not only("varying_shapes", *made.shaped(9)).estimate

    def test_a_line_that_calls_two_things_is_named_once(self) -> None:
        lines = [made.line(30, 0.3, "data", "np.sort()", under=86), made.line(30, 0.2, "data", "np.load()", under=86)]
        found = only("data_waits", *loop(*lines, made.line(31, 0.1, "data", under=86)))
        assert found.message.count(":30 (5.0 s)") == found.message.count(":30") == 1

    def test_a_finding_stands_at_the_line_of_the_loop_and_names_those_below(self) -> None:
        found = only("data_waits", *loop(made.line(30, 0.4, "data", "np.sort()", under=86)))
        assert found.where.line == 86
        assert [place.line for place in found.others] == [30]

    @pytest.mark.parametrize(("call", "found"), [("q.get()", True), ("time.sleep()", False), ("lock.acquire()", False)])
    def test_an_empty_queue_is_a_wait_for_data(self, call: str, found: bool) -> None:
        assert ("data_waits" in codes(*loop(made.line(86, 0.8, "waiting", call)))) == found

    def test_reading_a_value_belongs_to_waiting_for_it(self) -> None:
        """`np.asarray(step(x))` waits, and then it runs: both are the price of having the value on the host."""
        waits = made.line(91, 0.5, "device_busy", "np.asarray()", kind="read")
        runs = made.line(91, 0.15, "host_busy", "np.asarray()", kind="read")
        assert codes(*loop(waits, runs)) == ["host_sync"]
        assert codes(*loop(runs)) == ["host_work"]

    def test_a_compiled_function_that_waits_itself_is_no_value_that_is_fetched(self) -> None:
        """equinox's `filter_jit` waits for its result, to raise errors; its first call was a warm-up elsewhere."""
        warm_up = made.compiled("step", called_from=made.at(12, "warm_up"))
        assert "host_sync" not in codes(warm_up, *loop({**SYNC, "call": "step"}))
        assert "host_sync" in codes(warm_up, *loop(SYNC))

    def test_a_condition_that_waits_has_its_own_advice(self) -> None:
        assert "jax.lax.while_loop" in only("host_sync", *loop({**SYNC, "call": "bool()"})).advice
        assert "jax.lax.while_loop" not in only("host_sync", *loop(SYNC)).advice

    def test_the_parts_of_an_expression_are_not_named_beside_it(self) -> None:
        lines = [made.line(95, took, "host_busy", call) for call, took in (("a * b + c", 0.3), ("a * b", 0.1))]
        found = only("host_work", *loop(*lines, made.line(95, 0.05, "host_busy", "plt.draw()")))
        assert "to the device: a * b + c, plt.draw(), about" in found.message

    def test_operations_of_several_functions_are_put_together_where_the_loop_calls_them(self) -> None:
        """Compiling one of the functions alone would leave most of the operations as they are."""
        second = made.line(60, 0.3, "host_busy", "jnp.cos()", "measure", kind="dispatch", under=91)
        first = {**BUSY, "seconds": 0.3}
        assert "Put the operations at train.py:40 into" in only("op_by_op_loop", *eager(), *loop(first)).advice
        both = only("op_by_op_loop", *eager(), *eager(60), *loop(first, second))
        assert "Put the operations at train.py:89-91 into" in both.advice

    def test_a_counter_of_the_loop_is_no_work(self) -> None:
        line = made.line(95, 0.4, "host_busy", "step += 1")
        assert "host_work" in codes(*loop(line), made.steps(100_000, 100e-6, lines={88: 0.8, 95: 0.2}))
        assert "host_work" not in codes(*loop(line), made.steps(100_000, 100e-6, lines={88: 0.92, 95: 0.08}))

    @pytest.mark.parametrize(("call", "beside"), [("q.get()", True), ("future.result()", True), ("np.sort()", False)])
    def test_who_has_a_worker_is_not_told_to_take_one(self, call: str, beside: bool) -> None:
        advice = only("data_waits", *loop(made.line(86, 0.8, "data", call))).advice
        assert advice.startswith("What prepares the batches beside the loop") == beside

    def test_a_value_that_is_fetched_after_the_loop_is_not_waited_for_in_it(self) -> None:
        after = made.line(101, 1.0, "device_busy", "float()", kind="sync", loop=None)
        assert "host_sync" not in codes(*loop(count=9), made.sampled(9, 1.0, {"device_busy": 1.0}, [after]))

    def test_a_value_that_is_fetched_every_tenth_pass_is_not_told(self) -> None:
        timed = made.steps(1000, 0.01, lines={88: 0.6, 91: 0.4})
        seldom = replace(timed.lines[1], hits=100)
        assert "host_sync" in codes(*loop(SYNC), timed)
        assert "host_sync" not in codes(*loop(SYNC), replace(timed, lines=[timed.lines[0], seldom]))

    def test_a_line_that_does_its_work_in_one_of_fifty_passes_is_not_told(self) -> None:
        """`if i % 50 == 0: print(i, float(loss))`, or a function that is called in each pass and does that."""
        lines = {88: 0.6, 91: 0.4}
        assert "host_sync" in codes(*loop(SYNC), made.steps(500, 0.01, lines=lines))
        assert "host_sync" not in codes(*loop(SYNC), made.steps(500, 0.01, lines=lines, seldom=0.4))
        fetch = made.steps(500, 0.01, lines={88: 0.6, 92: 0.4}, seldom=0.4)
        assert "repeated_fetch" not in codes(*loop(FETCH), fetch)

    @pytest.mark.parametrize(("each", "left"), [(0.01, 4.0), (0.1, 3.0)])
    def test_all_together_save_no_more_than_there_is_beside_the_work_of_the_device(
        self, each: float, left: float
    ) -> None:
        """Of 10 s the device takes 6; in long passes, whose calls do not return at once, also the second of the
        calls."""
        waits, prepares = {**SYNC, "seconds": 0.6}, made.line(30, 0.3, "data", "np.load()", under=86)
        timed = made.steps(100, each, lines={91: 0.6, 86: 0.3, 88: 0.1})
        found = made.result(*loop(waits, prepares), timed).findings
        assert sorted(one.code for one in found) == ["data_waits", "host_sync"]
        assert sum(one.saves_seconds or 0.0 for one in found) == pytest.approx(left, rel=1e-3)
        (alone,) = made.result(*loop(prepares), replace(timed, lines=timed.lines[1:])).findings
        assert alone.saves_seconds == pytest.approx(3.0)

    def test_what_is_under_a_condition_is_not_of_every_pass(self) -> None:
        conditional = {**SYNC, "at": [{**SYNC["at"][0], "conditional": True}]}
        assert "host_sync" not in codes(*loop(conditional))

    def test_a_compiled_function_that_waits_itself_fetches_nothing(self) -> None:
        waits = made.line(88, 0.8, "device_busy", "model.step", kind="sync")
        again = made.steps(200, 0.04, lines={88: 1.0})
        other = made.steady(10, {"device_busy": 1.0}, [waits])
        assert "host_sync" in codes(*other, made.steps(200, 0.005, lines={88: 1.0}))
        assert "host_sync" not in codes(made.compiled("step", line=88), *other, made.steps(200, 0.005, lines={88: 1.0}))
        assert "host_sync" not in codes(made.compiled("step", line=88), *other, again)

    def test_a_wait_that_is_asked_for_is_the_devices_time(self) -> None:
        assert "host_sync" not in codes(*loop({**SYNC, "call": "jax.block_until_ready()"}))

    def test_a_device_that_is_busy_meanwhile_is_said(self) -> None:
        found = only("host_sync", *loop({**SYNC, "seconds": 0.95}), made.steps(1000, 0.01, lines={91: 0.95, 88: 0.05}))
        assert "the device is busy meanwhile" in found.message
        assert found.saves_seconds == pytest.approx(0.5)

    def test_long_passes_gain_nothing_from_not_waiting(self) -> None:
        events = loop({**SYNC, "seconds": 0.97}), made.steps(100, 0.1, lines={91: 0.97, 88: 0.03})
        assert "host_sync" not in codes(*events[0], events[1])

    def test_a_loop_of_a_jitted_function_is_not_op_by_op(self) -> None:
        assert "op_by_op_loop" not in codes(*eager(72), made.compiled(line=88), *loop())

    def test_compiling_the_single_operations_of_a_loop_belongs_to_running_them(self) -> None:
        rows = [row for _ in range(10) for row in eager()]
        assert "many_tiny_jits" in codes(*rows, *loop())
        found = made.result(*rows, *loop(BUSY)).findings
        assert [one.code for one in found] == ["op_by_op_loop"]
        assert found[0].seconds == pytest.approx(5.0 + 3.0)

    def test_operations_of_the_set_up_are_not_those_of_the_loop(self) -> None:
        rows = [made.compiled(name, line=12, op_by_op=True, operations=1) for name in ("add", "mul", "sin")]
        line = made.line(89, 0.5, "host_busy", "x + batch", kind="dispatch")
        assert "op_by_op_loop" not in codes(*rows, *loop(line))

    def test_a_loop_of_a_library_is_not_the_readers_to_change(self) -> None:
        inside = {**BUSY["at"][0], "library": True}
        lines = [{**line, "at": [inside]} for line in (BUSY, {**STEP, "seconds": 0.5})]
        states = {"host_busy": 0.5, "device_busy": 0.5}
        assert "op_by_op_loop" not in codes(*eager(), *made.steady(10, states, lines))

    def test_the_python_around_the_operations_goes_with_them(self) -> None:
        around = [
            made.line(41, 0.1, "host_busy", "nn.Dense()", "advance", under=89),
            made.line(42, 0.1, "data", "x + y", "advance", kind="data", under=89),
        ]
        found = made.result(*eager(), *loop(BUSY, *around)).findings
        assert [one.code for one in found] == ["op_by_op_loop"]
        assert found[0].seconds == pytest.approx(7.0 + 0.3)
        loading = made.line(41, 0.3, "data", "np.load()", "advance", under=89)
        assert "data_waits" in codes(*eager(), *loop({**BUSY, "seconds": 0.2}, loading))

    def test_a_set_up_of_some_layers_is_not_a_loop_of_operations(self) -> None:
        rows = [row for _ in range(100) for row in eager()]
        assert "op_by_op_loop" not in codes(*rows, *loop(BUSY), made.steps(5, 2.0, lines={89: 1.0}))
        assert "op_by_op_loop" in codes(*rows, *loop(BUSY), made.steps(500, 0.02, lines={89: 1.0}))

    def test_a_line_that_fetches_a_value_is_told_once(self) -> None:
        copies = made.copies("device_to_host", 40, "samples", seconds=4.0, **asdict(made.at(91)))
        assert codes(*loop(SYNC), copies) == ["host_sync"]
        assert codes(*loop({**SYNC, "kind": "transfer", "call": "x > 3"}), copies) == ["implicit_transfers"]

    def test_making_an_array_on_the_device_is_no_implicit_copy(self) -> None:
        """Also at a line that fetches a value as well: `int(act(jnp.array(state)))`."""
        copies = made.copies("device_to_host", 40, "samples", seconds=4.0, **asdict(made.at(91)))
        fetched = made.line(91, 0.4, "transfer", "x > 3", kind="transfer")
        assert codes(*loop(fetched), copies) == ["implicit_transfers"]
        assert codes(*loop({**fetched, "call": "jnp.array()"}), copies) == []

    def test_a_share_is_of_the_time_in_which_the_program_worked(self) -> None:
        first = made.sampled(0, 90.0, {"import": 45.0, "compile": 0.1, "host_busy": 44.9})
        imported = made.sampled(0, 90.0, {"import": 90.0})
        rest = [made.sampled(90 + second, 1.0, {"device_busy": 1.0}, [SYNC, STEP]) for second in range(10)]
        assert "host_sync" in codes(imported, *rest, wall=100.0)
        assert "host_sync" in codes(first, *rest, wall=100.0)

    def test_twenty_samples_are_enough_for_sixty_per_cent(self) -> None:
        def of(seconds: float) -> list[str]:
            lines = [{**SYNC, "seconds": 0.6 * seconds}, {**STEP, "seconds": 0.4 * seconds}]
            return codes(made.sampled(0, seconds, {"device_busy": seconds}, lines), wall=seconds)

        assert of(0.2) == ["host_sync"]
        assert of(0.01) == []

    def test_lines_that_samples_saw_stand_beside_what_the_guard_counted(self) -> None:
        found = only(
            "implicit_transfers",
            made.copies("host_to_device", 500, bytes=1 << 20),
            made.copies("host_to_device", 40, "samples", seconds=0.4, **asdict(made.at(88))),
            *loop(made.line(88, 0.04, "transfer", "step", kind="transfer")),
        )
        assert "500 implicit copies from host to device, 1.00 MiB; by samples about 400 ms" in found.message
        assert found.where.line == 88
        assert not found.estimate

    def test_copies_of_which_no_size_is_known_are_not_hidden_in_a_sum(self) -> None:
        found = only(
            "implicit_transfers",
            made.copies("host_to_device", 2, bytes=32, type="f32[4]"),
            made.copies("host_to_device", 998),
        )
        assert found.message.startswith(
            "1\u202f000 implicit copies from host to device, 32 B; JAX reports no size for 998"
        )


class TestArrays:
    def test_what_grows_at_first_and_then_stays_is_a_start(self) -> None:
        assert "arrays_grow" not in codes(*made.arrays([*range(10, 300, 10), *[300] * 30]))

    def test_one_odd_count_does_not_hide_a_leak(self) -> None:
        counts = list(range(100, 1100, 25))
        counts[20] = 50
        found = only("arrays_grow", *made.arrays(counts, 1 << 20))
        assert "1 500 arrays a minute".replace(" ", "\u202f", 1) in found.message

    def test_some_hundred_scalars_that_are_fetched_at_the_end_are_no_leak(self) -> None:
        assert "arrays_grow" not in codes(*made.arrays(list(range(100, 600, 20)), 4))
        assert "arrays_grow" in codes(*made.arrays(list(range(100, 9100, 300)), 4))

    def test_one_jump_is_no_growth(self) -> None:
        """Parameters, and later as many gradients; levels that go up several times are growth."""
        assert "arrays_grow" not in codes(*made.arrays([150] * 14 + [300] * 10, 1 << 20))
        assert "arrays_grow" in codes(*made.arrays([100] * 8 + [200] * 4 + [300] * 4 + [400] * 4 + [500] * 4, 1 << 20))

    def test_too_few_counts_tell_nothing(self) -> None:
        assert "arrays_grow" not in codes(*made.arrays([100, 200, 300, 400, 500]))


def test_what_would_save_most_comes_first_and_no_second_is_told_twice() -> None:
    inside = [*made.shaped(30), *again("new_function", 3), *eager(), *loop(BUSY, {**SYNC, "seconds": 0.2})]
    found = made.result(*inside).findings
    saved = [one.saves_seconds or 0.0 for one in found]
    assert saved == sorted(saved, reverse=True)
    assert len(found) == 4
    compiling = sum(0.1 for event in inside if isinstance(event, e.Compiled) and event.reason_code != "first")
    assert sum(one.seconds or 0.0 for one in found) == pytest.approx(compiling + 0.3 + 5.0 + 2.0)
