"""The sampler on a clock of its own: every decision about how many samples, of how many calls, for how long."""

from __future__ import annotations

import gc
import itertools
import math
import threading
from collections.abc import Iterator
from dataclasses import replace
from statistics import median

import pytest

from jaxprof.engine.measure.control import Cancelled, CapReached, Reporter, RunControl
from jaxprof.engine.measure.sampling import (
    MOST_SAMPLES,
    CallSampler,
    Plan,
    Trial,
    calls_per_sample,
    clock_cost_seconds,
    precise,
)
from jaxprof.engine.protocol.request import TurnRequest
from jaxprof.events import Event, ProgressMade, SamplesTaken, TurnAwaited


class World:
    """A clock that costs `tick` to read, and calls that take the seconds given, one after the other."""

    def __init__(self, call_seconds: Iterator[float], tick: float = 5e-8) -> None:
        self.now = 0.0
        self.tick = tick
        self.calls = 0
        self._call_seconds = call_seconds
        self.collecting: set[bool] = set()

    def clock(self) -> float:
        self.now += self.tick
        return self.now

    def make(self, calls: int) -> None:
        self.collecting.add(gc.isenabled())
        for _ in range(calls):
            self.now += next(self._call_seconds)
            self.calls += 1

    def trial(self) -> Trial:
        return Trial(prepare=lambda calls: calls, make=self.make)


def sample(world: World, call_seconds: float, **options: float) -> tuple[list[float], list[Event]]:
    events: list[Event] = []
    sampler = CallSampler(Reporter(events.append, RunControl()), world.clock)
    values = {"series": "run", "budget_seconds": 2.0, "most_samples": MOST_SAMPLES, "show_progress": True, **options}
    return sampler.sample(world.trial(), Plan(**values), call_seconds), events  # type: ignore[arg-type]


def sent(events: list[Event]) -> list[float]:
    return [value for event in events if isinstance(event, SamplesTaken) for value in event.seconds]


@pytest.mark.parametrize(
    ("call", "cost", "calls"), [(1e-3, 1e-7, 1), (5e-6, 5e-8, 1), (4e-6, 5e-8, 2), (1e-6, 5e-8, 5), (1e-7, 5e-8, 50)]
)
def test_the_clock_costs_at_most_one_percent_of_a_sample(call: float, cost: float, calls: int) -> None:
    assert calls_per_sample(call, cost) == calls
    assert cost <= 0.01 * call * calls * 1.0000001


def test_a_call_too_short_to_be_seen_is_made_as_often_as_can_be() -> None:
    assert calls_per_sample(0.0, 5e-8) == calls_per_sample(-1e-9, 5e-8) == calls_per_sample(1e-12, 5e-8) == 10_000


@pytest.mark.parametrize(
    ("steps", "cost"), [([3e-8], 3e-8), ([0.0] * 19 + [1e-6], 1e-6), ([1e-8, 2e-8, 9e-8], 2e-8), ([0.0], 0.0)]
)
def test_a_clock_costs_its_reading_or_its_smallest_step(steps: list[float], cost: float) -> None:
    """One that goes on every twentieth reading alone cannot tell less than that step."""
    now, readings = 0.0, itertools.count()

    def clock() -> float:
        nonlocal now
        at, second = divmod(next(readings), 2)
        now += steps[at % len(steps)] if second else 1.0
        return now

    assert clock_cost_seconds(clock) == pytest.approx(cost, abs=1e-12)


def test_what_a_clock_costs_is_measured_once() -> None:
    readings: list[int] = []

    def clock() -> float:
        readings.append(1)
        return float(len(readings))

    clock_cost_seconds(clock)
    counted = len(readings)
    clock_cost_seconds(clock)
    assert len(readings) == counted


def test_a_steady_call_is_sampled_for_the_least_time_and_no_longer() -> None:
    world = World(itertools.repeat(1e-3))
    samples, events = sample(world, 1e-3)
    assert median(samples) == pytest.approx(1e-3, rel=1e-3)
    assert sum(samples) == pytest.approx(0.5, rel=0.3), "a quarter of the budget"
    assert sent(events) == pytest.approx(samples, abs=1e-11)


def test_a_noisy_call_is_sampled_until_the_budget_is_spent() -> None:
    world = World(itertools.cycle([1e-3, 9e-3, 3e-3, 40e-3, 2e-3, 17e-3]))
    samples, events = sample(world, 1e-3)
    assert 1.9 < sum(samples) < 2.4
    assert not precise(samples)
    progress = [event.fraction for event in events if isinstance(event, ProgressMade)]
    assert progress == sorted(progress)  # type: ignore[type-var]
    assert progress[-1] == 1.0


