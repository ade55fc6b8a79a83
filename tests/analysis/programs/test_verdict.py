"""What bounds the hot loop of a program, and when that cannot be said."""

from dataclasses import replace

import pytest

import program_events as made
from golden import figures_text, held_cases
from jaxprof import events as e
from jaxprof.analysis.programs import COMPILE, DATA, DEVICE, PARTS
from jaxprof.analysis.programs.loop_time import HotLoop, needs_empty_call, recompilations
from jaxprof.analysis.programs.steps import StepFigures, loops
from jaxprof.analysis.programs.verdict import interval
from jaxprof.analysis.programs.verdict import verdict as bound
from jaxprof.report.conclusion import program_cost
from program_events import inline, loop


def verdict(*inside, wall=10.0):
    return made.result(*inside, wall=wall).verdict


def delayed(events, seconds=0.5):
    """The same on a machine on which the thread waited so long of each second for a processor."""
    return [replace(each, delay_seconds=seconds) if isinstance(each, e.ProgramSampled) else each for each in events]


def preempted(device, host, waited, delay, unseen=0.0):
    """A loop whose thread waited for a processor: so long in the call of a compiled function, and `delay` in all."""
    lines = [
        made.line(88, device, "device_busy", "step"),
        made.line(89, host, "host_busy", "plt.draw()"),
        made.line(88, waited, "waiting", "step", kind="preempted"),
        made.line(88, unseen, "host_busy", kind="unseen"),
    ]
    states = {"device_busy": device, "host_busy": host + unseen, "waiting": waited}
    return delayed(made.steady(40, states, lines), delay)


def kept_waiting(data, delay, unseen=0.0):
    """A loop that makes its data for so long of each second, and waited for a processor meanwhile."""
    lines = [made.line(30, data, "data", "prepare", under=86), made.line(88, unseen, "host_busy", kind="unseen")]
    device = made.line(88, 1 - data - unseen, "device_busy", "step")
    states = {"data": data, "host_busy": unseen, "device_busy": device["seconds"]}
    return delayed(made.steady(40 if unseen else 10, states, [*lines, device]), delay)


def within(inner=0):
    """A loop in whose calls the thread computes them itself; they are in a loop at line `inner` within it, if given."""
    call = made.line(88, 0.6, "device_busy", "step", kind="inline")
    call["at"] = [*([{**call["at"][0], "loop_line": inner}] if inner else []), *call["at"]]
    lines = [call, made.line(86, 0.4, "host_busy", "sort()")]
    return [made.compiled(), *made.steady(10, {"device_busy": 0.6, "host_busy": 0.4}, lines), made.steps(1000, 1e-2)]


def on(platform):
    devices = [{"id": f"{platform}:0", "platform": platform}]
    return e.EnvironmentRead(run=made.RUN, python="3.13", numpy="2", devices=devices)


def calling_back(held, *, callbacks, line=88):
    """A loop at whose call samples found the lock held for so long, and otherwise Python that the function calls; it
    was compiled at `line`."""
    lines = [
        made.line(88, held, "host_busy", kind="call"),
        made.line(88, 1 - held, "host_busy", "step", kind="callback"),
    ]
    return [*made.steady(20, {"host_busy": 1.0}, lines), made.compiled(line=line, callbacks=callbacks)]


def called(each):
    """Iterations as long as that, where an empty call takes 10 µs."""
    return [made.steps(10_000, each), e.EmptyCallTimed(run=made.RUN, seconds=10e-6)]


def waits(each):
    """A loop of iterations as long as that, in each of which a result is waited for."""
    lines = [
        made.line(88, 0.6, "device_busy", "y.block_until_ready()", kind="sync"),
        made.line(87, 0.4, "host_busy", "step", kind="call"),
    ]
    return [*made.steady(10, {"device_busy": 0.6, "host_busy": 0.4}, lines), made.steps(1000, each)]


def beside_operations(dispatched):
    lines = [
        made.line(88, dispatched, "host_busy", "jnp.sin()", kind="dispatch"),
        made.line(88, 1 - dispatched, "host_busy", "plt.draw()", kind="host"),
    ]
    return made.steady(50, {"host_busy": 1.0}, lines)


