"""Runs in turns: scripted engines on real pipes, and what their session says of who ran when. When launches end: by
width or by time, never by a verdict."""

import itertools
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from jaxprof import events as e
from jaxprof.analysis.runs import speedup
from jaxprof.devices.inventory.placement import WorkerEnvironment
from jaxprof.runner import turns
from jaxprof.runner.planning import PlannedRun
from jaxprof.runner.turns import LEAST_TURNS_SECONDS, LaunchRule
from jaxprof.session import Session, new_header
from jaxprof.stats.comparison import compare, narrow_enough
from jaxprof.stats.turns import PROBES
from runner.engines import PREAMBLE
from runner.stage import Stage, plan

ENGINE = (
    PREAMBLE
    + """
variant, launch = request["spec"]["variant"], request["launch"]
say("phase_started", phase="compile")
say("phase_ended", phase="compile", seconds=0.25)
if variant == "greedy" and request["spec"]["seed"] == 0:
    others = [line for line in open(os.environ["ALIVE"]).read().split() if line]
    if others:
        say("run_finished", status="failed", error="not run: too large", out_of_memory=True)
        control.readline()
        sys.exit()
open(os.environ["ALIVE"], "a").write(variant + "\\n")
if variant == "slow to start":
    time.sleep(0.4)
open(os.environ["PIDS"], "a").write(f"{os.getpid()}\\n")
say("turn_awaited", call_seconds=1e-3)
taken = 0
for line in control:
    turn = json.loads(line)
    if turn["request"] == "CancelRequest" and variant != "deaf":
        say("run_finished", status="cancelled", error="cancelled")
        break
    if turn["request"] == "CancelRequest":
        continue
    if turn["request"] == "TurnsOverRequest":
        say("warning_raised", code="folded_constants", message="twice the same")
        if variant == "moody" and launch > 1:
            say("warning_raised", code="throttled", message="it was not so before")
        say("text_recorded", name="hlo", text=f"launch {launch}")
        say("run_finished", status="ok")
        break
    taken += turn["series"] == "run"
    if variant == "brief":
        time.sleep(0.02)
    while variant == "held" and taken == 2 and not os.path.exists(os.environ["GO_ON"]):
        time.sleep(0.01)
    if variant == "watcher":
        others = [pid for pid in open(os.environ["PIDS"]).read().split() if int(pid) != os.getpid()]
        states = [open(f"/proc/{pid}/stat").read().rpartition(") ")[2][0] for pid in others]
        print(turn["series"], *states, flush=True)
    if variant == "fragile" and taken == 3:
        os._exit(7)
    if variant == "capped" and taken == 3:
        say("run_finished", status="ok")
        break
    if variant == "capped after its samples" and taken == 2:
        run = {"run": request["run"]}
        samples = {"type": "samples_taken", "series": "run", "seconds": [1e-3] * 2, "block": turn["block"], **run}
        events.write(json.dumps(samples) + "\\n" + json.dumps({"type": "run_finished", "status": "ok", **run}) + "\\n")
        break
    say("samples_taken", series=turn["series"], seconds=[1e-3] * 2, block=turn["block"])
open(os.environ["ALIVE"], "w").write("")
control.readline()
"""
)


class Turns(Stage):
    """Whose engines follow the script above, in blocks that are few and quick: it does not wait for a block's end."""

    def __init__(self, folder, monkeypatch, script=ENGINE):
        super().__init__(folder, monkeypatch, script)
        monkeypatch.setattr(turns, "BLOCK_SECONDS", 10.0)
        for name in ("ALIVE", "PIDS", "GO_ON"):
            monkeypatch.setenv(name, str(folder / name))
        (folder / "ALIVE").write_text("")

    def take(self, *variants, **spec):
        return self.run(planned(*variants, **spec))


def planned(*variants, **spec):
    given = {"budget_seconds": 60.0, "launches": 1, **spec}
    first = plan(variant=variants[0], **given)
    return [first, *(plan(variant=variant, baseline=first, **given) for variant in variants[1:])]


