"""Which process of a job is late, and why; for whose device the others wait, on machines that are busy with other
work too; what else is found in a job; and what cannot be said."""

import os
from dataclasses import replace

import numpy as np
import pytest

import program_events as made
from folding import changed
from golden import figures_text, finding_text, held_cases
from jaxprof import events as e
from jaxprof.events.finding import Finding
from jaxprof.facts import recorder
from jaxprof.facts.jobs import COLLECTIVES
from jaxprof.findings.derive import explanation_of_job
from jaxprof.jobs.arrivals import align
from jaxprof.jobs.figures import CAUSES, UNSEEN, USEFUL, ProcessFigures
from jaxprof.jobs.findings import Goodput, recompiles
from jaxprof.jobs.late import clearly_late
from jaxprof.report.explain import explanation_lines
from jaxprof.report.hosts import nothing_found
from job_folders import ALL_REDUCE, captures, job_figures, late_from, loop, recorded, stderr, wavering

LONG = bool(os.environ.get("JAXPROF_LONG"))
SEEDS = 15 if LONG else 3


def of(*inside, **options):
    """A process that did this, and how it ended or where it ran (`recording` of `job_folders`)."""
    return list(inside), options


def figures(processes):
    pairs = [each if isinstance(each, tuple) else of(*each) for each in processes]
    loops, options = zip(*pairs, strict=True)
    return job_figures(recorded(*loops, options=dict(enumerate(options))))


def _named(finding):
    """Code, process, part."""
    index = "" if finding.index is None else f" {finding.index}"
    return f"{finding.code}{index}" + (f" {finding.part}" if finding.part else "")


def captured(count, *inside, **how):
    """Processes of a loop, or of `inside`, each with what it captured."""
    loops = inside or [loop()] * count
    return [[*own, *taken] for own, taken in zip(loops, captures(count, **how), strict=True)]


def waver(count, seconds, late, who, **more):
    """Processes that vary, one of which is late from the first to the second moment by a share."""
    return [wavering(seconds, seed=seed, late=late if seed == who else (0, 0, 0.0), **more) for seed in range(count)]


def raised(index, *, hosts, clock):
    """A process that raises three seconds after the one before it, by a clock that is behind."""
    header = {"wall_seconds": made.HEADER.wall_seconds - index * clock, "host": f"node{index % hosts}"}
    return of(*loop(), *stderr(*TRACEBACK, seconds=5.0 + 3 * index), exit_code=1, header=header)


@pytest.mark.parametrize(
    ("last", "asked"), [("RESOURCE_EXHAUSTED: Out of memory allocating 4096 bytes.", 4096), ("INTERNAL: 4096", None)]
)
def test_a_job_out_of_memory_says_what_was_asked_for(last, asked):
    ended = stderr("Traceback (most recent call last):", f"JaxRuntimeError: {last}", seconds=5.0)
    found = figures([loop(), of(*loop(), *ended, exit_code=1)]).findings[0]
    assert (found.code, found.index, found.bytes, found.held) == ("process_failed", 1, asked, asked is not None)
    assert ("what needs less" in found.fix) == (asked is not None)


def clocked(host, clock):
    """Four processes of two seconds, one of which sleeps in each step, as samples and as the clock see it."""
    usual = changed(loop(2), e.ProgramSampled, device_wait_seconds=0.95)
    return [usual, usual, changed(loop(2, host=host), e.ProgramSampled, device_wait_seconds=1 - clock), usual]


def stepping(seconds, *stops, steps=200):
    """A loop of so many seconds and steps, and pauses: when, for how long, and what found it."""
    seen = [
        e.ProgramStopped(run=made.RUN, began_seconds=made.BEGAN + at, seconds=took, found_by=by)
        for at, took, by in stops
    ]
    counted = [made.iterations(0, [seconds / steps] * steps)] if steps else []
    return [*loop(seconds, data=0.0), *counted, *seen]


def at_clock(gigahertz, *reasons, device="cuda:0", busy=0.9, count=20):
    """A loop, and readings of a device, half a second apart."""
    reading = e.DeviceReading(
        device=device, utilisation=busy, clock_hertz=gigahertz * 1e9, throttle_reasons=list(reasons)
    )
    return [*loop(), *(replace(reading, monotonic_seconds=made.BEGAN + number / 2) for number in range(count))]


