"""The sampler on a clock of its own: every decision about how many samples, of how many calls, for how long."""

import gc
import itertools
import math
import threading
from dataclasses import replace
from statistics import median
from types import SimpleNamespace

import pytest

from engine.measure.heard import of, only
from jaxprof.engine.measure import control, environment, sampling
from jaxprof.engine.measure.control import Cancelled, CapReached, PhaseReport, Reporter, RunControl
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
from jaxprof.events import ProgressMade, SamplesTaken, TurnAwaited
from tables import rows


class World:
    """A clock that costs `tick` to read, calls that take the seconds given, one after the other, and what is heard of
    the series that is sampled in it."""

    def __init__(self, call_seconds, tick=5e-8):
        self.now = 0.0
        self.tick = tick
        self.calls = 0
        self._call_seconds = itertools.repeat(call_seconds) if isinstance(call_seconds, float) else call_seconds
        self.collecting = set()
        self.events = []
        self.control = RunControl()
        self.on_event = str
        self.reporter = Reporter(self._listen, self.control)
        self.sampler = CallSampler(self.reporter, self.clock)
        self.trial = Trial(prepare=lambda calls: calls, make=self.make)

    def _listen(self, event):
        self.events.append(event)
        self.on_event(event)

    def clock(self):
        self.now += self.tick
        return self.now

    def make(self, calls):
        self.collecting.add(gc.isenabled())
        for _ in range(calls):
            self.now += next(self._call_seconds)
            self.calls += 1

    def sample(self, call_seconds, **options):
        values = {"series": "run", "budget_seconds": 2.0, "most_samples": MOST_SAMPLES, "show_progress": True}
        return self.sampler.sample(self.trial, Plan(**{**values, **options}), call_seconds)

    def in_turns(self, call_seconds, *turns, **options):
        """A series that is given these turns, one after the other."""
        for turn in turns:
            self.control.give_turn(turn)
        return self.sample(call_seconds, in_turns=True, **options)

    @property
    def blocks(self):
        return of(self.events, SamplesTaken)

    @property
    def sent(self):
        return [value for event in self.blocks for value in event.seconds]

    @property
    def progress(self):
        return of(self.events, ProgressMade)


def noisy():
    return itertools.cycle([1e-3, 9e-3, 3e-3, 40e-3, 2e-3, 17e-3])


@pytest.mark.parametrize(
    ("call", "cost", "calls"),
    rows("""
        1e-3   1e-7  1
        5e-6   5e-8  1
        4e-6   5e-8  2
        1e-6   5e-8  5
        1e-7   5e-8  50
        1e-12  5e-8  10000
        0      5e-8  10000
        -1e-9  5e-8  10000
    """),
)
def test_the_clock_costs_at_most_one_percent_of_a_sample(call, cost, calls):
    """A call too short to be seen is made as often as can be."""
    assert calls_per_sample(float(call), float(cost)) == int(calls)


def test_overhead_is_a_hundredth_of_a_sample():
    world = World(5e-6)

    def make(calls):
        world.now += 0.97e-6
        world.make(calls)

    trial = Trial(prepare=lambda calls: calls, make=make)
    assert world.sampler._calibrate(trial, Plan(series="run", budget_seconds=2.0)) == 21, "0.97 µs and the clock's 0.05"


@pytest.mark.parametrize(
    ("steps", "cost"), [([3e-8], 3e-8), ([0.0] * 19 + [1e-6], 1e-6), ([1e-8, 2e-8, 9e-8], 2e-8), ([0.0], 0.0)]
)
def test_a_clock_costs_its_reading_or_its_smallest_step(steps, cost):
    """One that goes on every twentieth reading alone cannot tell less than that step. It is measured once."""
    now, readings = 0.0, itertools.count()

    def clock():
        nonlocal now
        at, second = divmod(next(readings), 2)
        now += steps[at % len(steps)] if second else 1.0
        return now

    assert clock_cost_seconds(clock) == pytest.approx(cost, abs=1e-12)
    counted = next(readings)
    clock_cost_seconds(clock)
    assert next(readings) == counted + 1


@pytest.mark.parametrize(("budget", "seconds"), [(2.0, 0.5), (4.0, 1.0), (20.0, 2.0)])
def test_a_steady_call_ends_after_a_quarter_of_the_budget(budget, seconds):
    world = World(1e-2)
    samples = world.sample(1e-2, budget_seconds=budget)
    assert median(samples) == pytest.approx(1e-2, rel=1e-3)
    assert sum(samples) == pytest.approx(seconds, abs=0.15)


