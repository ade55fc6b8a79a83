"""The sampler on a clock of its own: every decision about how many samples, of how many calls, for how long."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator
from statistics import median

import pytest

from jaxprof.events import Event, ProgressMade, SamplesTaken
from jaxprof.measure.control import Cancelled, CapReached, RunControl
from jaxprof.measure.recorder import Recorder
from jaxprof.measure.sampling import MOST_SAMPLES, Plan, Sampler, Trial, calls_per_sample, precise


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
    sampler = Sampler(Recorder(events.append, RunControl()), world.clock)
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
    notes = [event.note for event in events if isinstance(event, ProgressMade)]
    assert notes[0].startswith("one call takes longer than the budget")


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

    sampler = Sampler(Recorder(listen, RunControl()), world.clock)
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
    sampler = Sampler(Recorder(listen, control), world.clock)
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