def exchanging(**more):
    """A job whose program moves 4 MiB in each step of 10 ms."""
    return [
        of(*loop(), *taken, header={"host": "node0"})
        for taken in captures(4, hlo=ALL_REDUCE, **{"exchange": 4e-3, **more})
    ]


TRACEBACK = ["Traceback (most recent call last):", '  File "train.py", line 3', "ValueError: a damaged shard"]
RESET = ["Traceback (most recent call last):", "jax.errors.JaxRuntimeError: connection reset by peer"]
LOST = ["Traceback (most recent call last):", "jax.errors.JaxRuntimeError: UNKNOWN: Gloo: Connection closed by peer"]
OFTEN = [*loop(), *made.shaped(9, "metric")]
DEAR = [[*loop(), made.compiled("setup", compile_seconds=14.0 + index / 5)] for index in range(4)]
STOP = (5.0, 2.0, "state")
ELSEWHERE = [
    *made.steady(20, {"device_busy": 1.0}, [made.line(188, 1.0, "device_busy", "step", loop=185)]),
    made.compiled("step"),
]
"""A process whose loop is at another line."""
ONE_HOST = {"header": {"host": "one"}}

JOINING = {"inner": e.SourceLocation("/venv/lib/python3.13/site-packages/jax/_src/distributed.py", 150, "initialize")}
IN_COLLECTIVE = {"kind": "sync", "call": "block_until_ready()", "wait": e.SystemWait(state="S", call="futex")}


def hanging(*others, count=4, **first):
    """A job that runs, whose first process stands as `first` says, and the last ones as `others` do; the rest waits in
    a collective."""
    stands = [first, *[IN_COLLECTIVE] * (count - 1 - len(others)), *({**IN_COLLECTIVE, **other} for other in others)]
    return [of(*loop(), made.stands(**each), is_live=True) for each in stands]


def before_steps(**first):
    """The same before any iteration is known."""
    unknown = {"step": None, "usual_seconds": 0.0, "longest_seconds": 0.0}
    return hanging(*[unknown] * 3, **unknown, **first)


def alone(seconds, **others):
    """A job whose first process goes on in a loop of its own, for which the others have waited so long."""
    evaluates = [made.sampled(at, 1.0, {"device_busy": 1.0}, [made.line(64, 1.0, "device_busy")]) for at in range(50)]
    waits = of(*loop(), made.stands(seconds, **{**IN_COLLECTIVE, **others}), is_live=True)
    return [of(*evaluates, is_live=True), *[waits] * 3]


def stopped(seconds):
    """A process that was stopped by a signal so many seconds ago, as the one that records it sees it."""
    now = made.BEGAN + 50
    wait, since = e.SystemWait(state="T"), now - seconds
    seen = e.SilenceSeen(
        run=made.RUN, monotonic_seconds=now, silent_seconds=since + 1, since_seconds=since, step=188, wait=wait
    )
    return of(*loop(), seen, is_live=True)


def first_compile(seconds, *others, waited=30.0):
    """A job whose first process has been in its first compile for so long; the others took as long as `others` say for
    theirs, and wait for it."""
    stage = e.StageRunning(
        run=made.RUN,
        function="score",
        stage="compile",
        began_seconds=made.BEGAN + 4,
        operations=60_000,
        made_by=[e.LineOperations(file=f"{made.FOLDER}/model.py", line=38, name="sort", share=1.0)],
    )
    during = [made.sampled(at, 1.0, {"compile": 1.0}) for at in range(4, 4 + seconds)]
    waits = made.stands(waited, until=4.0 + seconds, step=None, usual_seconds=0.0, longest_seconds=0.0, **IN_COLLECTIVE)
    after = [of(made.compiled("step", compile_seconds=took), waits, is_live=True) for took in others]
    return [of(stage, *during, is_live=True), *after]


