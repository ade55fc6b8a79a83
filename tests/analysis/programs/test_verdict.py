"""What bounds the hot loop of a program, and when that cannot be said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import program_events as made
from jaxprof import events as e
from jaxprof.analysis.programs.verdict import (
    DATA,
    DEVICE,
    PARTS,
    HotLoop,
    LoopTimes,
    Verdict,
    interval,
    line_times,
    recompilations,
)
from jaxprof.analysis.programs.verdict import verdict as bound


def verdict(*inside: e.Event, wall: float = 10.0) -> Verdict:
    return made.result(*inside, wall=wall).verdict


def loop(*lines: dict[str, Any], count: int = 10) -> list[e.Event]:
    taken = sum(line["seconds"] for line in lines)
    states = {"device_busy": 1 - taken} | {line["state"]: line["seconds"] for line in lines}
    return made.steady(count, states, [*lines, made.line(88, 1 - taken, "device_busy", "step")])


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (made.line(30, 0.8, "data", "prepare", under=86), "data-bound"),
        (made.line(95, 0.8, "host_busy", "plt.draw()"), "host-bound"),
        (made.line(95, 0.8, "waiting", "stream.write()"), "host-bound"),
        (made.line(40, 0.8, "host_busy", "jnp.sin()", kind="dispatch", under=89), "dispatch-bound"),
        (made.line(88, 0.8, "host_busy", "step", kind="call"), "dispatch-bound"),
        (made.line(91, 0.8, "transfer", "jax.device_get()", kind="transfer"), "copy-bound"),
        (made.line(88, 0.8, "transfer", "step", kind="fed"), "copy-bound"),
        (made.line(91, 0.8, "device_busy", "float()", kind="sync"), "device-bound"),
        (made.line(91, 0.8, "device_busy", "np.asarray()", kind="read"), "device-bound"),
        (made.line(91, 0.8, "host_busy", "np.asarray()", kind="read"), "host-bound"),
    ],
)
def test_what_most_of_the_loop_goes_to(line: dict[str, Any], kind: str) -> None:
    found = verdict(*loop(line))
    assert found.kind == kind
    share = 1.0 if kind == "device-bound" else 0.8  # the step itself is the device's
    assert found.share == pytest.approx(share)
    assert found.high is not None
    assert found.low < share <= found.high
    assert (found.where.line, found.last_line) == (85, 99)


def test_a_program_that_mostly_waits_for_something_to_do_is_idle() -> None:
    """Not bound by the little that it does: a server asleep in its event loop, or in a poll that finds nothing."""
    asleep = verdict(*loop(made.line(95, 0.88, "waiting", "asyncio.run()", kind="idle")))
    assert (asleep.kind, asleep.share, asleep.seconds) == ("idle", pytest.approx(0.88), pytest.approx(10))
    assert asleep.low is not None
    assert asleep.high is not None
    assert asleep.low < 0.88 < asleep.high
    assert asleep.otherwise is not None
    assert (asleep.otherwise.kind, asleep.otherwise.seconds) == ("device-bound", pytest.approx(1.2))
    assert verdict(*loop(made.line(95, 0.3, "waiting", "asyncio.run()", kind="idle"))).kind == "device-bound"


def test_a_sleep_under_a_condition_is_a_poll_that_found_nothing() -> None:
    sleeping = made.line(95, 0.88, "waiting", "time.sleep()")
    assert verdict(*loop(sleeping)).kind == "host-bound", "in every pass: it is what a pass takes"
    assert [each.code for each in made.result(*loop(sleeping)).findings] == ["host_work"]
    sleeping["at"][0]["conditional"] = True
    idle = made.result(*loop(sleeping))
    assert idle.verdict.kind == "idle"
    assert not idle.findings, "nothing would be saved by not sleeping"


@pytest.mark.parametrize(
    ("unseen", "device", "kind"), [(0.0, 1.0, "device-bound"), (0.3, 0.7, "device-bound"), (0.6, 0.4, None)]
)
def test_what_no_clock_places_makes_the_interval_as_wide_and_no_verdict(
    unseen: float, device: float, kind: str | None
) -> None:
    """The interpreter's lock was held: by the caller's Python, a library's, or the call's own work."""
    lines = [made.line(88, device, "device_busy", "step"), made.line(88, unseen, "host_busy", "", kind="unseen")]
    steady = made.steady(10, {"device_busy": device, "host_busy": unseen}, [each for each in lines if each["seconds"]])
    found = verdict(*steady)
    assert found.kind == kind
    if kind:
        assert found.low <= device
        assert found.high >= min(1.0, device + unseen)
    assert sum(found.parts.values()) == pytest.approx(10 * device)


def _inline(ran: float, held: float, each: float, leaves: int = 1) -> Verdict:
    """A loop in whose call the thread ran without the interpreter's lock, and with it."""
    lines = [
        made.line(88, ran, "device_busy", "step", kind="inline"),
        made.line(88, held, "host_busy", "step", kind="call"),
    ]
    row = made.compiled(signature=[made.leaf("x", "f32[3]")], signature_more=leaves - 1)
    return verdict(row, *made.steady(10, {"device_busy": ran, "host_busy": held}, lines), made.steps(1000, each))