def short(second, *more):
    """Five samples of a loop, whose line `second` works on the host beside line 88."""
    lines = [made.line(88, 0.03, "device_busy", "step"), made.line(second, 0.02, "host_busy", "plt.draw()")]
    return [made.sampled(0, 0.05, {"device_busy": 0.03, "host_busy": 0.02}, lines), *more]


def set_up(function, of_loop):
    """Five seconds of compiling, and then so many of the loop."""
    first = made.sampled(0, 5.0, {"compile": 5.0}, [made.line(88, 5.0, "compile", function)])
    return [first, *loop(count=5)[:of_loop]]


def shapes(count, took, **more):
    return [made.compiled(reason_code="shape", compile_seconds=took, **more) for _ in range(count)]


ASLEEP = made.line(95, 0.88, "waiting", "asyncio.run()", kind="idle")
SLEEP = made.line(95, 0.88, "waiting", "time.sleep()")
OPERATION = made.line(88, 0.8, "device_busy", "xs[i]", kind="dispatch")
CALL = made.line(88, 0.8, "host_busy", "step", kind="call")
LESS, UNPLACED = {**CALL, "seconds": 0.4}, made.line(95, 0.35, "host_busy", "", kind="unseen")
READINGS = made.line(30, 0.9, "data", "time.sleep()", "readings", under=86)
COMPILING = made.line(88, 0.1, "compile", "step", kind="compile")
TIMED = made.steps(100, 0.0005, lines={88: 0.6, 95: 0.4})
BRIEF = made.steps(20, 19e-6, lines={88: 1.0})
"""All that was timed of a loop: twenty iterations that queued their work."""
SPELL = made.steps(166, 19e-6, lines={88: 0.7, 86: 0.3})
"""The same iterations, as many as a spell of timing holds."""
ONES = {"function": "ones", "library": True}
"""A function of JAX's own, as a set-up calls it with a few shapes."""


def queued(began=0):
    """A loop of which samples saw nothing but its first compilation."""
    return [made.sampled(began, 1.0, {"compile": 1.0}, [COMPILING]), made.compiled(line=88)]


def waited(began, seconds=1.0):
    """A wait for the device at a line outside the loop."""
    after = made.line(101, seconds, "device_busy", "float()", kind="sync", loop=None)
    return made.sampled(began, seconds, {"device_busy": seconds}, [after])