def test_a_very_short_call_is_spread_over_time_without_flooding_the_log() -> None:
    world = World(itertools.repeat(1e-6))
    samples, events = sample(world, 1e-6)
    assert len(samples) <= MOST_SAMPLES
    assert world.calls > 5 * len(samples) * 5, "calls that are not timed lie between"
    assert {event.calls_per_sample for event in events if isinstance(event, SamplesTaken)} != {1}


def test_a_call_that_exceeds_the_budget_is_timed_three_times() -> None:
    world = World(itertools.repeat(5.0))
    samples, events = sample(world, 5.0)
    assert samples == pytest.approx([5.0] * 3)
    assert world.calls == 3, "the call before it was the warm-up"
    assert len([event for event in events if isinstance(event, SamplesTaken)]) == 3, "each is sent as it comes"
    progress = [event for event in events if isinstance(event, ProgressMade)]
    assert [event.note.partition(": ")[2] for event in progress] == [f"timed call {n} of 3" for n in (1, 2, 3)]
    assert [event.fraction for event in progress] == pytest.approx([0, 1 / 3, 2 / 3])
    assert [event.remaining_seconds for event in progress] == pytest.approx([15, 10, 5])
    assert progress[0].note.startswith("one call takes longer than the budget")


def test_a_long_sample_of_several_calls_is_as_long_as_all_of_them() -> None:
    samples, events = sample(World(itertools.repeat(5.0)), 5.0, calls_per_sample=4)
    assert samples == pytest.approx([5.0] * 3)
    progress = [event.remaining_seconds for event in events if isinstance(event, ProgressMade)]
    assert progress == pytest.approx([60, 40, 20])
    assert {event.calls_per_sample for event in events if isinstance(event, SamplesTaken)} == {4}
    silent = sample(World(itertools.repeat(5.0)), 5.0, show_progress=False)[1]
    assert not [event for event in silent if isinstance(event, ProgressMade)]


def test_a_cancelled_run_makes_no_further_long_call() -> None:
    control = RunControl()
    world = World(itertools.repeat(5.0))
    sampler = CallSampler(Reporter(lambda event: control.cancel(), control), world.clock)
    with pytest.raises(Cancelled):
        sampler.sample(world.trial(), Plan(series="run", budget_seconds=2.0), 5.0)
    assert world.calls == 1


def test_progress_says_how_much_of_the_budget_is_left() -> None:
    world = World(itertools.cycle([1e-3, 9e-3, 3e-3, 40e-3, 2e-3, 17e-3]))
    _, events = sample(world, 1e-3)
    for event in (event for event in events if isinstance(event, ProgressMade)):
        assert event.remaining_seconds == pytest.approx(max(0.0, 2.0 * (1 - event.fraction)), abs=0.2)  # type: ignore[operator]
    first = next(event for event in events if isinstance(event, ProgressMade))
    assert first.fraction == pytest.approx(0.06, abs=0.03), "a batch of a tenth of a second, of two"
    assert first.remaining_seconds == pytest.approx(1.88, abs=0.06)


def test_samples_are_sent_to_a_hundredth_of_a_nanosecond() -> None:
    samples, events = sample(World(itertools.repeat(1e-3 / 3)), 1e-3 / 3)
    assert sent(events) == [round(each, 11) for each in samples]
    assert sent(events) != samples


def test_a_series_stops_at_the_samples_that_it_may_have() -> None:
    noisy = itertools.cycle([1e-3, 9e-3, 3e-3, 40e-3, 2e-3, 17e-3])
    assert len(sample(World(noisy), 1e-3, most_samples=37)[0]) == 37


def test_the_calls_between_samples_spread_them_over_two_seconds_or_the_budget() -> None:
    spans = []
    for budget, wanted in ((1.0, 1.0), (2.0, 2.0), (8.0, 2.0)):
        world = World(itertools.repeat(1e-5), tick=0.0)
        samples, _ = sample(world, 1e-5, budget_seconds=budget, most_samples=100, least_share=1.0)
        assert len(samples) == 100
        warm_up = World(itertools.repeat(1e-5), tick=0.0)
        sample(warm_up, 1e-5, budget_seconds=budget, most_samples=1)
        spans.append(world.now - warm_up.now)
        assert spans[-1] == pytest.approx(wanted, rel=0.25)
    assert spans[1] == pytest.approx(spans[2], rel=0.05)