def test_a_thread_that_runs_inside_a_call_computes_only_what_is_more_than_a_launch() -> None:
    """XLA has the calling thread compute small functions on a CPU: how long a launch takes is the second witness."""
    assert _inline(0.98, 0.02, 2e-3).kind == "device-bound"
    assert _inline(0.45, 0.55, 10e-6).kind == "dispatch-bound", "an empty call"
    assert _inline(0.95, 0.05, 20e-6).kind is None, "a launch, or a computation of so long"
    assert _inline(0.60, 0.40, 1e-3).kind == "device-bound"
    assert _inline(0.60, 0.40, 1e-3, leaves=500).kind is None, "launching with so many arguments may take as long"


@pytest.mark.parametrize(("each", "kind"), [(20e-6, None), (2e-3, "device-bound")])
def test_brief_waits_for_results_may_be_the_threads_own(each: float, kind: str | None) -> None:
    """Asking for a result, going to sleep and waking up take microseconds of each wait."""
    waits = made.line(88, 0.6, "device_busy", "y.block_until_ready()", kind="sync")
    calls = made.line(87, 0.4, "host_busy", "step", kind="call")
    assert (
        verdict(*made.steady(10, {"device_busy": 0.6, "host_busy": 0.4}, [waits, calls]), made.steps(1000, each)).kind
        == kind
    )


def test_a_single_operation_that_waits_behind_a_compiled_function_is_the_devices_time() -> None:
    queued = made.line(88, 0.8, "device_busy", "xs[i]", kind="dispatch")
    assert verdict(*loop(queued)).kind == "device-bound"
    alone = made.steady(10, {"device_busy": 1.0}, [made.line(88, 1.0, "device_busy", "xs[i]", kind="dispatch")])
    assert verdict(*alone).kind == "dispatch-bound"


def test_passes_timed_in_spells_give_no_rate() -> None:
    """Older recordings on Python 3.11: spells can miss the passes that wait."""

    def rate(found_by: str) -> float | None:
        timed = replace(made.steps(50, 1e-3, lines={88: 1.0}), found_by=found_by)
        found = made.result(*loop(), timed, wall=10.0)
        return found.steps.per_second

    assert rate("tracing") is None
    assert rate("monitoring") == pytest.approx(1000)


def test_steps_a_second_of_brief_passes_are_those_by_their_numbers() -> None:
    """Spells of some hundred passes begin when the thread has a processor, and end before it loses it."""
    spells = made.steps(500, 40e-6, lines={88: 1.0})
    told = made.passes(0, [3.0], counts=[19_500])

    def rate(*more: e.Event) -> float | None:
        found = made.result(*loop(), spells, *more, wall=10.0)
        return found.steps.per_second

    assert rate() is None
    assert rate(told) == pytest.approx(6_500)


@pytest.mark.parametrize(("told_seconds", "rate"), [(0.02, None), (1.0, None), (3.0, 10.0)])
def test_few_steps_of_a_long_loop_give_no_rate(told_seconds: float, rate: float | None) -> None:
    """The first calls of a loop that queues them take microseconds; samples saw it for four seconds."""
    told = made.passes(0, [told_seconds], counts=[30])
    found = made.result(*loop(), made.steps(2, 0.01), told, wall=10.0)
    assert found.steps.per_second == rate


def test_a_loop_whose_calls_were_never_seen_is_known_by_what_was_compiled_in_it() -> None:
    waits = made.line(30, 0.9, "data", "time.sleep()", "readings", under=86)
    compiling = made.line(88, 0.1, "compile", "step", kind="compile")
    found = verdict(*made.steady(10, {"data": 0.9, "compile": 0.1}, [waits, compiling]), made.compiled(line=88))
    assert found.kind == "data-bound"
    assert found.where is not None
    assert verdict(*made.steady(10, {"data": 0.9}, [waits])).kind is None