def test_a_noisy_call_spends_the_budget_with_progress():
    world = World(noisy())
    samples = world.sample(1e-3)
    assert 1.9 < sum(samples) < 2.4
    assert not precise(samples)
    fractions = [event.fraction for event in world.progress]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    for event in world.progress:
        assert event.remaining_seconds == pytest.approx(max(0.0, 2.0 * (1 - event.fraction)), abs=0.2)
    first = world.progress[0]
    assert first.fraction == pytest.approx(0.06, abs=0.03), "a batch of a tenth of a second, of two"
    assert first.remaining_seconds == pytest.approx(1.88, abs=0.06)
    assert len(World(noisy()).sample(1e-3, most_samples=37)) == 37


def test_a_steady_run_has_at_most_ten_thousand_samples():
    brief = (seconds / 100 for seconds in noisy())
    assert len(World(brief).sample(1e-5, budget_seconds=20.0)) == 10_000


@pytest.mark.parametrize(("calls", "remaining"), [(None, [15, 10, 5]), (4, [60, 40, 20])])
def test_a_call_that_exceeds_the_budget_is_timed_three_times(calls, remaining):
    world = World(5.0)
    assert world.sample(5.0, calls_per_sample=calls) == pytest.approx([5.0] * 3)
    assert world.calls == 3 * (calls or 1), "the call before it was the warm-up"
    assert [(len(event.seconds), event.calls_per_sample) for event in world.blocks] == [(1, calls or 1)] * 3
    assert [event.note.partition(": ")[2] for event in world.progress] == [f"timed call {n} of 3" for n in (1, 2, 3)]
    assert [event.fraction for event in world.progress] == pytest.approx([0, 1 / 3, 2 / 3])
    assert [event.remaining_seconds for event in world.progress] == pytest.approx(remaining)
    world.events.clear()
    world.sample(5.0, show_progress=False)
    assert world.progress == []


def test_samples_are_sent_rounded_and_in_batches():
    world, moments = World(1e-3 / 3), list[float]()
    world.on_event = lambda event: moments.append(world.now) if isinstance(event, SamplesTaken) else None
    samples = world.sample(1e-3 / 3)
    assert world.sent == [round(each, 11) for each in samples]
    assert world.sent != samples
    assert min(after - before for before, after in itertools.pairwise(moments)) >= 0.09


def test_calls_between_samples_spread_them_over_the_budget():
    spans = []
    for budget, wanted in ((1.0, 1.0), (2.0, 2.0), (8.0, 2.0)):
        world, warm_up = World(1e-5, tick=0.0), World(1e-5, tick=0.0)
        assert len(world.sample(1e-5, budget_seconds=budget, most_samples=100, least_share=1.0)) == 100
        warm_up.sample(1e-5, budget_seconds=budget, most_samples=1)
        spans.append(world.now - warm_up.now)
        assert spans[-1] == pytest.approx(wanted, rel=0.25)
    assert spans[1] == pytest.approx(spans[2], rel=0.05)


def test_a_median_is_precise_at_a_hundredth():
    def spread(width):
        return [1 + width * (index - 50) / 50 for index in range(101)]

    assert precise(spread(0.04))
    assert not precise(spread(0.10))
    assert not precise([1.0] * 4), "too few to say"


def test_a_call_under_the_budget_has_three_samples_at_least():
    assert len(World(1.9).sample(1.9)) == 3


def test_the_first_slow_calls_are_warm_up_and_not_samples():
    world = World(itertools.chain((1e-3 + 8e-3 * 0.8**step for step in range(40)), itertools.repeat(1e-3)))
    assert max(world.sample(8e-3)) < 1.1e-3


def test_calibration_and_warm_up_precede_the_samples():
    world = World(1e-3)
    samples = world.sample(1e-3)
    assert world.calls - len(samples) == 5 + 2 * 20, "a slice is 20 ms of calls"


@pytest.mark.parametrize(("budget", "seconds"), [(5.0, 1.0), (20.0, 2.0), (40.0, 2.0)])
def test_warming_up_takes_at_most_a_fifth_of_the_budget(budget, seconds):
    """Each slice is 6 % slower than the one before it: halves never agree."""

    def slower():
        while True:
            yield 1e-5 * math.exp(3 * world.now)

    def begun(event):
        if isinstance(event, SamplesTaken):
            began.append(world.now - sum(event.seconds) * event.calls_per_sample)
            world.control.cancel()

    world, began = World(slower()), list[float]()
    world.on_event = begun
    with pytest.raises(Cancelled):
        world.sample(1e-5, budget_seconds=budget)
    assert began[0] == pytest.approx(seconds, abs=0.15)