@pytest.fixture
def stage(tmp_path, monkeypatch):
    return Turns(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        yield Turns(tmp_path_factory.mktemp("three"), patch).take("a", "moody", launches=3)


def blocks(session, launch):
    taken = [
        (turn.number, run.id)
        for run in session.runs.values()
        for each in run.launches
        if each.number == launch
        for turn in each.turns
    ]
    return [run for _, run in sorted(taken)]


@pytest.mark.process
def test_launches_have_fresh_processes_and_balanced_blocks(three):
    for launch in (1, 2, 3):
        order = blocks(three, launch)
        assert len(order) >= 8
        assert order.count("r1") == order.count("r2")
        for four in (order[at : at + 4] for at in range(0, len(order), 4)):
            assert sorted(four) == ["r1", "r1", "r2", "r2"]
            assert four == four[::-1], "there and back"
    for run in three.runs.values():
        assert run.status == "ok"
        assert [each.number for each in run.launches] == [1, 2, 3]
        assert len(run.samples("run")) == 2 * sum(len(each.turns) for each in run.launches)
        assert all("compile" in each.phases for each in run.launches)


@pytest.mark.parametrize(("budget", "seconds"), [(1.0, 0.08), (50.0, 0.25)])
def test_a_side_is_sampled_alone_for_a_bounded_time(budget, seconds):
    asked = []
    group = SimpleNamespace(_launches=5, _block=lambda *words: asked.append(words[2:4]))
    side = SimpleNamespace(plan=SimpleNamespace(spec=SimpleNamespace(timing_seconds=budget)))
    turns.Group._sample_alone(group, side, 1)
    assert asked == [("alone", pytest.approx(seconds))]


@pytest.mark.process
def test_samples_are_passed_on_between_brief_turns(stage, monkeypatch):
    """A turn takes a hundredth of a second: nobody waits within one for a listener's turn to come."""
    monkeypatch.setattr(turns, "BLOCK_SECONDS", 1.0)
    stage.take("brief", budget_seconds=30.0)
    with_samples = [batch for batch in stage.batches if any(isinstance(event, e.SamplesTaken) for event in batch)]
    assert len(with_samples) >= 4


@pytest.mark.process
def test_progress_comes_before_the_first_turn_ends(stage):
    """Blocks of 10 s for a minute of each of two: a long call says nothing until it ends."""
    stage.take("a", "b")
    lines = [json.loads(line) for line in stage.path.read_text().splitlines()[1:]]
    first = next(at for at, line in enumerate(lines) if line["type"] == "samples_taken" and line["series"] == "run")
    said = [line for line in lines[:first] if line["type"] == "progress_made"]
    assert [(line["run"], line["fraction"]) for line in said] == [("r1", 0.0), ("r2", 0.0)]
    assert all(line["remaining_seconds"] == pytest.approx(120.0) for line in said)


@pytest.mark.process
def test_sides_too_large_together_are_measured_apart(stage, monkeypatch):
    alive = []
    launch_of = turns.Group._launch_together

    def noted(group, launch, sides):
        before = [event.pid for batch in stage.batches for event in batch if isinstance(event, e.WorkerStarted)]
        alive.extend(psutil.pid_exists(pid) for pid in before)
        launch_of(group, launch, sides)
        stage.scheduler._session_recorder.flush()

    monkeypatch.setattr(turns.Group, "_launch_together", noted)
    session = stage.take("a", "greedy", launches=2)
    assert len(alive) >= 2 + 3 + 4, "those of the try, and of each run alone after it"
    assert not any(alive)
    assert [run.status for run in session.runs.values()] == ["ok", "ok"]
    assert [warning.code for warning in session.runs["r1"].warnings if warning.code == "measured_apart"]
    assert "ran out of memory beside the others" in session.runs["r2"].warnings[0].message
    for launch in (1, 2):
        assert len(list(itertools.groupby(blocks(session, launch)))) == 2, "each alone"


@pytest.mark.process
def test_what_does_not_depend_on_the_process_is_recorded_once(three):
    assert three.text("r1", "hlo") == "launch 1"
    assert [warning.code for warning in three.runs["r1"].warnings] == ["folded_constants"]
    codes = [warning.code for warning in three.runs["r2"].warnings]
    assert codes == ["folded_constants", "throttled"], "which a later launch is the first to give"
    for run in three.runs.values():
        assert [len(launch.alone) for launch in run.launches] == [2, 2, 2], "in each launch"
        assert len(run.samples("settling")) == 2 * PROBES, "in the first launch alone"


@pytest.mark.process
def test_nothing_is_sampled_before_every_engine_is_warm(stage):
    stage.take("a", "slow to start", "c")
    lines = [json.loads(line) for line in stage.path.read_text().splitlines()[1:]]
    first = next(at for at, line in enumerate(lines) if line["type"] == "samples_taken" and line["series"] != "alone")
    cold = [line["run"] for line in lines[:first] if line.get("phase") == "compile" or line["type"] == "worker_started"]
    assert cold == ["r1"] * 3 + ["r2"] * 3 + ["r3"] * 3, "one process at a time"
    waited = {line["run"]: line["seconds"] for line in lines if line.get("phase") == "waiting" and "seconds" in line}
    assert waited["r1"] > 0.4, "while the second one started"
    assert waited["r1"] > waited["r3"]


def states_of_others(session, run):
    """For each block of a watcher, its series and the states of the other processes (as in `/proc/PID/stat`)."""
    return [tuple(line.text.split()) for line in session.runs[run].log]


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_others_are_frozen_while_one_has_its_block(stage):
    session = stage.take("a", "b", "watcher")
    assert [run.status for run in session.runs.values()] == ["ok"] * 3
    seen = states_of_others(session, "r3")
    assert {series for series, *_ in seen} == {"alone", "settling", "run"}
    assert {state for _, *states in seen for state in states} == {"T"}
    assert all(len(states) == 2 for _, *states in seen)


@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_that_holds_an_accelerator_is_not_frozen(stage, monkeypatch):
    monkeypatch.setattr(stage.scheduler, "_placement", lambda *_: WorkerEnvironment(device="cuda:0", environment={}))
    session = stage.take("a", "watcher", device="cuda:0")
    assert {state for _, *states in states_of_others(session, "r2") for state in states} <= {"R", "S"}


@pytest.mark.process
def test_one_side_that_dies_leaves_the_others_alone(stage):
    session = stage.take("a", "fragile", "c", launches=2)
    assert [run.status for run in session.runs.values()] == ["ok", "crashed", "ok"]
    assert [len(run.launches) for run in session.runs.values()] == [2, 1, 2]
    assert len(session.runs["r2"].launches[0].turns) == 2, "what was measured is kept"
    counts = {run: blocks(session, 1).count(run) for run in ("r1", "r3")}
    assert counts["r1"] == counts["r3"]


@pytest.mark.process
def test_a_side_capped_in_a_turn_has_no_further_one(stage):
    session = stage.take("capped", "b", "capped after its samples")
    assert [run.status for run in session.runs.values()] == ["ok"] * 3
    order = blocks(session, 1)
    assert [order.count(run) for run in ("r1", "r3")] == [2, 2]
    assert order.count("r2") >= 4


@pytest.mark.process
def test_a_launch_that_takes_long_to_start_is_the_only_one(stage, monkeypatch):
    monkeypatch.setattr(turns, "MOST_COLD_SECONDS", 0.3)
    session = stage.take("slow to start", "a", launches=3, budget_seconds=0.3)
    for run in session.runs.values():
        assert len(run.launches) == 1
        assert run.status == "ok"
        (told,) = [warning for warning in run.warnings if warning.code == "fewer_launches"]
        assert "slow to start on cpu:0" in told.message


@pytest.mark.process
def test_the_hard_cap_is_of_all_launches_together(stage, monkeypatch):
    monkeypatch.setattr(turns.Side, "left_seconds", property(lambda side: 0.0 if side.spent_seconds else 9.0))
    run = stage.take("a", launches=5, max_seconds=9.0).runs["r1"]
    assert (run.status, len(run.launches)) == ("ok", 1)
    (told,) = [warning for warning in run.warnings if warning.code == "fewer_launches"]
    assert "the hard cap" in told.message


@pytest.mark.process
def test_exclusive_device_is_used_by_one_process(stage):
    stage.scheduler._placement = lambda planned, interpreter: WorkerEnvironment(environment={}, device="cpu:0")
    session = stage.take("a", "b", device="tpu:0")
    assert len(list(itertools.groupby(blocks(session, 1)))) == 2
    assert "one process at a time can use a tpu" in session.runs["r1"].warnings[0].message


@pytest.mark.process
def test_cancelling_one_leaves_the_others(stage):
    def cancel():
        stage.scheduler.cancel("r2")
        Path(os.environ["GO_ON"]).touch()

    # only a side that has samples keeps its launch
    stage.run_until(planned("a", "held", launches=2), lambda: stage.told.runs["r2"].samples("run"), cancel)
    runs = stage.told.runs.values()
    assert [run.status for run in runs] == ["ok", "cancelled"]
    assert [len(run.launches) for run in runs] == [2, 1]


@pytest.mark.process
def test_an_engine_that_is_ended_between_its_turns_was_cancelled(stage):
    def cancel():
        for _ in range(2):  # the second call skips the patience
            stage.scheduler.cancel_all()
        Path(os.environ["GO_ON"]).touch()

    stage.run_until(planned("deaf", "held"), lambda: stage.told.runs["r2"].samples("run"), cancel)
    assert [run.status for run in stage.told.runs.values()] == ["cancelled", "cancelled"]


@pytest.mark.process
def test_engines_on_one_device_do_not_preallocate(stage):
    environments = []
    start = stage.scheduler._engine_run

    def seen(side, placement, *rest):
        environments.append(placement.environment)
        return start(side, placement, *rest)

    stage.scheduler._placement = lambda planned, interpreter: WorkerEnvironment(environment={}, device="cpu:0")
    stage.scheduler._engine_run = seen
    stage.scheduler.add(planned("alone", device="cuda:0"))
    stage.take("a", "b", device="cuda:0")
    told = [environment.get("XLA_PYTHON_CLIENT_PREALLOCATE") for environment in environments]
    assert told == [None, "false", "false"]


def test_remaining_time_includes_further_launches():
    told = []
    sides = [SimpleNamespace(run=run, finished=None, cold_seconds=2.0) for run in ("r1", "r2", "r3")]
    sides[2].finished = e.RunFinished(status="failed")
    recorder = SimpleNamespace(emit=told.append, flush_when_due=lambda: None)
    group = SimpleNamespace(_rule=None, _launches=4, _recorder=recorder)
    turns.Group._progress(group, 2, sides, 0.25, 12.0)
    assert [(event.run, event.fraction, event.note) for event in told] == [
        (run, pytest.approx(1.25 / 4), "launch 2 of 4, in turns with 2 more") for run in ("r1", "r2")
    ]
    assert told[0].remaining_seconds == pytest.approx(9 + 2 * (6 + 12)), "each starts three processes once more"
    group._launches, group._rule = 1, object()
    turns.Group._progress(group, 1, sides[:1], 0.5, 6.0)
    assert told[-1].remaining_seconds == 3.0
    assert told[-1].fraction == 0.5
    assert told[-1].note == ""


def test_the_hard_cap_shrinks_by_what_is_spent():
    spec = e.RunSpec(workload="selu", variant="a", how="jit", device="cpu:0", max_seconds=7.0)
    side = turns.Side("r1", PlannedRun(spec=spec))
    assert side.left_seconds == 7.0
    side.spent_seconds += 2.5
    assert side.left_seconds == 4.5
    assert turns.Side("r1", PlannedRun(spec=replace(spec, max_seconds=None))).left_seconds is None


class Clock:
    seconds = 0.0

    def __call__(self):
        return self.seconds


def spec(side, **more):
    return e.RunSpec(workload="selu", variant="jit", how="jit", device="cpu:0", side=side, **more)


def session():
    made = Session(new_header())
    made.apply(e.RunPlanned(run="r1", spec=spec("A")))
    made.apply(e.RunPlanned(run="r2", spec=spec("B", baseline="r1")))
    return made


def test_only_sides_of_a_comparison_have_a_rule():
    assert LaunchRule.of([PlannedRun(spec=spec(""))]) is None
    assert LaunchRule.of([PlannedRun(spec=spec("A"))]) is not None


@pytest.mark.parametrize(("spent", "enough"), [(9.0, True), (5.0, False)])
def test_no_launch_begins_that_the_cap_would_end_at_once(spent, enough):
    sides = [turns.Side(run, PlannedRun(spec=spec(run, max_seconds=10.0))) for run in ("A", "B")]
    sides[0].cold_seconds, sides[0].spent_seconds = 2.0, spent
    rule, recorder = SimpleNamespace(ends=lambda *_: False), SimpleNamespace(session=None)
    group = SimpleNamespace(_rule=rule, _recorder=recorder, sides=sides)
    assert turns.Group._has_enough(group, sides, 1) is enough


@pytest.mark.parametrize(
    ("budget", "launches_end_at", "over"),
    [
        (60.0, [12.0, 24.0, 36.0, 50.0], [False, False, False, True]),  # the fourth took 14 s, and 10 s are left
        (20.0, [15.0, 30.0, 45.0], [False, False, True]),  # two say next to nothing
        (60.0, [45.0], [True]),  # three would take 135 s
        (60.0, [20.0, 90.0], [False, True]),  # the second took 70 s, and 30 s are left
        (None, [100.0, 1e6], [False, False]),
    ],
    ids=["would not end in time", "three before the time counts", "one of minutes", "a third too long", "no limit"],
)
def test_launches_end_by_time(budget, launches_end_at, over):
    clock = Clock()
    rule, found = LaunchRule(budget, None, clock), []
    for clock.seconds in launches_end_at:
        found.append(rule.ends(session(), ["r1", "r2"]))
    assert found == over
    assert budget is not None or not rule.is_over()


def test_turns_are_so_short_that_five_launches_fit():
    clock = Clock()
    rule = LaunchRule(60.0, None, clock)
    for launch in (1, 2):  # each has a fifth of the time, with the start of its processes
        clock.seconds = 12.0 * launch - 1.0
        assert not rule.is_over(turns_seconds=5.0)
        clock.seconds = 12.0 * launch
        assert rule.is_over(turns_seconds=5.0)
        assert not rule.ends(session(), ["r1", "r2"])
    clock.seconds = 100.0
    assert not rule.is_over(turns_seconds=0.9 * LEAST_TURNS_SECONDS), "they show something, however long it started"
    assert rule.is_over(turns_seconds=LEAST_TURNS_SECONDS)


def test_a_width_ends_them_after_three(monkeypatch):
    looked = []

    def narrow(comparison, wanted):
        assert wanted == 0.02
        return True

    def compared(session, baseline, run):
        looked.append(run.plan.side)
        return compare([])

    monkeypatch.setattr(speedup, "compare_times", compared)
    monkeypatch.setattr("jaxprof.stats.comparison.narrow_enough", narrow)
    rule = LaunchRule(None, 0.02, Clock())
    assert [rule.ends(session(), ["r1", "r2"]) for _ in range(3)] == [False, False, True]
    assert looked == ["B"]
    monkeypatch.setattr("jaxprof.stats.comparison.narrow_enough", narrow_enough)
    assert not rule.ends(session(), ["r1", "r2"]), "nothing measured is not narrow"