def test_a_first_compilation_is_no_steady_state() -> None:
    line = made.line(88, 0.9, "compile", "step")
    events = [made.sampled(0, 5.0, {"compile": 5.0}, [{**line, "seconds": 5.0}]), *loop(count=5)]
    assert verdict(made.compiled(compile_seconds=5.0), *events).kind == "device-bound"
    again = [made.compiled(reason_code="shape", compile_seconds=1.0) for _ in range(5)]
    assert verdict(*again, *events[:1], *events[1:3]).kind == "compile-bound"


def test_a_set_up_that_calls_jaxs_own_functions_with_a_few_shapes_is_not_compile_bound() -> None:
    events = [made.sampled(0, 5.0, {"compile": 5.0}, [made.line(88, 5.0, "compile", "jnp.ones()")]), *loop(count=5)]
    rows = [made.compiled("ones", reason_code="shape", library=True, compile_seconds=1.2) for _ in range(4)]
    assert verdict(*rows, *events).kind == "device-bound"
    rows = [made.compiled("ones", reason_code="shape", library=True, compile_seconds=0.5) for _ in range(10)]
    assert verdict(*rows, *events[:3]).kind == "compile-bound"


def test_few_samples_say_how_long_would_do() -> None:
    lines = [made.line(88, 0.05, "device_busy", "step")]
    found = verdict(made.sampled(0, 0.05, {"device_busy": 0.05}, lines), wall=0.05)
    assert found.kind is None
    assert "too short (5 samples)" in found.reason
    assert found.needs_seconds == pytest.approx(0.3)


def test_timed_iterations_count_where_each_line_goes_to_one_thing() -> None:
    lines = [made.line(88, 0.03, "device_busy", "step"), made.line(95, 0.02, "host_busy", "plt.draw()")]
    timed = made.steps(100, 0.0005, lines={88: 0.6, 95: 0.4})
    short = made.sampled(0, 0.05, {"device_busy": 0.03, "host_busy": 0.02}, lines)
    assert verdict(short, wall=0.05).kind is None
    assert verdict(short, timed, wall=0.05).kind == "device-bound"
    mixed = [made.line(88, 0.03, "device_busy", "step"), made.line(88, 0.02, "host_busy", "plt.draw()")]
    assert (
        verdict(made.sampled(0, 0.05, {"device_busy": 0.03, "host_busy": 0.02}, mixed), timed, wall=0.05).kind is None
    )


def test_two_parts_that_cannot_be_told_apart_are_not() -> None:
    lines = [made.line(88, 0.26, "device_busy", "step"), made.line(30, 0.24, "data", "prepare", under=86)]
    found = verdict(made.sampled(0, 0.5, {"device_busy": 0.26, "data": 0.24}, lines), wall=0.5)
    assert found.kind is None
    assert "cannot be told apart" in found.reason
    assert found.needs_seconds > 0.5


def test_without_a_loop_it_is_of_the_whole_program() -> None:
    line = made.line(12, 1.0, "device_busy", "simulate", loop=None)
    found = verdict(*made.steady(10, {"device_busy": 1.0}, [line]))
    assert (found.kind, found.where) == ("device-bound", None)


def test_where_jax_does_nothing_there_is_none() -> None:
    found = verdict(*made.steady(10, {"host_busy": 1.0}, [made.line(12, 1.0, "host_busy", "np.sort()")]))
    assert (found.kind, found.reason) == (None, "JAX was not seen at work")
    assert verdict().kind is None


@pytest.mark.parametrize(("share", "samples"), [(0.6, 20), (0.0, 5), (1.0, 5), (0.5, 0)])
def test_an_interval_holds_its_share(share: float, samples: float) -> None:
    low, high = interval(share, samples)
    assert 0 <= low <= share <= high <= 1
    wide, narrow = interval(share, samples), interval(share, 100 * samples + 100)
    assert narrow[1] - narrow[0] < wide[1] - wide[0]


def test_twenty_samples_of_sixty_per_cent_are_more_than_a_third() -> None:
    assert interval(0.6, 20)[0] > 0.38