@pytest.mark.parametrize(("call_seconds", "warm"), [(0.09, True), (0.11, False)])
def test_a_long_call_is_not_warmed_up_again(call_seconds, warm):
    world = World(call_seconds)
    samples = world.sample(call_seconds)
    assert (world.calls > len(samples)) == warm


def test_with_fixed_calls_every_call_is_timed():
    world = World(1e-4)
    assert len(world.sample(0.2, calls_per_sample=1, most_samples=50)) == 50
    assert world.calls == 50, "a call that takes a tenth of the budget needs no warm-up"


@pytest.mark.parametrize("on", [True, False])
def test_the_collector_is_off_only_while_timing(on):
    world = World(1e-3)
    (gc.enable if on else gc.disable)()
    try:
        assert world.sampler.take(world.trial) > 0
        assert world.collecting == {False}
        assert gc.isenabled() == on
        assert world.calls == 1
    finally:
        gc.enable()


@pytest.mark.parametrize(("call_seconds", "calls"), [(5.0, 1), (1e-3, 400)])
def test_a_cancelled_run_stops_between_batches(call_seconds, calls):
    """Of calls longer than the budget it makes no further one."""
    world = World(call_seconds)
    world.on_event = lambda _: world.control.cancel() if len(world.sent) > 200 or call_seconds > 1 else None
    with pytest.raises(Cancelled):
        world.sample(call_seconds, budget_seconds=2.0 if call_seconds > 1 else 600.0)
    assert world.calls <= calls
    assert len(world.sent) > 200 or call_seconds > 1


def test_a_run_cancelled_in_warm_up_takes_no_sample():
    world = World(1e-3)
    world.control.cancel()
    with pytest.raises(Cancelled):
        world.sample(1e-3)
    assert world.sent == []


@pytest.mark.parametrize(("series", "counted"), [("run", True), ("dispatch", False)])
def test_only_steady_samples_count_for_a_capped_run(series, counted):
    world = World(1e-3)
    samples = world.sample(1e-3, series=series)
    assert world.reporter.samples == (len(samples) if counted else 0)


def turn(block, seconds=0.01, most=1000, **more):
    return TurnRequest(block=block, seconds=seconds, most_samples=most, **more)


def test_each_turn_gives_one_block_with_its_number():
    world = World(1e-3)
    samples = world.in_turns(1e-3, turn(7), turn(9), None)
    assert only(world.events, TurnAwaited).call_seconds == pytest.approx(1e-3, rel=0.01)
    assert [(block.block, block.first_seconds) for block in world.blocks] == [(7, None), (9, None)]
    assert all(9 <= len(block.seconds) <= 11 for block in world.blocks), "ten milliseconds of one"
    assert samples == pytest.approx(world.sent, abs=1e-11)


def test_a_block_begins_after_warm_in_and_keeps_its_first_call():
    world = World(iter([*([1e-3] * 400), 9e-3, 5e-3, 2e-3, *([1e-3] * 100)]))
    world.control.on_wait = lambda begins, **_: begins or [world.make(1) for _ in range(400 - world.calls)]
    samples = world.in_turns(1e-3, turn(1, warm_in_seconds=0.015), None)
    block = only(world.events, SamplesTaken)
    assert block.first_seconds == pytest.approx(9e-3, abs=1e-6)
    assert block.seconds == pytest.approx([1e-3] * len(block.seconds), abs=1e-6)
    assert 9 <= len(samples) <= 11, "ten milliseconds after the warm-in"


def test_blocks_of_other_series_are_no_samples_of_the_run():
    world = World(1e-3)
    samples = world.in_turns(1e-3, replace(turn(1), series="settling"), turn(2), None)
    assert [event.series for event in world.blocks] == ["settling", "run"]
    assert 9 <= len(samples) <= 11


def test_turns_last_from_the_first_to_the_last():
    world = World(1e-3)

    def freeze(event):
        world.now += 5.0 * isinstance(event, SamplesTaken)

    world.on_event = freeze
    assert world.sampler.turns_seconds is None
    world.in_turns(1e-3, turn(1), turn(2), None)
    assert world.sampler.turns_seconds == pytest.approx(5.0 + 2 * 0.010, rel=0.01), "with what others did between them"