LOOPS = {
    "making data": loop(made.line(30, 0.8, "data", "prepare", under=86)),
    "Python": loop(made.line(95, 0.8, "host_busy", "plt.draw()")),
    "a file or a network": loop(made.line(95, 0.8, "waiting", "stream.write()")),
    "a file that is written for longer than it is waited for": loop(
        made.line(95, 0.5, "host_busy", "stream.write()"), made.line(95, 0.3, "waiting", "stream.write()")
    ),
    "waits that are less than the device's part": loop(
        made.line(95, 0.2, "host_busy", "plt.draw()"), made.line(95, 0.35, "waiting", "stream.write()")
    ),
    "single operations": loop(made.line(40, 0.8, "host_busy", "jnp.sin()", kind="dispatch", under=89)),
    "calls": loop(CALL),
    "fetching": loop(made.line(91, 0.8, "transfer", "jax.device_get()", kind="transfer")),
    "what a call is fed": loop(made.line(88, 0.8, "transfer", "step", kind="fed")),
    "waiting for a value": loop(made.line(91, 0.8, "device_busy", "float()", kind="sync")),
    "reading waits": loop(made.line(91, 0.8, "device_busy", "np.asarray()", kind="read")),
    "reading works": loop(made.line(91, 0.8, "host_busy", "np.asarray()", kind="read")),
    "a server asleep in its event loop": loop(ASLEEP),
    "of the whole program where there is no loop": made.steady(
        10, {"device_busy": 1.0}, [made.line(12, 1.0, "device_busy", "simulate", loop=None)]
    ),
    "what no clock places makes the interval as wide": loop(made.line(88, 0.3, "host_busy", "", kind="unseen")),
    "what no clock places may be most of it": loop(made.line(88, 0.6, "host_busy", "", kind="unseen")),
    "Python at lines without times may have waited for the device": loop(LESS, UNPLACED),
    "at timed lines it is not the device's": [*loop(LESS, UNPLACED), TIMED],
    "a launch is no other Python's": [
        *loop(
            {**CALL, "seconds": 0.3},
            made.line(88, 0.35, "device_busy", "step", kind="inline"),
            made.line(95, 0.35, "host_busy", "log"),
        ),
        made.steps(1000, 30e-6),
    ],
    "where Python may be any other part, it is unknown": [*loop({**LESS, "seconds": 0.3}, UNPLACED), TIMED],
    "it sleeps for a third of the time": loop({**ASLEEP, "seconds": 0.3}),
    "a sleep in every iteration is what an iteration takes": loop(SLEEP),
    "a sleep under a condition is a poll that found nothing": loop(
        {**SLEEP, "at": [{**SLEEP["at"][0], "conditional": True}]}
    ),
    "XLA has the calling thread compute small functions on a CPU": inline(0.98, 0.02, 2e-3),
    "an empty call": inline(0.45, 0.55, 10e-6),
    "a launch, or a computation of so long": inline(0.95, 0.05, 20e-6),
    "an empty call takes nearly as long": inline(0.70, 0.30, 8e-6, empty=7e-6),
    "an empty call is a fifth of it": inline(0.90, 0.10, 30e-6, empty=6e-6),
    "an empty call is half of it": inline(0.90, 0.10, 12e-6, empty=6e-6),
    "what an empty call takes depends on its numbers": inline(0.80, 0.20, 12e-6, leaves=2, empty=11e-6, numbers=1),
    "nothing is known of a number that the empty call lacks": inline(0.80, 0.20, 12e-6, leaves=2, empty=6e-6),
    "timed iterations are too long": inline(0.60, 0.40, 18e-6, empty=6e-6),
    "and their rate says that an empty call is most of one": inline(0.60, 0.40, 18e-6, empty=6e-6, rate=150_000),
    "a server's calls are as many as it makes between its waits": inline(
        0.24, 0.16, 25e-6, empty=8e-6, rate=40_000, idle=0.6
    ),
    "a thread that waits in its calls does not compute them": [
        *inline(0.45, 0.05, 100e-6, empty=6e-6),
        *made.steady(10, {"device_busy": 0.5}, [made.line(88, 0.5, "device_busy", "step")]),
    ],
    "calls in a loop within it are more than its iterations": within(87),
    "calls in the loop itself are as many": within(),
    "one that hardly does computes them": [
        *inline(0.65, 0.05, 100e-6, empty=6e-6),
        *made.steady(10, {"device_busy": 0.3}, [made.line(88, 0.3, "device_busy", "step")]),
    ],
    "waits for a processor may lengthen a launch as much": delayed(inline(0.90, 0.10, 30e-6, empty=6e-6)),
    "a launch is a small part of a computation, delayed or not": delayed(inline(0.60, 0.40, 1e-3)),
    "an empty call has one argument": inline(0.90, 0.10, 30e-6, leaves=5, empty=6e-6),
    "Python at the very call of a compiled function enters it": loop(
        made.line(88, 0.4, "device_busy", "step"), made.line(88, 0.6, "host_busy", "step", kind="host")
    ),
    "Python at another call of that line does not": loop(
        made.line(88, 0.4, "device_busy", "step"), made.line(88, 0.6, "host_busy", "draw", kind="host")
    ),
    "what held the lock was the Python around a call": calling_back(0.9, callbacks=False),
    "what held the lock may be Python that the function calls": calling_back(0.9, callbacks=True),
    "most samples saw the Python that it calls": calling_back(0.3, callbacks=True),
    "the Python around a call cannot be as long as that": [*calling_back(0.9, callbacks=True), *called(2e-3)],
    "nor in a slow machine's, as far as it is known": delayed([*calling_back(0.9, callbacks=True), *called(2e-3)], 0.4),
    "the Python around brief calls can": [*calling_back(0.9, callbacks=True), *called(400e-6)],
    "another function was compiled at that line": [
        *calling_back(0.9, callbacks=True, line=12),
        made.compiled("other", line=88),
    ],
    "waits for a processor are no part": preempted(0.3, 0.1, 0.6, delay=0.6),
    "and what nobody saw stays unknown": preempted(0.3, 0.1, 0.5, delay=0.5, unseen=0.1),
    "Python was kept waiting as well": preempted(0.2, 0.3, 0.5, delay=0.7),
    "the device is on the same processors, and was kept waiting, too": [
        *preempted(0.2, 0.4, 0.4, delay=0.49),
        on("cpu"),
    ],
    "whatever is seen is chance where the thread waited for more than half of the time": [
        *preempted(0.2, 0.4, 0.4, delay=0.51),
        on("cpu"),
    ],
    "unless one part is most of the time however it waited": [*kept_waiting(0.94, 0.6), on("cpu")],
    "what it takes itself may be less than the device": [*kept_waiting(0.8, 0.65), on("cpu")],
    "nor were there fewer waits because nobody saw what the time went to": [
        *kept_waiting(0.8, 0.62, unseen=0.15),
        on("cpu"),
    ],
    "waits in calls may have been the device's": [*preempted(0.05, 0.65, 0.3, delay=0.6), on("cpu")],
    "or a smaller part than what Python takes itself": [*preempted(0.02, 0.83, 0.15, delay=0.6), on("cpu")],
    "clocks of waits that are nearly all of it leave nothing": [*kept_waiting(0.96, 0.95), on("cpu")],
    "nobody sees what other threads of the same processors waited": [
        *preempted(0.95, 0.05, 0.0, delay=0.6),
        on("cpu"),
    ],
    "the thread that computes for the device waited itself": [*delayed(inline(0.95, 0.05, 1e-3), 0.6), on("cpu")],
    "but may compute less than Python takes": [*delayed(inline(0.80, 0.20, 1e-3), 0.6), on("cpu")],
    "a device of its own was not": [*preempted(0.2, 0.3, 0.5, delay=0.7), on("gpu")],
    "Python takes longer however it was kept waiting": preempted(0.05, 0.45, 0.5, delay=0.7),
    "waits for a processor while the program sets up are not the loop's": [
        *delayed([made.sampled(0, 9.0, {"host_busy": 9.0}, [made.line(12, 9.0, "host_busy", "sort()", loop=None)])], 8),
        *preempted(0.2, 0.3, 0.5, delay=0.5),
    ],
    "longer than a launch": inline(0.60, 0.40, 1e-3),
    "launching with so many arguments may take as long": inline(0.60, 0.40, 1e-3, leaves=500),
    "asking for a result, going to sleep and waking up take microseconds": waits(20e-6),
    "brief waits are no part of these": waits(2e-3),
    "waits for a processor do not lengthen what the thread itself does in a wait": delayed(waits(100e-6), 0.3),
    "single operations in which the thread did not run": made.steady(10, {"device_busy": 0.8}, [OPERATION]),
    "single operations that the thread itself dispatches": made.steady(
        10, {"host_busy": 0.8}, [{**OPERATION, "state": "host_busy"}]
    ),
    "a loop is known by what was compiled in it": [
        *made.steady(10, {"data": 0.9, "compile": 0.1}, [READINGS, COMPILING]),
        made.compiled(line=88),
    ],
    "nothing says that it is a loop": made.steady(10, {"data": 0.9}, [READINGS]),
    "a first compilation is no steady state": [made.compiled(compile_seconds=5.0), *set_up("step", 5)],
    "compilations for other shapes are": [*shapes(5, 1.0), *set_up("step", 2)],
    "four shapes are a set-up": [*shapes(4, 1.2, **ONES), *set_up("jnp.ones()", 5)],
    "ten shapes are none": [*shapes(10, 0.5, **ONES), *set_up("jnp.ones()", 2)],
    "five samples are too few": short(95),
    "timed iterations count where each line goes to one thing": short(95, TIMED),
    "a line goes to two": short(88, TIMED),
    "Python beside operations takes more": beside_operations(0.45),
    "Python beside operations belongs to them": beside_operations(0.55),
    "JAX was not seen at work": made.steady(10, {"host_busy": 1.0}, [made.line(12, 1.0, "host_busy", "sort()")]),
    "iterations that account for what samples saw": [*loop(CALL, count=1), SPELL],
    "iterations that are too few and too short for it": [*loop(CALL, count=1), BRIEF],
    "nothing was seen": [],
    "calls that only queued work, and a wait for it after the loop": [*queued(), waited(2)],
    "a wait before the loop": [waited(0), *queued(2)],
    "a wait that is shorter than the loop": [*short(95), waited(2, 0.01)],
    "what was compiled ran too briefly": [made.compiled(line=12)],
}