def interrupted(ended_seconds):
    """A job that was interrupted at 50 s, whose first process had ended before and waited for the others, which stood
    in a collective."""
    waits = [made.sampled(at, 1.0, {"device_busy": 1.0}) for at in range(20, 50)]
    ends = {"exit_code": 130, "wall": 50.0}
    left = [made.sampled(at, 1.0, {"device_busy": 1.0}) for at in range(20, ended_seconds)]
    return [of(*loop(), *left, **ends), *[of(*loop(), *waits, made.stands(**IN_COLLECTIVE), **ends)] * 3]


FOUND = {
    "one had ended, and the others waited for it": (interrupted(20), "process_standstill 0"),
    "one does not come out of its first compile": (first_compile(60, 1.0, 15.0), "process_standstill 0"),
    "one sleeps, and the others wait in a collective": (hanging(), "process_standstill 0"),
    "one sleeps before its first step": (before_steps(seconds=46.0), "process_standstill 0"),
    "one sleeps, and the others wait until it has joined": (
        [*before_steps(seconds=46.0)[:1], *before_steps(**JOINING, seconds=46.0)[:1] * 3],
        "process_standstill 0",
    ),
    "one sleeps, and the others wait in their first step": (
        [hanging()[0], *before_steps(seconds=46.0)[1:]],
        "process_standstill 0",
    ),
    "one ended with a code, and its peers noticed before": (
        [of(*loop(), *stderr(*LOST, seconds=19.5), exit_code=1), of(*loop(), exit_code=3, wall=22.0)],
        "process_failed 1, failed_after 0",
    ),
    "one is stopped, and the others wait for it": ([stopped(30), *hanging()[1:]], "process_standstill 0"),
    "one has ended well, and the others wait for it": ([of(*loop()), *hanging()[1:]], "process_standstill 0"),
    "one is a step ahead": (hanging({"step": 189}, **IN_COLLECTIVE), "process_standstill 3"),
    "one is in another collective": (hanging({"line": 99}, **IN_COLLECTIVE), "process_standstill 3"),
    "none differs, for a minute": (
        hanging(*[{"seconds": 49.0}] * 3, **IN_COLLECTIVE, seconds=49.0),
        "process_standstill",
    ),
    "one goes on, and the others wait for a minute": (alone(49.0), "process_awaited 0"),
    "one went on, and the others waited, until all were ended": (
        [(inside, {"exit_code": 130, "wall": 50.0}) for inside, _ in alone(49.0)],
        "process_awaited 0",
    ),
    "one of two fetches": ([loop(), loop(data=0.3)], "straggler 1 data"),
    "one of four works on its host": ([loop(), loop(), loop(), loop(host=0.3)], "straggler 3 host"),
    "two of six do not hide each other": (
        [loop(), loop(data=0.3), loop(), loop(host=0.25), loop(), loop()],
        "straggler 1 data, straggler 3 host",
    ),
    "the others do not wait": ([loop(), loop(30, data=0.3), loop()], "straggler 1 data"),
    "a short loop, and the clock agrees": (clocked(0.86, 0.9), "straggler 2 host"),
    "a short loop, half of it": (clocked(0.45, 0.5), "straggler 2 host"),
    "work that samples do not see": (waver(3, 30, (0, 30, 0.3), 1, clock=0.1), "straggler 1 own"),
    "late to the end": (waver(4, 120, (60, 120, 0.3), 2), "straggler 2 data"),
    "late in the middle, by the clock": (waver(4, 120, (30, 80, 0.3), 2, clock=0.1), "straggler 2 own"),
    "late up to its middle": (waver(3, 60, (0, 30, 0.3), 0, clock=0.1), "straggler 0 own"),
    "late for most of ten seconds": (waver(4, 10, (3, 10, 0.5), 1, clock=0.1), "straggler 1 own"),
    "late from soon after the start": ([late_from(at) for at in (99, 7, 99)], "straggler 1 data"),
    "late from very soon after the start": ([late_from(at) for at in (99, 3, 99)], "straggler 1 data"),
    "a process in another loop": ([loop(), loop(data=0.3), loop(), ELSEWHERE], "straggler 1 data"),
    "one of three that was hardly seen": ([loop(), loop(data=0.3), loop(2)], "straggler 1 data"),
    "one compiles again alone": ([loop(), OFTEN, loop()], "recompiles_alone 1 compile"),
    "all compile again": ([OFTEN] * 3, "recompiles compile"),
    "two of three compile again": ([OFTEN, loop(), OFTEN], "recompiles compile"),
    "the exception that came first": (
        [of(*loop(), *stderr(*words), wall=20.0 + at, exit_code=134) for at, words in enumerate(([], [], TRACEBACK))],
        "process_failed 2, failed_after 0",
    ),
    "without an exception the first to end": (
        [of(*loop(), wall=25.0, exit_code=1), of(*loop(), wall=21.0, exit_code=9), loop()],
        "process_failed 1, failed_after 0",
    ),
    "a session that has no end": ([loop(), of(*loop(), wall=None)], "process_failed 1"),
    "a killed process, before its end is known": (
        [
            of(*loop(), exit_code=137),
            *(of(*loop(), *stderr(*RESET, seconds=19.98 + at / 1000), wall=24.0, exit_code=137) for at in (1, 2)),
        ],
        "process_failed 0, failed_after 1",
    ),
    "failures by clocks that are far apart": (
        [raised(at, hosts=2, clock=45.0) for at in range(2)],
        "process_failed 1, failed_after 0",
    ),
    "failures on one host": ([raised(at, hosts=1, clock=45.0) for at in range(2)], "process_failed 1, failed_after 0"),
    "a device, as the host explains nothing": (captured(3, late=1), "slow_device 1 device"),
    "the host explains it by compiling": (captured(3, loop(), OFTEN, loop(), late=1), "recompiles_alone 1 compile"),
    "the host explains it by its input": (captured(3, loop(), loop(data=0.3), loop(), late=1), "straggler 1 data"),
    "the host was not seen for long enough": (captured(3, loop(), loop(2), loop(), late=1), "slow_device 1 device"),
    "one was stopped, and the others waited": ([stepping(20), stepping(18, STOP), stepping(20)], "process_paused 1"),
    "one was stopped, and nobody waited": ([stepping(20), stepping(20, STOP), stepping(20)], "process_paused 1"),
    "one was stopped, and the others went on": (
        [stepping(20, steps=221), stepping(18, STOP), stepping(20, steps=222)],
        "process_paused 1",
    ),
    "one was stopped, and nobody counted the steps": (
        [stepping(20, steps=0), stepping(18, STOP), stepping(20, steps=0)],
        "process_paused 1",
    ),
    "one was stopped twice": ([stepping(20), stepping(17, STOP, (9.0, 1.0, "state"))], "process_paused 1"),
    "all were stopped": ([stepping(18, (5.0, 2.0, "standstill"))] * 4, "process_paused 0"),
    "a device that is held back": (
        [at_clock(1.7), at_clock(1.2, "too hot"), at_clock(1.7), at_clock(1.71)],
        "throttled_device 1 device",
    ),
    "one of two devices of a host": (
        [at_clock(1.7) + at_clock(1.2, "power limit", device="cuda:1")[len(loop()) :]],
        "throttled_device 0 device",
    ),
    "processes of one host name its device once": (
        [of(*at_clock(1.2, "too hot"), **ONE_HOST), of(*at_clock(1.2, "too hot"), **ONE_HOST), at_clock(1.7)],
        "throttled_device 0 device",
    ),
    "an exchange that takes much of the time": (exchanging(), "exposed_exchange"),
    "an exchange of unknown bytes": (captured(3, exchange=4e-3), "exposed_exchange"),
    "waiting for a late process is no exchange": (exchanging(exchange=1e-3, late=1), "slow_device 1 device"),
}
"""Jobs with what is found in them: code, process, part."""
OUTSIDE = made.steady(1, {"device_busy": 1.0}, [made.line(7, 1.0, "device_busy", loop=None)])
"""A second of work that is in no loop."""
NOTHING = {
    "one ended ten seconds before the others were interrupted": interrupted(40),
    "all wait until another has joined": before_steps(**JOINING, seconds=46.0),
    "a first compile that takes half a minute": first_compile(30, 1.0, 1.0, waited=25.0),
    "a first compile that took nearly as long elsewhere": first_compile(60, 1.0, 35.0, waited=25.0),
    "a first compile for which nobody has waited long": first_compile(60, 1.0, 1.0, waited=10.0),
    "a first compile of all": [first_compile(60)[0]] * 3,
    "one sleeps before its first step, for half a minute": before_steps(seconds=30.0),
    "one sleeps before its first step, and nobody waits": [before_steps(seconds=46.0)[0]] * 4,
    "one sleeps, for ten seconds": hanging(seconds=10.0),
    "one is stopped, for ten seconds": [stopped(10), *hanging()[1:]],
    "one writes a checkpoint": hanging(moved_bytes_per_second=1e8),
    "one computes something else": hanging(busy_share=0.9, still_seconds=made.BEGAN + 49),
    "all compute for half a minute": hanging(**IN_COLLECTIVE),
    "one goes on": alone(30.0),
    "one goes on, and a step took the others nearly as long before": alone(49.0, longest_seconds=20.0),
    "two go on, and one waits for a minute": [*alone(49.0)[:1] * 2, alone(49.0)[1]],
    "a small difference": [loop(), loop(data=0.03), loop(data=0.04), loop()],
    "all of them fetch for as long": [loop(data=0.3)] * 4,
    "four windows are too few": [loop(4), loop(4, data=0.3), loop(4)],
    "blocks that vary": [wavering(12, seed=seed, data=0.1 + 0.06 * (seed == 1), noise=0.06) for seed in range(4)],
    "all of them differ": [loop(data=share) for share in (0.02, 0.3, 0.15, 0.45, 0.6)],
    "a short loop, and the clock does not agree": clocked(0.86, 0.05),
    "a short loop, a part of it": clocked(0.3, 0.9),
    "samples that are biased": [wavering(30, seed=at, clock=of_it) for at, of_it in ((1, 0.01), (2, 0.4), (3, 0.02))],
    "what all share": DEAR,
    "what three of four share": [*DEAR[:3], loop()],
    "two processes in different loops": [loop(), ELSEWHERE],
    "one that was hardly seen in the loop": [loop(), loop(2)],
    "no loop, and one without a sample": [OUTSIDE, OUTSIDE, []],
    "a process alone": [loop()],
    "all compile twice again": [[*loop(), *made.shaped(3, "metric")]] * 3,
    "all compile again in next to no time": [[*loop(200), *made.shaped(9, "metric")]] * 3,
    "captures of different steps": [captured(2, late=0, seed=1)[0], captured(2, late=0, seed=2)[1]],
    "captures of few steps": captured(2, late=0, instances=40),
    "a capture of one": [captured(2, late=0)[0], loop()],
    "a clean job": captured(3),
    "a tenth of a second": [stepping(20), stepping(20, (5.0, 0.1, "state"))],
    "a lower clock without a reason": [at_clock(1.7), at_clock(1.2)],
    "a reason, and nearly the same clock": [at_clock(1.7), at_clock(1.6, "power limit")],
    "all are held back alike": [at_clock(1.2, "too hot")] * 2,
    "an idle device": [at_clock(1.7), at_clock(0.3, "too hot", busy=0.0)],
    "too few readings": [at_clock(1.7), at_clock(1.2, "too hot", count=3)],
    "a reason now and then": [
        at_clock(1.7),
        at_clock(1.2, "too hot", count=5) + at_clock(1.2, count=15)[len(loop()) :],
    ],
    "processors": [at_clock(3.0, device="cpu:0"), at_clock(1.0, "too hot", device="cpu:0")],
    "a short exchange": exchanging(exchange=1e-3),
    "an exchange that other kernels hide": exchanging(beside=1.0),
}
"""Jobs that are near to those, in which nothing is found."""