def test_a_median_is_precise_once_half_its_interval_is_a_hundredth_of_it() -> None:
    def spread(width: float) -> list[float]:
        return [1 + width * (index - 50) / 50 for index in range(101)]

    assert precise(spread(0.04))
    assert not precise(spread(0.10))
    assert not precise([1.0] * 4), "too few to say"


def test_a_call_under_the_budget_has_three_samples_at_least() -> None:
    samples, _ = sample(World(itertools.repeat(1.9)), 1.9)
    assert len(samples) == 3


def test_the_first_slow_calls_are_warm_up_and_not_samples() -> None:
    world = World(itertools.chain((1e-3 + 8e-3 * 0.8**step for step in range(40)), itertools.repeat(1e-3)))
    samples, _ = sample(world, 8e-3)
    assert max(samples) < 1.1e-3


def test_warming_up_ends_also_where_halves_never_agree() -> None:
    def growing() -> Iterator[float]:
        value = 1e-4
        while True:
            yield value
            value *= 1.0005

    world = World(growing())
    samples, _ = sample(world, 1e-4, budget_seconds=1.0)
    assert samples
    assert world.now < 3


def test_batches_are_sent_a_tenth_of_a_second_apart() -> None:
    world = World(itertools.repeat(1e-3))
    moments: list[float] = []

    def listen(event: Event) -> None:
        if isinstance(event, SamplesTaken):
            moments.append(world.now)

    sampler = CallSampler(Reporter(listen, RunControl()), world.clock)
    sampler.sample(world.trial(), Plan(series="run", budget_seconds=2.0), 1e-3)
    assert min(after - before for before, after in itertools.pairwise(moments)) >= 0.09


def test_the_garbage_collector_is_off_while_timing_and_on_again_afterwards() -> None:
    world = World(itertools.repeat(1e-3))
    assert gc.isenabled()
    sample(world, 1e-3)
    assert world.collecting == {False}
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        sample(World(itertools.repeat(1e-3)), 1e-3)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_cancelled_run_stops_between_batches_and_has_sent_what_it_had() -> None:
    control, events = RunControl(), []  # type: ignore[var-annotated]

    def listen(event: Event) -> None:
        events.append(event)
        if len(sent(events)) > 200:
            control.cancel()

    world = World(itertools.repeat(1e-3))
    sampler = CallSampler(Reporter(listen, control), world.clock)
    with pytest.raises(Cancelled):
        sampler.sample(world.trial(), Plan(series="run", budget_seconds=600.0), 1e-3)
    assert 200 < len(sent(events)) < 400


def test_the_hard_cap_ends_a_run_that_is_not_cancelled() -> None:
    control = RunControl()
    control.start_clock(-1.0)
    with pytest.raises(CapReached):
        control.check()
    control.stop_clock()
    control.check()


def in_turns(
    world: World,
    call_seconds: float,
    turns: list[TurnRequest | None],
    control: RunControl | None = None,
    calls_per_sample: int | None = None,
) -> tuple[list[float], list[Event]]:
    """A series that is given these turns, one after the other."""
    events: list[Event] = []
    control = control or RunControl()
    for turn in turns:
        control.give_turn(turn)
    sampler = CallSampler(Reporter(events.append, control), world.clock)
    plan = Plan(
        series="run", budget_seconds=2.0, most_samples=MOST_SAMPLES, in_turns=True, calls_per_sample=calls_per_sample
    )
    return sampler.sample(world.trial(), plan, call_seconds), events


def turn(block: int, seconds: float = 0.01, most: int = 1000) -> TurnRequest:
    return TurnRequest(block=block, seconds=seconds, most_samples=most)


def test_each_turn_gives_one_block_with_its_number() -> None:
    world = World(itertools.repeat(1e-3))
    samples, events = in_turns(world, 1e-3, [turn(7), turn(9), None])
    awaited = [event for event in events if isinstance(event, TurnAwaited)]
    blocks = [event for event in events if isinstance(event, SamplesTaken)]
    assert [event.call_seconds for event in awaited] == [pytest.approx(1e-3, rel=0.01)]
    assert [block.block for block in blocks] == [7, 9]
    assert all(9 <= len(block.seconds) <= 11 for block in blocks), "ten milliseconds of one"
    assert samples == pytest.approx([second for block in blocks for second in block.seconds], abs=1e-11)