@pytest.mark.parametrize(
    ("leaves", "numbers", "called"),
    [(1, 0, (1, 0)), (3, 2, (1, 2)), (2, 2, (0, 2)), (900, 0, (256, 0)), (900, 1 << 40, (0, 256))],
)
def test_empty_call_has_the_functions_arguments(leaves, numbers, called):
    row, *events = inline(0.7, 0.3, 8e-6, leaves + 1, numbers=numbers)
    static = replace(row, signature=[*row.signature, made.leaf("n", "3", static=True)], signature_more=leaves - 1)
    assert made.result(static, *events).hot.brief_call == called


@pytest.mark.parametrize(
    ("ran", "each", "empty", "needed"), [(0.7, 8e-6, 0, True), (0.7, 8e-6, 7e-6, True), (0.9, 1e-3, 0, False)]
)
def test_empty_call_is_timed_for_brief_calls(ran, each, empty, needed):
    assert needs_empty_call(made.result(*inline(ran, 1 - ran, each, empty=empty)).hot) is needed


@pytest.mark.parametrize(("callbacks", "held", "needed"), [(True, 0.9, True), (True, 0.1, False), (False, 0.9, False)])
def test_empty_call_is_timed_for_callbacks(callbacks, held, needed):
    events = [*calling_back(held, callbacks=callbacks), made.steps(1000, 2e-3)]
    assert needs_empty_call(made.result(*events).hot) is needed