@pytest.fixture(scope="module")
def jobs():
    """The figures of each case."""
    every = {case: processes for case, (processes, _) in FOUND.items()} | NOTHING
    return {case: figures(processes) for case, processes in every.items()}


@pytest.mark.parametrize("case", [*FOUND, *NOTHING])
def test_what_is_found_in_a_job_and_what_is_not(case, jobs):
    expected = FOUND[case][1] if case in FOUND else ""
    assert ", ".join(map(_named, jobs[case].findings)) == expected


def test_what_is_said_of_each(jobs):
    """With what cannot be said."""
    held_cases(
        "findings_of_jobs.txt",
        {
            case: "".join([*map(finding_text, seen.findings), *(f"  ! {each}\n" for each in seen.notices)])
            for case, seen in jobs.items()
            if seen.findings or seen.notices
        },
    )
    assert "All 4 processes: compiling, of the wall time: 71 % to 7" in nothing_found(jobs["what all share"])
    assert "All 4" not in nothing_found(jobs["what three of four share"])
    assert nothing_found(jobs["a clean job"]).endswith("100 executions of all-reduce by who arrives last.")


def test_process_without_a_program_does_not_recompile(jobs):
    *two, last = jobs["all compile again"].processes
    [finding] = recompiles([*two, replace(last, again=None)])
    assert finding.message.startswith("processes 0, 1 compiled metric again 8 times each")


