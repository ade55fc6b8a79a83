"""Figures in words: intervals, verdicts, what is unknown, what is not like for like."""

from __future__ import annotations

import pytest

from jaxprof import events as e
from jaxprof.analysis import result, results
from jaxprof.analysis.speedup import Speedup
from jaxprof.report.runs import break_even_text
from jaxprof.text import safe
from jaxprof.tui.kit.format import (
    clock,
    speedup_short,
    speedup_style,
    speedup_text,
)
from jaxprof.tui.results.facts import (
    check_lines,
    environment_lines,
    failure_lines,
    figure_lines,
    memory_lines,
    phase_lines,
    published_lines,
    warning_lines,
)
from jaxprof.tui.results.screen import row_text
from jaxprof.workloads.model import Published
from tui import session_tapes as sessions
from tui.session_tapes import Tape


def text(lines: object) -> str:
    return "\n".join(line.plain for line in lines)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("elapsed", "shown"),
    [(-1, "0.0 s"), (0, "0.0 s"), (12.39, "12.3 s"), (59.94, "59.9 s"), (61.5, "1:01 min"), (3725, "1:02:05 h")],
)
def test_a_clock_never_shows_a_time_that_has_not_come(elapsed, shown):
    assert clock(elapsed) == shown


def test_a_speedup_is_shown_with_what_is_known_of_it():
    sure = Speedup(6.9, 6.8, 7.0, "faster")
    unsure = Speedup(1.004, 0.9, 1.1, "inconclusive", "the interval contains 1")
    assert speedup_text(sure) == speedup_short(sure) == "6.9× (6.8-7.0)"
    assert speedup_text(Speedup(6.9, None, None, "inconclusive")) == "6.9×"
    assert speedup_text(Speedup(6.884, 6.861, 6.931, "faster")) == "6.88× (6.86-6.93)"
    assert speedup_short(Speedup(6.884, 6.861, 6.931, "faster")) == "6.9× ± 0.51 %"
    assert speedup_short(Speedup(0.077, 0.048, 0.12, "slower")) == "0.077× ± 47 %", "the bounds would be cut off"
    assert speedup_text(None) == "-"
    assert unsure.words("numpy") == "inconclusive: the interval contains 1"
    assert sure.words("numpy") == "faster than numpy"
    assert Speedup(1.001, 0.99, 1.01, "same").words("numpy") == "the same as numpy"


@pytest.mark.parametrize(
    ("speedup", "style"),
    [
        (Speedup(6.9, 6.8, 7.0, "faster"), "$better"),
        (Speedup(20, 14, 30, "faster"), "$better"),
        (Speedup(23, 1.04, 116, "faster"), "$text-muted"),
        (Speedup(1.1, 1.01, 1.2, "faster"), "$text-muted"),
        (Speedup(0.1, 0.02, 0.9, "slower"), "$text-muted"),
        (Speedup(0.5, 0.4, 0.6, "slower"), "$worse"),
        (Speedup(5.1, 0.2, 90, "inconclusive", "the interval contains 1"), "$text-muted"),
        (Speedup(6.9, 6.8, 7.0, "inconclusive", "not measured together"), "$text-muted"),
        (None, "$quiet"),
    ],
)
def test_a_verdict_has_a_colour_where_its_interval_says_how_much(speedup, style):
    assert speedup_style(speedup) == style
    if speedup is not None and speedup.verdict == "faster":
        assert ("uncertain" in speedup.words("numpy")) == (style == "$text-muted"), "nothing is said by colour alone"


def test_a_finished_run_has_all_its_figures():
    session = sessions.finished().session()
    one = result(session, "r3")
    shown = text(figure_lines(one, "numpy", 100))
    assert "median         634 µs ±" in shown
    assert "faster than numpy" in shown
    assert "break-even     21 calls" in shown
    assert "one-time cost" in shown
    assert "12.6 GB/s  8.00 MB a call" in shown
    assert "✓ right" in shown
    assert break_even_text(result(session, "r1")) == "-"


def test_the_phases_tell_bytes_rates_and_what_was_no_copy():
    shown = text(phase_lines(result(sessions.finished().session(), "r3"), 110))
    for name in ("import", "backend init", "warm up", "trace", "lower", "compile", "first run"):
        assert name in shown
    assert "3.81 MiB  4.43 GB/s  median of 12 samples" in shown
    assert "zero-copy  no byte was moved" in shown