def test_verdict_with_share_or_reason():
    told = {why: made.result(*events, wall=10.0) for why, events in LOOPS.items()}
    for why, found in ((why, program.verdict) for why, program in told.items()):
        assert bool(found.reason) == (found.kind is None), why
        assert found.kind is None or found.low < found.share <= found.high, why
    rest = {why: {"unknown": of.hot.unknown, "preempted": of.hot.preempted} for why, of in told.items()}
    # Rounded, because sums of floats are compensated from Python 3.12 on.
    parts = {
        why: {name: took for name, took in (of.hot.parts | rest[why]).items() if round(took, 9)}
        for why, of in told.items()
    }
    held_cases("verdicts.txt", {why: figures_text(of.verdict, parts[why]) for why, of in told.items()})


def test_each_argument_may_lengthen_the_python_around_a_call():
    """By 5 µs in each iteration of 2 ms."""
    *events, row = calling_back(0.9, callbacks=True)
    results = [made.result(*events, replace(row, signature_more=count), *called(2e-3)) for count in (0, 100)]
    assert [found.hot.unknown for found in results] == pytest.approx([5.0, 10.0])


def test_a_function_that_was_not_seen_compiled_has_one_argument():
    row, *events = inline(0.6, 0.4, 1e-3)
    assert made.result(*events).hot.unknown == made.result(row, *events).hot.unknown > 0


RATES = {
    "of iterations by their events": [made.steps(50, 1e-3)],
    "spells of brief iterations begin when the thread has a processor": [made.steps(500, 40e-6)],
    "and those by their numbers count": [made.steps(500, 40e-6), made.iterations(0, [3.0], counts=[19_500])],
    "iterations of one second, of four that samples saw": [made.steps(2, 0.01), made.iterations(0, [1.0], counts=[30])],
    "iterations of three seconds": [made.steps(2, 0.01), made.iterations(0, [3.0], counts=[30])],
}


def test_steps_a_second():
    told = {case: figures_text(made.result(*loop(), *timed).steps.per_second) for case, timed in RATES.items()}
    held_cases("rates.txt", told)