def test_page_faults_are_a_usual_calls(monkeypatch):
    """In the third of five turns, the heap grows."""
    world = World(1e-3)
    world.sample(1e-3)  # the warm-up, and another series
    used = SimpleNamespace(ru_minflt=0, ru_utime=0.0, ru_stime=0.0)
    growth = iter([0, 0, 5000, 0, 0])

    def make(calls):
        world.make(calls)
        used.ru_minflt += 20 * calls + (next(growth, 0) if used.ru_minflt % 200 == 0 else 0)
        used.ru_utime += 0.003 * calls
        used.ru_stime += 0.001 * calls

    fake = SimpleNamespace(RUSAGE_SELF=0, getrusage=lambda who: SimpleNamespace(**vars(used)))
    monkeypatch.setattr(sampling, "resource", fake)
    world.trial = Trial(prepare=lambda calls: calls, make=make)
    phase = PhaseReport()
    world.in_turns(1e-3, *map(turn, range(1, 6)), None)
    world.sampler.describe(phase)
    assert (phase.page_faults, phase.kernel_share) == (20, 0.25)


def test_without_a_count_of_the_system_page_faults_are_unknown(monkeypatch):
    monkeypatch.setattr(sampling, "resource", None)
    world, phase = World(1e-3), PhaseReport()
    world.sample(1e-3)
    world.sampler.describe(phase)
    assert (phase.page_faults, phase.kernel_share) == (None, None)


def test_no_spacing_call_consumes_arguments():
    """Each would need arguments of its own."""
    few, many = World(1e-3), World(1e-3)
    for world, seconds in ((few, 0.01), (many, 0.05)):
        world.in_turns(1e-3, turn(1, seconds), None, calls_per_sample=1)
    assert len(many.sent) - len(few.sent) == pytest.approx(40, abs=1)
    assert many.calls - few.calls == len(many.sent) - len(few.sent)


@pytest.mark.parametrize("warm_in", [0.0, 0.002])
@pytest.mark.parametrize(("call", "most", "samples"), [(1e-3, 3, 3), (3.0, 1000, 1), (1e-6, 20, 20)])
def test_a_turn_has_no_more_samples_than_it_may_and_one_at_least(call, most, samples, warm_in):
    world = World(call)
    world.in_turns(call, turn(1, most=most, warm_in_seconds=warm_in), None)
    assert [len(block.seconds) for block in world.blocks] == [samples]


def test_the_samples_of_a_very_short_call_span_their_block():
    world, without = World(1e-6), World(1e-6)
    world.in_turns(1e-6, turn(1, most=20), None)
    without.in_turns(1e-6, None)
    assert world.now - without.now == pytest.approx(0.011, rel=0.3), "a millisecond of settling, then the block"


def test_waiting_for_a_turn_does_not_count_towards_the_cap():
    world, waits = World(1e-3), list[bool]()
    world.control.start_clock(30.0)

    def wait(*, begins, worked_seconds=None):
        waits.append(begins)
        assert world.control.remaining_seconds() is None, "the clock stands still"

    world.control.on_wait = wait
    world.in_turns(1e-3, turn(1), None)
    assert waits == [True, False, True, False]
    assert 0.0 < world.control.remaining_seconds() <= 30.0


def test_a_process_frozen_at_once_counts_no_turns_of_others(monkeypatch):
    """The client freezes it once it has read them: the earliest moment is within the write itself. Two other runs then
    keep two cores busy for five seconds."""
    world = World(1e-3)
    frozen_seconds = 0.0

    def freeze(event):
        nonlocal frozen_seconds
        if isinstance(event, SamplesTaken | TurnAwaited):
            frozen_seconds += 5.0

    def now():
        return world.now + frozen_seconds

    monkeypatch.setattr(environment, "host_load", lambda: (now(), world.now + 2 * frozen_seconds, world.now))
    monkeypatch.setattr(environment, "cores", lambda: 2.0)
    monkeypatch.setattr(environment, "processors", lambda: 2)
    monkeypatch.setattr(control.time, "monotonic", now)
    meter = environment.HostLoadMeter()
    world.on_event, world.control.on_wait = freeze, meter.wait
    world.control.start_clock(1.0)
    world.in_turns(1e-3, *map(turn, range(20)), None)
    assert frozen_seconds == 21 * 5.0
    assert meter.other_busy_cores() == pytest.approx(0.0, abs=1e-3)
    assert world.control.remaining_seconds() == pytest.approx(1.0 - world.now, abs=0.01), "nor towards the hard cap"


def test_a_run_past_its_cap_does_not_wait_for_a_turn_first():
    run, announced = RunControl(), list[str]()
    run.start_clock(-1.0)
    with pytest.raises(CapReached):
        run.next_turn(lambda: announced.append("samples"))
    assert announced == ["samples"], "what was measured counts"
    run.start_clock(None)
    run.check()


def test_a_run_that_is_cancelled_while_it_waits_stops_at_once():
    world = World(1e-3)
    threading.Timer(0.05, world.control.cancel).start()
    with pytest.raises(Cancelled):
        world.in_turns(1e-3, turn(1))