@pytest.mark.parametrize("width", [55, 110])
@pytest.mark.parametrize("name", ["finished", "troubled", "compiling", "sampling"])
def test_no_line_is_wider_than_its_room(width, name):
    for one in results(getattr(sessions, name)().session()):
        for lines in (
            figure_lines(one, "numpy", width),
            phase_lines(one, width),
            memory_lines(one, width),
            environment_lines(one, width),
            warning_lines(one, width),
        ):
            assert all(line.cell_length <= width for line in lines), text(lines)
            assert all(safe(line.plain) == line.plain for line in lines)


def test_a_failure_says_what_what_mends_it_and_where():
    shown = text(failure_lines(result(sessions.troubled().session(), "r2"), 100))
    assert "incompatible shapes" in shown
    assert "call it outside of jaxprof" in shown
    assert 'File "selu.py", line 12' in shown
    assert failure_lines(result(sessions.finished().session(), "r3"), 100) == []


def test_a_wrong_result_is_called_wrong_and_markup_in_a_warning_is_text():
    one = result(sessions.troubled().session(), "r4")
    assert "✗ wrong" in text(figure_lines(one, "numpy", 100))
    assert "[red]constants were folded[/red]" in text(warning_lines(one, 100))


def test_published_figures_stand_beside_ours_with_what_keeps_them_apart():
    session = sessions.finished().session()
    figures = [
        Published(variant="numpy", phase="run", seconds=7.6e-3, hardware="Colab CPU", source="an article"),
        Published(
            variant="jit",
            phase="first_run",
            seconds=0.122,
            hardware="Colab GPU",
            source="an article",
            statistic="best of 3",
            caveat="tracing is inside",
            parameters={"n": 5000},
        ),
        Published(variant="other", phase="run", seconds=None, hardware="a T4", source="tests", text="28× faster"),
    ]
    shown = text(published_lines(figures, results(session), {"n": 1_000_000}, 110))
    ours, theirs, third = shown.index("7.60 ms"), shown.index("122 ms"), shown.index("28× faster")
    assert "here 4.36 ms on cpu:0" in shown[ours:theirs]
    assert "not like for like" not in shown[ours:theirs]
    assert "statistic: best of 3" in shown[theirs:third]
    assert "not like for like: tracing is inside; a GPU there, cpu:0 here; n=5\u202f000 there" in shown[theirs:third]
    assert "not measured here" in shown[third:]


def test_a_row_is_copied_as_one_line_without_control_characters():
    session = sessions.troubled().session()
    line = row_text(result(session, "r4"), "numpy")
    assert safe(line) == line
    assert "n=1 000 000" in line
    assert "over numpy" in line
    assert row_text(result(session, "r3"), "numpy").endswith("crashed (XLA aborted (SIGABRT))")


def test_what_is_unknown_is_a_dash():
    tape = Tape()
    tape.plan("r1", "jit")
    tape.start("r1")
    tape.phase("r1", "compile", None)
    tape.steady("r1", 1e-3, 3)
    one = result(tape.session(), "r1")
    assert " - " in text(phase_lines(one, 100)) or text(phase_lines(one, 100)).rstrip().endswith("-")
    assert "1 sample: too few for an interval" in text(figure_lines(one, "", 100))
    assert "± " not in text(figure_lines(one, "", 100)).split("\n")[0]


def test_the_number_that_is_furthest_off_is_shown():
    tape = Tape()
    tape.plan("r1", "jit")
    worst = {"worst_at": "[3, 5]", "worst_got": "0.81", "worst_expected": "0.80"}
    tape.add(e.CheckReported, "r1", passed=False, tolerance=1e-4, elements=10, wrong_elements=4, **worst)
    shown = " ".join(text(check_lines(result(tape.session(), "r1"), 100)).split())
    assert "✗ wrong" in shown
    assert "4 of 10 numbers are off by more than the tolerance of 0.0001; the furthest off at [3, 5]: 0.81" in shown
    tape.add(e.CheckReported, "r1", passed=True, tolerance=1e-4, elements=10, wrong_elements=0, **worst)
    shown = text(check_lines(result(tape.session(), "r1"), 100))
    assert "furthest off at [3, 5]: 0.81 for 0.80" in shown
    assert "numbers are" not in shown


def test_the_tail_two_modes_and_what_moved_nothing_are_told():
    tape = Tape()
    tape.plan("r1", "put")
    tape.start("r1")
    tape.samples("r1", "run", [2e-3, 2.01e-3, 6e-3, 6.02e-3] * 25)
    tape.add(e.PhaseEnded, "r1", phase="run", seconds=1.0, zero_copy=True)
    shown = text(figure_lines(result(tape.session(), "r1"), "numpy", 100))
    assert "95 % took at most 6.02 ms" in shown
    assert "ms (50 %), 6.01 ms (50 %)  the median is typical of neither" in shown
    assert "nothing was moved" in shown