@pytest.mark.parametrize(("unseen", "said"), [(5.0, "stands out. "), (20.0, "stands out in what was seen; 20 % of")])
def test_what_was_not_seen_is_said_beside_that_nobody_stands_out(unseen, said, jobs):
    causes = {**dict.fromkeys(CAUSES, 0.0), USEFUL: 100.0 - unseen, UNSEEN: unseen}
    assert said in nothing_found(replace(jobs["a clean job"], goodput=Goodput(100.0, 4, causes)))


@pytest.mark.parametrize("count", [2, 4])
def test_nobody_is_named_where_seconds_are_like_those_before(count):
    """Samples that fall in step with a program see the same for seconds: blocks are not independent either."""
    for seed in range(0, (20 if LONG else 4) * count, count):
        loops = [wavering(40, noise=0.08, seed=seed + index, alike=0.5, clock=0.1) for index in range(count)]
        assert not figures(loops).findings, seed


def test_since_which_step():
    iterations = made.iterations(7, [0.02] * 3000, name="", began_seconds=made.BEGAN)
    loops = waver(3, 60, (30, 60, 0.3), 0, clock=0.1)
    [finding] = figures([[*inside, iterations] for inside in loops]).findings
    assert finding.since_step == pytest.approx(7 + 50 * finding.since_seconds, abs=30)
    assert f"(step {finding.since_step})" in finding.message