def test_a_block_counts_from_the_end_of_its_warm_in_and_keeps_its_first_call() -> None:
    falling = [9e-3, 5e-3, 2e-3, *([1e-3] * 100)]
    world = World(iter([*([1e-3] * 400), *falling]))
    control, events = RunControl(), list[Event]()
    sampler = CallSampler(Reporter(events.append, control), world.clock)

    def trial_from_here() -> None:
        while world.calls < 400:
            world.trial().make(world.trial().prepare(1))

    control.give_turn(replace(turn(1), warm_in_seconds=0.015))
    control.give_turn(None)
    control.on_wait = lambda *, begins: None if begins else trial_from_here()
    samples = sampler.sample(world.trial(), Plan(series="run", budget_seconds=2.0, in_turns=True), 1e-3)
    (block,) = [event for event in events if isinstance(event, SamplesTaken)]
    assert block.first_seconds == pytest.approx(9e-3, abs=1e-6)
    assert block.seconds == pytest.approx([1e-3] * len(block.seconds), abs=1e-6)
    assert 9 <= len(samples) <= 11, "ten milliseconds after the warm-in"


def test_a_block_without_a_warm_in_counts_from_its_first_call() -> None:
    _, events = in_turns(World(itertools.repeat(1e-3)), 1e-3, [turn(1), None])
    (block,) = [event for event in events if isinstance(event, SamplesTaken)]
    assert block.first_seconds is None
    assert len(block.seconds) >= 9


def test_blocks_of_other_series_are_no_samples_of_the_run() -> None:
    whole = replace(turn(1), series="settling")
    samples, events = in_turns(World(itertools.repeat(1e-3)), 1e-3, [whole, turn(2), None])
    assert [event.series for event in events if isinstance(event, SamplesTaken)] == ["settling", "run"]
    assert 9 <= len(samples) <= 11


def test_the_turns_last_from_the_begin_of_the_first_to_the_end_of_the_last() -> None:
    world, control = World(itertools.repeat(1e-3)), RunControl()
    sampler = CallSampler(Reporter(lambda event: None, control), world.clock)
    plan = Plan(series="run", budget_seconds=2.0, in_turns=True)

    def others(*, begins: bool) -> None:
        world.now += 5.0 * (not begins)

    for given in (turn(1), turn(2), None):
        control.give_turn(given)
    control.on_wait = others
    assert sampler.turns_seconds is None
    sampler.sample(world.trial(), plan, 1e-3)
    assert sampler.turns_seconds == pytest.approx(5.0 + 2 * 0.010, rel=0.01), "what others did between them included"


def test_between_calls_that_consume_their_arguments_no_further_one_is_made() -> None:
    """Each would need arguments of its own."""

    def calls_and_samples(seconds: float) -> tuple[int, int]:
        world = World(itertools.repeat(1e-3))
        samples, _ = in_turns(world, 1e-3, [turn(1, seconds), None], calls_per_sample=1)
        return world.calls, len(samples)

    (few_calls, few), (many_calls, many) = calls_and_samples(0.01), calls_and_samples(0.05)
    assert many - few == pytest.approx(40, abs=1)
    assert many_calls - few_calls == many - few


def test_of_a_series_with_a_fixed_number_of_calls_every_call_is_timed() -> None:
    world = World(itertools.repeat(1e-4))
    samples, _ = sample(world, 0.2, calls_per_sample=1, most_samples=50)
    assert world.calls == len(samples) == 50, "a call that takes a tenth of the budget needs no warm-up"


@pytest.mark.parametrize(("call_seconds", "warm"), [(0.09, True), (0.11, False)])
def test_a_call_of_more_than_a_twentieth_of_the_budget_is_not_warmed_up_again(call_seconds: float, warm: bool) -> None:
    world = World(itertools.repeat(call_seconds))
    samples, _ = sample(world, call_seconds)
    assert (world.calls > len(samples)) == warm


def test_before_the_first_sample_come_five_calls_to_calibrate_and_two_slices_that_agree() -> None:
    world = World(itertools.repeat(1e-3))
    samples, _ = sample(world, 1e-3)
    assert world.calls - len(samples) == 5 + 2 * 20, "a slice is 20 ms of calls"