@pytest.mark.parametrize(("share", "samples"), [(0.6, 20), (0.0, 5), (1.0, 5), (1.0, 6), (0.5, 0)])
def test_an_interval_holds_its_share(share, samples):
    low, high = interval(share, samples)
    assert 0 <= low <= share <= high <= 1
    wide, narrow = interval(share, samples), interval(share, 100 * samples + 100)
    assert narrow[1] - narrow[0] < wide[1] - wide[0]
    assert interval(0.6, 20)[0] > 0.38, "twenty samples of three fifths are more than a third"


def times_of(*counted):
    return next(iter(loops(counted)), StepFigures(made.at(85)))


@pytest.mark.parametrize(
    ("single", "each"),
    [
        ([10e-6] * 18 + [900e-6] * 2, 10e-6),  # a busy machine: some wait for a processor
        ([40e-6] * 18 + [50e-3] * 2, (18 * 40e-6 + 2 * 50e-3) / 20),  # most only queue their step, some wait for all
    ],
)
def test_typical_call_is_of_brief_iterations(single, each):
    counted = replace(made.steps(len(single), sum(single) / len(single), lines={88: 1.0}), intervals_seconds=single)
    assert times_of(counted).each(88) == pytest.approx(each)


@pytest.mark.parametrize(
    ("count", "each", "sampled", "accounted"),
    [
        (20, 19e-6, 0.129, False),
        (20, 19e-6, 0.0007, True),  # the timed iterations are most of it
        (20, 10e-3, 10.0, True),  # a spell holds three iterations as long as these
        (166, 19e-6, 3.0, True),
        (0, 0.0, 3.0, True),  # nothing was timed
    ],
)
def test_timed_iterations_are_held_against_samples(count, each, sampled, accounted):
    counted = [made.steps(count, each, lines={88: 1.0})] if count else []
    assert times_of(*counted).accounts_for(88, sampled) is accounted


def of_two_parts(first, samples):
    """A loop of a second: `first` of it is the device's, the rest data, as so many samples saw it."""
    parts = {**dict.fromkeys(PARTS, 0.0), DEVICE: first, DATA: 1 - first}
    none = frozenset()
    times = StepFigures(made.at(1))
    return bound(HotLoop(("f.py", "main", 1), (), times, parts, samples, 9, False, none, none))


@pytest.mark.parametrize(("samples", "told"), [(38, False), (41, True)])
def test_parts_differ_by_at_least_their_error(samples, told):
    """Of shares p and q of n samples it is the root of (p + q - (p - q)²) / n, as of a multinomial distribution."""
    found = of_two_parts(0.6, samples)
    assert (found.kind == "device-bound") == told
    if not told:
        assert found.reason == "device (60 %) and data (40 %) cannot be told apart"
        assert found.needs_seconds == 2.0, "rounded up"
        assert found.why_unknown == f"{found.reason}; a recording with 2 s of it is enough"


@pytest.mark.parametrize(("compiling", "seen"), [(0.0, False), (0.2, True)])
def test_a_program_that_compiled_for_a_moment_has_jax_at_work(compiling, seen):
    parts = {**dict.fromkeys(PARTS, 0.0), COMPILE: compiling, DATA: 0.8}
    none = frozenset()
    found = bound(HotLoop(None, (), StepFigures(made.at(1)), parts, 50, 9, False, none, none))
    assert (found.kind, found.reason) == (("data-bound", "") if seen else (None, "JAX was not seen at work"))


def test_a_loop_of_one_part_alone_needs_twelve_samples():
    assert of_two_parts(1.0, 12).kind == "device-bound"
    short = of_two_parts(1.0, 11)
    assert (short.kind, short.reason) == (None, "it was too short (11 samples)")
    assert of_two_parts(1.0, 1).reason == "it was too short (1 sample)"


def test_row_stands_for_many_compilations():
    row = e.Compiled(run="r1", function="add", reason_code="shape", library=True, count=1 << 60)
    assert recompilations([row]) == [row], "not within 60 s if they are counted one by one"


def test_no_empty_call_is_timed_for_calls_that_nobody_counts():
    assert not needs_empty_call(made.result(*within(87)).hot)