@pytest.mark.parametrize(
    ("skip", "clocks"), [([0, 7], [0.0, 0.002]), ([0, 7, *[3] * 6], [0.0, 0.002, *[0.001] * 6]), ([0, 7], [0.0, 33.0])]
)
def test_a_slow_device_arrives_last_at_the_collectives(skip, clocks):
    """Clocks of hosts may be half a minute apart."""
    seen = figures(captured(len(skip), late=1, skip=skip, clocks=clocks))
    [finding] = seen.findings
    assert _named(finding) == "slow_device 1 device"
    arrivals = seen.arrivals
    late = arrivals.processes[1]
    assert finding.seconds == late.caused_wait_seconds == pytest.approx(93 * 3.5e-3, rel=0.02)
    assert late.clock_offset_seconds == pytest.approx(clocks[1], abs=1e-4)
    assert arrivals.clock_uncertain_seconds < 2e-4
    assert sum(each.last_count for each in arrivals.processes) == late.last_count == arrivals.instances == 93


def test_how_much_of_the_time_an_exchange_takes(jobs):
    cases = [case for case in (*FOUND, *NOTHING) if "exchange" in case]
    record = recorder(COLLECTIVES)
    held_cases("exchanges.txt", {case: figures_text(*map(record, jobs[case].collectives)) for case in cases})
    [one] = jobs["an exchange that takes much of the time"].collectives
    assert one.exposed_share == pytest.approx(0.36, abs=0.03)


def test_job_without_a_finding_leads_to_a_process(jobs):
    exchange = jobs["an exchange that takes much of the time"]
    path = exchange.processes[0].path
    explained = explanation_of_job(replace(exchange, findings=()))
    assert explained.nothing_found == f"no finding about the job; of one process: jaxprof explain {path}"


