"""What happens once in a process, of two runs of one session. Which runs of a session are the sides of which
comparison, what each is beside A, and how far their results are apart."""

from itertools import permutations

import ml_dtypes
import numpy as np
import pytest

from analysis.made_runs import run
from analysis.made_runs import session as session_of
from golden import figures_text, held, held_cases
from jaxprof import events as e
from jaxprof.analysis.runs.ab import ab_result, ab_results, agreement, sides_beside
from jaxprof.analysis.runs.speedup import side_versus
from jaxprof.base.grouping import pairs
from jaxprof.engine.measure import kept_arrays
from jaxprof.findings.compare import FigureDifference, figures
from jaxprof.findings.compare.session_difference import session_difference


def launched(launches, *, baseline="r1"):
    """Two runs, of which the second compiles for twice as long, in so many launches."""
    runs = []
    for name, compile_seconds, spec in (("r1", 1.0, {}), ("r2", 2.0, {"baseline": baseline})):
        events = [e.SamplesTaken(run=name, series="transfer_in", seconds=[1e-3] * 5)]
        for launch in range(1, launches + 1):
            took = compile_seconds * (1 + 0.01 * (launch % 2))
            events.append(e.WorkerStarted(run=name, pid=launch, python="python", launch=launch))
            events.append(e.PhaseEnded(run=name, phase="compile", seconds=took))
        runs.append(run(name, *events, variant=name, launches=launches, **spec))
    return session_of(*runs, session="4f2a")


def phases(session):
    (pair,) = session_difference(session, session, run_before="r1", run_after="r2").runs
    return {phase.code: phase for phase in pair.phases}


def test_cold_phases_of_several_launches_have_a_verdict():
    times = phases(launched(4))["compile"].times
    assert (times.launches, times.verdict, times.reason) == (4, "slower", "")
    assert phases(launched(4, baseline=""))["compile"].times.reason == "not measured together"


@pytest.mark.parametrize(("phase", "ratio"), [("compile", 0.5), ("transfer_in", 1.0)])
def test_with_one_launch_that_is_the_reason_and_not_the_hour(phase, ratio):
    times = phases(launched(1))[phase].times
    assert times.ratio == pytest.approx(ratio)
    assert (times.verdict, times.reason) == ("inconclusive", "one launch, not in turns")


def test_pair_is_made_by_the_best_key():
    found = pairs(["a1", "b1", "c1"], ["b2", "a1", "d1"], [lambda one: one, lambda one: one[0]], lambda one: one)
    held("pairs.txt", figures_text(*([pair.status, pair.either, pair] for pair in found)))


def test_a_figure_that_a_side_does_not_know_does_not_differ():
    found = figures({"a": 1.0, "b": 2.0}, {"b": 3.0, "c": None})
    assert [(one.differs, one.growth) for one in found] == [(None, None), (True, 0.5), (None, None)]
    assert FigureDifference("a", 0.0, 1.0).growth is None


def side(name, label, baseline="", median=1e-3, status="ok"):
    """A run in blocks, which were not taken in turns with those of others."""
    blocks = [
        e.SamplesTaken(run=name, series="run", seconds=[median * (1 + 0.001 * at)] * 3, block=at) for at in range(8)
    ]
    return run(name, *blocks, workload=f"m.py:{label}", side=label, baseline=baseline, status=status)


PLANNED = e.ComparisonPlanned(
    run="r1",
    sides=[e.SideSpec(label="A", title="the old one"), e.SideSpec(label="B", title="the new one")],
    margin=0.03,
)
EVENTS = [
    *side("r1", "A"),
    PLANNED,
    *side("r3", "B", "r1", 2e-3),
    *side("r4", ""),
    *side("r5", "A"),
    *side("r6", "B", "r5", status="failed"),
]


@pytest.fixture
def session():
    return session_of(EVENTS)


def test_session_holds_several_comparisons(session):
    first, second = ab_results(session)
    assert [side.run.id for side in first.sides] == ["r1", "r3"]
    assert [versus.label for versus in first.versus] == ["B"]
    assert (first.baseline.id, first.plan) == ("r1", PLANNED)
    assert first.failed == ()
    assert [side.run.id for side in second.failed] == ["r6"]
    assert second.plan.margin == 0.02, "nothing was kept of the second one"
    with pytest.raises(KeyError):
        ab_result(session, "r9")