def test_what_launching_takes_is_not_called_the_devices_work():
    for each, calls in ((10e-6, True), (1e-3, False)):
        cost, _ = program_cost(made.result(*inline(0.7, 0.3, each, empty=9e-6), wall=10.0))
        assert ("calls of compiled functions" in cost) is calls, cost
        assert ("device busy" in cost) is not calls, cost
    unknown = made.result(*inline(0.7, 0.3, 10e-6)[1:-1], wall=10.0)  # nothing was timed, as on Python 3.11
    assert (unknown.spent["device_busy"], unknown.spent["calls"]) == (0.0, pytest.approx(7.0))


@pytest.mark.parametrize(
    ("began", "took", "kind", "words"),
    [
        (-5.0, 5.0, "host", "before the loop (most in load(), train.py:12) 5.0 s"),
        (20.0, 5.0, "host", "outside the loop (most in load(), train.py:12) 5.0 s"),
        (-0.5, 0.5, "host", ""),  # three others take more
        (-5.0, 5.0, "idle", ""),  # a server waits for its first request
    ],
)
def test_cost_outside_the_loop_has_its_line(began, took, kind, words):
    lines = [
        made.line(12, 0.8 * took, "host_busy", "sort()", "load", kind=kind, loop=None),
        made.line(20, 0.2 * took, "waiting", "read()", "parse", kind=kind, loop=None),
    ]
    outside = made.sampled(began, took, {"host_busy": 0.8 * took, "waiting": 0.2 * took}, lines)
    inside = loop(made.line(89, 0.3, "host_busy", "log"), made.line(86, 0.2, "data", "next()"))
    events = sorted([outside, *inside], key=lambda event: event.began_seconds)
    cost, _ = program_cost(made.result(*events, wall=10.0 + took))
    assert words in cost
    assert ("the loop (" in cost) is bool(words), cost


@pytest.mark.parametrize(
    ("wall", "notes", "words"),
    [
        (15.0, [], "after its last line 5.0 s (33 %)"),
        (15.0, [{"code": "pipe_full", "lost": 3}], "after its last line 5.0 s (33 %)"),
        (15.0, [{"code": "not_unwound", "by_signal": True}], "the rest 5.0 s (33 %)"),
        (10.02, [], "of 10.0 s"),
        (None, [], "of 10.0 s"),  # it runs
    ],
)
def test_time_after_the_last_line_is_a_cost(wall, notes, words):
    notes = [e.Note(**note) for note in notes]
    cost, _ = program_cost(made.result(*loop(made.line(89, 0.3, "host_busy", "log")), wall=wall, notes=notes))
    assert words in cost
    assert ("last line" in cost) is ("last line" in words)


def test_what_no_clock_or_sample_attributes_is_apart():
    unseen = made.line(88, 0.6, "host_busy", kind="unseen")
    delayed = made.line(88, 0.1, "waiting", "step", kind="preempted")
    works = made.line(90, 0.1, "host_busy", "plt.draw()")
    states = {"host_busy": 0.7, "waiting": 0.1, "device_busy": 0.2}
    spent = made.result(*made.steady(10, states, [unseen, delayed, works])).spent
    assert [spent[state] for state in ("unattributed", "host_busy")] == pytest.approx([6.0, 1.0])
    assert [spent[state] for state in ("processor_wait", "waiting")] == pytest.approx([1.0, 0.0])


@pytest.mark.parametrize(
    ("lines", "beside", "host"),
    [({95: 0.8, 88: 0.2}, [], 8.0), ({}, [], 4.0), ({95: 0.8}, [made.line(95, 0.1, "device_busy", "step")], 4.0)],
    ids=["a timed line", "no timed lines", "JAX at the line"],
)
def test_unseen_python_is_the_hosts_below_a_timed_line(lines, beside, host):
    seen = [made.line(95, 0.4, "host_busy", "json.dumps()"), made.line(95, 0.4, "host_busy", "", kind="unseen")]
    result = made.result(*made.loop(*seen, *beside), made.steps(1000, 0.01, lines=lines))
    assert result.hot.parts["host"] == pytest.approx(host, rel=0.05)
    assert result.spent["unattributed"] == pytest.approx(8.0 - host, abs=0.1)