def test_who_is_late_is_explained_before_what_all_of_them_do(jobs):
    """However much more the exchange takes, of which nobody is named."""
    exchange = jobs["an exchange that takes much of the time"]
    assert not exchange.names_somebody
    late = Finding("late", index=2, part="data", seconds=0.01, code="straggler")
    explained = explanation_of_job(replace(exchange, findings=(*exchange.findings, late)))
    first, second = explained.findings
    assert (first.code, first.index) == ("straggler", 2)
    look = f"jaxprof explain {exchange.processes[2].path}"
    assert (first.verify, second.verify) == (look, ""), "of all processes none is to be looked at"
    text = " ".join(" ".join(explanation_lines(explained)).split())
    assert f"look at: {look}" in text
    assert "verify" not in text, "a recording that is there already shows no change"
    assert second.code == "exposed_exchange"
    assert second.index is None
    assert second.host == ""
    assert second.estimate is True


def test_lateness_takes_a_few_looks_at_each_process(monkeypatch):
    job = figures(clocked(0.86, 0.9))
    looks = []
    shares = ProcessFigures.shares
    monkeypatch.setattr(ProcessFigures, "shares", property(lambda each: looks.append(each) or shares.fget(each)))
    many = [replace(each, index=index) for index, each in enumerate(job.processes * 10)]
    assert len(list(clearly_late(many, ()))) == 10
    assert len(looks) == len(many), "the square of their number would be seconds for a thousand"


def arriving(arrived):
    taken = captures(len(arrived), arrived=arrived, instances=len(arrived[0]), exchange=5e-4)
    return job_figures(recorded(*([*loop(), *each] for each in taken)))


def named(arrived):
    return [finding.index for finding in arriving(arrived).findings]


def busy(rng, count):
    """Each process arrives up to some milliseconds late, now this one, now that one."""
    return [np.minimum(rng.exponential(1.5e-3, 150), 6e-3) for _ in range(count)]


@pytest.mark.parametrize("count", [2, 8])
def test_a_slow_device_on_a_busy_machine(count):
    """It computes 1.5 ms longer in steps of 10 ms. Of many processes another one is last most of the time."""
    found = 0
    for seed in range(SEEDS):
        arrived = busy(np.random.default_rng(seed), count)
        arrived[1] = arrived[1] + 1.5e-3
        job = arriving(arrived)
        assert {finding.index for finding in job.findings} <= {1}
        found += bool(job.findings)
        assert count < 8 or job.arrivals.processes[1].last_count < 75
    assert found >= SEEDS - 1


@pytest.mark.parametrize(("count", "share"), [(2, 0.0), (4, 0.0), (2, 0.2), (4, 0.65)])
def test_a_busy_machine_and_a_burst_of_other_work_name_nobody(count, share):
    """One process is 6 ms late for one stretch of the captured time, in which the others wait for it each time."""
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        arrived = busy(rng, count)
        at = rng.integers(0, round(150 * (1 - share)))
        arrived[0][at : at + round(150 * share)] += 6e-3
        assert not named(arrived)


@pytest.mark.parametrize(
    ("late", "who"),
    [
        ((0.0, 0.0, 0.7e-3), [2]),
        ((0.0, 0.0, 0.4e-3), []),  # too small to matter
        ((0.0, 1e-3, 2e-3, 3e-3), []),  # the others differ by as much
    ],
)
def test_by_how_much_a_device_is_slow(late, who):
    rng = np.random.default_rng(0)
    assert named([rng.normal(2e-3, 1e-4, 150) + more for more in late]) == who


def test_captures_of_one_host_align_by_its_clock():
    """The ends are uncertain by 1 ms, and steps differ by less: their pattern would fit one step later as well."""
    rng = np.random.default_rng(3)
    ends = 0.01 * np.cumsum(1 + 0.02 * rng.standard_normal(120))
    first, other = ends + rng.normal(0, 1e-3, 120), ends[5:] + rng.normal(0, 1e-3, 115)
    assert align(first, other, same_clock=True)[:2] == (-5, pytest.approx(0, abs=5e-4))
    assert align(first, other, same_clock=False) is None


def test_captures_of_one_host_that_share_no_moment_do_not_fit():
    ends = 0.01 * np.arange(1, 101)
    assert align(ends, ends + 20.0, same_clock=True) is None
    assert align(0.001 * np.arange(100), 0.001 * np.arange(100) + 0.5e-3, same_clock=True) is None
