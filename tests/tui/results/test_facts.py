"""Figures in words: intervals, verdicts, what is unknown, what is not like for like."""

import math

import pytest

from golden import held_cases
from jaxprof import events as e
from jaxprof.analysis.runs.run_result import results
from jaxprof.base.text import safe
from jaxprof.stats.blocks import Spread, t_quantile
from jaxprof.stats.comparison import TimeComparison
from jaxprof.tui.kit.format import clock_text, speedup_short, speedup_style
from jaxprof.tui.kit.table_columns import table_lines
from jaxprof.tui.results import result_panel as facts
from jaxprof.tui.results.screen import row_text
from tui import session_tapes as sessions
from tui.session_tapes import Tape


@pytest.mark.parametrize(
    ("elapsed", "shown"),
    [
        (-1, "0.0 s"),
        (0, "0.0 s"),
        (12.39, "12.3 s"),
        (59.94, "59.9 s"),
        (84.9, "84 s"),
        (125.9, "2 min 05 s"),
        (3725, "1 h 02 min"),
    ],
)
def test_clock_text_rounds_down(elapsed, shown):
    assert clock_text(elapsed) == shown


def speedup(ratio, low=None, high=None, measured="in turns"):
    degrees = 1e6
    spreads = () if low is None else (Spread(math.log(high / low) / 2 / t_quantile(0.975, degrees), degrees),)
    return TimeComparison(ratio, spreads, 10, "launch", 10, None, measured)


@pytest.mark.parametrize(
    ("speedup", "long", "short", "style", "words"),
    [
        (speedup(6.9, 6.8, 7.0), "6.9× (6.8-7.0)", "6.9× (6.8-7.0)", "$better", "faster than numpy"),
        (speedup(6.9, 6.865, 6.93), "6.90× (6.87-6.93)", "6.9× ± 0.47 %", "$better", "faster than numpy"),
        (speedup(11, 1.04, 116), "11.0× (1.04-116)", "11.0× (1.04-116)", "$text-muted", "uncertain"),
        (speedup(1.1, 1.01, 1.2), "1.10× (1.01-1.20)", "1.10× (1.01-1.20)", "$text-muted", "uncertain"),
        (speedup(0.49, 0.4, 0.6), "0.49× (0.40-0.60)", "0.49× (0.40-0.60)", "$worse", "slower than numpy"),
        (speedup(0.13, 0.02, 0.9), "", "", "$text-muted", "uncertain"),
        (speedup(0.077, 0.048, 0.12), "", "0.077× ± 47 %", "$worse", "slower than numpy"),
        (speedup(0.05, 0.027, 0.093), "0.050× (0.027-0.093)", "0.027-0.093×", "$worse", "slower than numpy"),
        (speedup(0.074, 0.019, 0.29), "", "0.019-0.29×", "$text-muted", "slower than numpy"),
        (speedup(1.001, 0.99, 1.01), "", "", "", "the same as numpy"),
        (speedup(5.1, 0.2, 90, "apart"), "", "", "$text-muted", "not measured together"),
        (speedup(6.9), "6.9×", "", "$text-muted", ""),
        (None, "", "-", "$quiet", ""),
    ],
)
def test_speedup_in_words_numbers_and_colour(speedup, long, short, style, words):
    """Nothing is said by colour alone."""
    assert (speedup.ratio_text if speedup else "").startswith(long)
    assert speedup_short(speedup).startswith(short)
    assert speedup_style(speedup).startswith(style)
    assert words in (speedup.words("numpy") if speedup else "")


def unknown():
    tape = Tape()
    tape.plan("r1", "jit")
    tape.start("r1")
    tape.phase("r1", "compile", None)
    tape.steady("r1", 1e-3, 3)
    return tape


def checked(*, passed, wrong):
    """A result of ten numbers, of which one is furthest off."""
    tape = Tape()
    tape.plan("r1", "jit")
    tape.steady("r1", 1e-3, 3)
    worst = {"worst_at": "[3, 5]", "worst_got": "0.81", "worst_expected": "0.80"}
    tape.add(e.CheckReported, "r1", passed=passed, tolerance=1e-4, elements=10, wrong_elements=wrong, **worst)
    return tape


def two_modes():
    """A copy that moves nothing, with a long tail of two modes."""
    tape = Tape()
    tape.plan("r1", "put")
    tape.start("r1")
    tape.samples("r1", "run", [2e-3, 2.01e-3, 6e-3, 6.02e-3] * 25)
    tape.add(e.PhaseEnded, "r1", phase="run", seconds=1.0, zero_copy=True)
    return tape


def opened_profile():
    """A profile of another process, which says which jax it had."""
    tape = Tape()
    tape.plan("r1", "profile", "imported")
    tape.add(e.WorkerStarted, "r1", pid=1, python="/venv/bin/python")
    tape.add(e.EnvironmentRead, "r1", python="", numpy="", jax="0.8.0")
    return tape


TAPES = {
    "all well": sessions.finished(),
    "one of each end": sessions.troubled(),
    "compiling": sessions.compiling(),
    "sampling": sessions.sampling(),
    "unknown": unknown(),
    "four wrong": checked(passed=False, wrong=4),
    "right": checked(passed=True, wrong=0),
    "two modes": two_modes(),
    "an opened profile, whose interpreter is not the one that reads it": opened_profile(),
}


def lines_of(result, width):
    return [
        *facts.figure_lines(result, "numpy", width),
        *table_lines(facts.phase_table(result), width),
        *facts.environment_lines(result, width),
        *facts.warning_lines(result, width),
        *facts.failure_lines(result, width),
    ]


def test_facts_of_runs_as_text():
    held = {}
    for name, tape in TAPES.items():
        for one in results(tape.session()):
            lines = [row_text(one, "numpy"), *(line.plain for line in lines_of(one, 100))]
            held[f"{name}: {one.run.id}"] = "".join(f"  {line}".rstrip() + "\n" for line in lines)
    held_cases("facts_of_runs.txt", held)


def test_settings_have_the_names_that_set_them():
    tape = Tape()
    tape.plan("r1", "jit")
    settings = {"jax_enable_x64": False, "TF_CPP_MIN_LOG_LEVEL": "1", "cores": 2}
    tape.add(e.EnvironmentRead, "r1", python="3.13.0", numpy="2.3.4", settings=settings)
    (only,) = results(tape.session())
    shown = "python 3.13.0 · numpy 2.3.4 · jax_enable_x64=False · TF_CPP_MIN_LOG_LEVEL=1 · cores 2"
    assert facts.environment_lines(only, 200)[0].plain.endswith(shown)


@pytest.mark.parametrize("width", [55, 110])
def test_lines_of_facts_fit_and_are_safe(width):
    for tape in TAPES.values():
        for line in (line for one in results(tape.session()) for line in lines_of(one, width)):
            assert line.cell_length <= max(width, 64), "only a traceback is not wrapped"
            assert safe(line.plain) == line.plain