@pytest.mark.parametrize(("budget", "seconds"), [(5.0, 1.0), (20.0, 2.0), (40.0, 2.0)])
def test_warming_up_may_take_a_fifth_of_the_budget_and_two_seconds_at_most(budget: float, seconds: float) -> None:
    """Each slice is 6 % slower than the one before it."""

    def slower() -> Iterator[float]:
        while True:
            yield 1e-5 * math.exp(3 * world.now)

    world = World(slower())
    began: list[float] = []

    def listen(event: Event) -> None:
        if isinstance(event, SamplesTaken):
            began.append(world.now - sum(event.seconds) * event.calls_per_sample)
            control.cancel()

    control = RunControl()
    with pytest.raises(Cancelled):
        CallSampler(Reporter(listen, control), world.clock).sample(
            world.trial(), Plan(series="run", budget_seconds=budget), 1e-5
        )
    assert began[0] == pytest.approx(seconds, abs=0.15)


@pytest.mark.parametrize(("budget", "seconds"), [(4.0, 1.0), (20.0, 2.0)])
def test_a_steady_call_is_sampled_for_a_quarter_of_the_budget_and_two_seconds_at_most(
    budget: float, seconds: float
) -> None:
    samples, _ = sample(World(itertools.repeat(1e-2)), 1e-2, budget_seconds=budget)
    assert sum(samples) == pytest.approx(seconds, abs=0.15)


def test_a_turn_has_no_more_samples_than_it_may() -> None:
    _, events = in_turns(World(itertools.repeat(1e-3)), 1e-3, [turn(1, most=3), None])
    (block,) = [event for event in events if isinstance(event, SamplesTaken)]
    assert len(block.seconds) == 3


def test_a_call_longer_than_its_block_is_one_block() -> None:
    _, events = in_turns(World(itertools.repeat(3.0)), 3.0, [turn(1), turn(2), None])
    assert [len(event.seconds) for event in events if isinstance(event, SamplesTaken)] == [1, 1]


def test_the_samples_of_a_very_short_call_span_their_block() -> None:
    world = World(itertools.repeat(1e-6))
    _, events = in_turns(world, 1e-6, [turn(1, most=20), None])
    (block,) = [event for event in events if isinstance(event, SamplesTaken)]
    assert len(block.seconds) == 20
    with_one_turn = world.now
    in_turns(world, 1e-6, [None])
    without = world.now - with_one_turn
    assert with_one_turn - without == pytest.approx(0.011, rel=0.3), "a millisecond of settling, then the block"


def test_waiting_for_a_turn_does_not_count_towards_the_cap() -> None:
    control = RunControl()
    control.start_clock(30.0)
    waits: list[bool] = []

    def wait(*, begins: bool) -> None:
        waits.append(begins)
        assert control.remaining_seconds() is None, "the clock stands still"

    control.on_wait = wait
    in_turns(World(itertools.repeat(1e-3)), 1e-3, [turn(1), None], control)
    assert waits == [True, False, True, False]
    remaining = control.remaining_seconds()
    assert remaining is not None
    assert 29.0 < remaining <= 30.0


def test_a_run_past_its_cap_does_not_wait_for_a_turn_first() -> None:
    control = RunControl()
    waits: list[bool] = []
    control.on_wait = lambda *, begins: waits.append(begins)
    control.give_turn(turn(1))
    control.start_clock(-1.0)
    with pytest.raises(CapReached):
        control.next_turn()
    assert waits == []


def test_a_run_that_is_cancelled_while_it_waits_stops_at_once() -> None:
    control = RunControl()
    threading.Timer(0.05, control.cancel).start()
    with pytest.raises(Cancelled):
        in_turns(World(itertools.repeat(1e-3)), 1e-3, [turn(1)], control)


@pytest.mark.parametrize(("series", "counted"), [("run", True), ("dispatch", False)])
def test_only_samples_of_the_steady_run_give_a_capped_run_its_result(series: str, counted: bool) -> None:
    reporter, world = Reporter(lambda event: None, RunControl()), World(itertools.repeat(1e-3))
    samples = CallSampler(reporter, world.clock).sample(world.trial(), Plan(series=series, budget_seconds=2.0), 1e-3)
    assert reporter.samples == (len(samples) if counted else 0)


def test_one_sample_is_one_call() -> None:
    world = World(itertools.repeat(1e-3))
    assert CallSampler(Reporter(lambda event: None, RunControl()), world.clock).take(world.trial()) > 0
    assert world.calls == 1


def test_a_run_that_is_cancelled_while_it_warms_up_takes_no_sample() -> None:
    control, events = RunControl(), []  # type: ignore[var-annotated]
    control.cancel()
    world = World(itertools.repeat(1e-3))
    with pytest.raises(Cancelled):
        CallSampler(Reporter(events.append, control), world.clock).sample(
            world.trial(), Plan(series="run", budget_seconds=2.0), 1e-3
        )
    assert sent(events) == []