def test_why_nothing_may_be_said_of_a_side(session):
    unmeasured = [event for event in EVENTS if not (isinstance(event, e.SamplesTaken) and event.run == "r3")]
    for of, reason in ((session, "not measured together"), (session_of(unmeasured), "a side has no samples")):
        (versus,) = ab_results(of)[0].versus
        assert (versus.times.verdict, versus.times.reason) == ("inconclusive", reason)


def test_sides_are_beside_each_other_only_with_the_baseline(session):
    runs = session.runs
    pairs = permutations(runs, 2)
    beside = [names for names in pairs if side_versus(session, *(runs[name] for name in names)) is not None]
    assert beside == [("r1", "r3"), ("r5", "r6")]
    assert side_versus(session, runs["r1"], runs["r3"]).times.ratio == pytest.approx(0.5)
    for other, is_side in ((session, True), (session_of(EVENTS), False)):
        (pair,) = session_difference(session, other, run_before="r1", run_after="r3").runs
        assert (pair.side is not None) == is_side


def test_the_sides_beside_a_run_are_those_of_its_own_comparison(session):
    beside = {name: [side.id for side in sides_beside(session, run)] for name, run in session.runs.items()}
    first, second = ["r1", "r3"], ["r5", "r6"]
    assert beside == {"r1": first, "r3": first, "r4": [], "r5": second, "r6": second}


TREE = {"w": np.arange(6.0, dtype=np.float32).reshape(2, 3), "n": np.array([1, 2]), "x": np.array([np.nan, np.inf])}
QUARTER = np.array([0.25, 1.0], dtype=np.float32)
ONES = np.ones((2, 3), np.float32)
BIG = 2**60
CASES = {
    "the same": (TREE, TREE),
    "one ulp": (QUARTER, np.nextafter(QUARTER, np.float32(2))),
    "nothing in them": (np.ones((0, 3)), np.ones((0, 3))),
    "a cancelled sum is no thousand ulps off": (np.float32([1e-9, 1.0]), np.float32([-1e-9, 1.0])),
    "complex": (np.array([1 + 1j], np.complex64), np.array([1 + 1.5j], np.complex64)),
    "not a number on one side": (np.array([1.0, 2.0]), np.array([1.0, np.nan])),
    "infinite on one side": (np.array([1.0, 2.0]), np.array([1.0, np.inf])),
    "integers that a float64 does not tell apart": (np.array([BIG, 1]), np.array([BIG + 1, 1])),
    "truths": (np.array([True, False]), np.array([True, True])),
    "where": ({"b": ONES, "w": 2 * ONES}, {"b": ONES, "w": 2.06 * ONES}),
    "two ulps of bfloat16": (np.ones(3, ml_dtypes.bfloat16), np.full(3, 1 + 2**-6, ml_dtypes.bfloat16)),
    "two ulps of float8": (np.ones(3, ml_dtypes.float8_e4m3fn), np.full(3, 1.25, ml_dtypes.float8_e4m3fn)),
    "another dtype": (ONES, np.ones((2, 3), np.float16)),
    "another shape": (ONES, ONES.T),
    "another structure": (ONES, (ONES, 1.0)),
    "no result": (ONES, ()),
}


def test_how_far_results_are_apart(tmp_path):
    told = {}
    for case, (baseline, other) in CASES.items():
        kept_arrays.keep(str(tmp_path / "a.npz"), baseline)
        kept_arrays.keep(str(tmp_path / "b.npz"), other)
        found = agreement(tmp_path / "a.npz", tmp_path / "b.npz")
        told[case] = figures_text(found, {"equal": found.equal})
    held_cases("results_compared.txt", told)


def test_what_was_not_written_is_not_compared(tmp_path):
    kept_arrays.keep(str(tmp_path / "a.npz"), np.ones(3))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:200])
    (tmp_path / "pickled.npz").write_bytes(b"\x80\x04N.")
    for name in ("missing.npz", "cut.npz", "pickled.npz"):
        assert agreement(tmp_path / "a.npz", tmp_path / name) is None


def test_objects_are_refused_and_so_is_what_is_too_large(tmp_path, monkeypatch):
    with pytest.raises(TypeError):
        kept_arrays.keep(str(tmp_path / "a.npz"), [np.array([object()])])
    monkeypatch.setattr(kept_arrays, "MOST_BYTES", 100)
    with pytest.raises(ValueError, match="at most"):
        kept_arrays.keep(str(tmp_path / "a.npz"), np.ones(100))