@pytest.mark.parametrize(
    ("single", "each"),
    [
        ([10e-6] * 18 + [900e-6] * 2, 10e-6),  # a busy machine: some wait for a processor
        ([40e-6] * 18 + [50e-3] * 2, (18 * 40e-6 + 2 * 50e-3) / 20),  # most only queue their step, some wait for all
    ],
)
def test_how_long_a_call_is_in_most_passes_is_of_brief_passes_alone(single: list[float], each: float) -> None:
    counted = e.StepsCounted(
        where=e.SourceLocation("/t.py", 3, "f"),
        found_by="tracing",
        count=len(single),
        seconds=sum(single),
        intervals_seconds=single,
        lines=[e.TimedLine(line=4, seconds=sum(single), hits=len(single))],
    )
    assert line_times([counted], ("/t.py", "f", 3)).each(4) == pytest.approx(each)


BRIEF = made.steps(20, 19e-6, lines={88: 1.0})
"""All that was timed of a loop: twenty passes that queued their work."""
SPELL = made.steps(166, 19e-6, lines={88: 0.7, 86: 0.3})
"""The same passes, as many as a spell of timing holds."""


def test_python_around_calls_that_were_too_few_for_the_samples_gives_no_verdict() -> None:
    around = made.line(88, 0.8, "host_busy", "step", kind="call")
    assert verdict(*loop(around, count=1), SPELL).kind == "dispatch-bound"
    found = verdict(*loop(around, count=1), BRIEF)
    assert found.kind is None
    assert found.reason == "its 20 timed iterations cannot account for the sampled time: too few and too short"
    assert found.needs_seconds > 1.0


@pytest.mark.parametrize(
    ("count", "each", "sampled", "accounted"),
    [
        (20, 19e-6, 0.129, False),
        (20, 19e-6, 0.0007, True),  # the timed passes are most of it
        (20, 10e-3, 10.0, True),  # a spell holds three passes as long as these
        (2, 1e-3, 0.5, False),
        (166, 19e-6, 3.0, True),
        (0, 0.0, 3.0, True),  # nothing was timed
    ],
)
def test_timed_passes_are_held_against_samples(count: int, each: float, sampled: float, accounted: bool) -> None:
    counted = [made.steps(count, each, lines={88: 1.0})] if count else []
    assert line_times(counted, (made.at(85).file, "main", 85)).accounts_for(88, sampled) is accounted


def of_two_parts(first: float, samples: float) -> Verdict:
    """A loop of a second: `first` of it is the device's, the rest data, as so many samples saw it."""
    parts = {**dict.fromkeys(PARTS, 0.0), DEVICE: first, DATA: 1 - first}
    none: frozenset[int] = frozenset()
    times = LoopTimes(0, 0.0, {})
    return bound(HotLoop(("f.py", "main", 1), (), times, parts, samples, 9, False, none, none, none))


@pytest.mark.parametrize(("samples", "told"), [(38, False), (41, True)])
def test_two_parts_are_told_apart_from_one_and_a_quarter_standard_errors_of_their_difference_on(
    samples: float, told: bool
) -> None:
    """Of shares p and q of n samples it is the root of (p + q - (p - q)²) / n, as of a multinomial distribution."""
    found = of_two_parts(0.6, samples)
    assert (found.kind == "device-bound") == told
    if not told:
        assert found.reason == "device (60 %) and data (40 %) cannot be told apart"
        assert found.needs_seconds == 2.0, "rounded up"


def test_a_loop_of_one_part_alone_needs_twelve_samples() -> None:
    assert of_two_parts(1.0, 12).kind == "device-bound"
    short = of_two_parts(1.0, 11)
    assert (short.kind, short.reason) == (None, "it was too short (11 samples)")
    assert of_two_parts(1.0, 1).reason == "it was too short (1 sample)"


@pytest.mark.parametrize(("dispatched", "kind"), [(0.45, "host-bound"), (0.55, "dispatch-bound")])
def test_python_beside_single_operations_belongs_to_them_where_they_take_more(dispatched: float, kind: str) -> None:
    lines = [
        made.line(88, dispatched, "host_busy", "jnp.sin()", kind="dispatch"),
        made.line(88, 1 - dispatched, "host_busy", "plt.draw()", kind="host"),
    ]
    found = verdict(*made.steady(50, {"host_busy": 1.0}, lines))
    assert found.kind == kind
    assert found.share == pytest.approx(1.0 if kind == "dispatch-bound" else 0.55)


def test_a_row_of_a_ledger_may_stand_for_any_number_of_compilations() -> None:
    row = e.Compiled(run="r1", function="add", reason_code="shape", library=True, count=1 << 60)
    assert recompilations([row]) == [row], "not within 60 s if they are counted one by one"
