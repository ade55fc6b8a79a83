"""Figures in words: intervals, verdicts, what is unknown, what is not like for like."""

from __future__ import annotations

import pytest

from jaxprof import events as e
from jaxprof.results import result, results
from jaxprof.safe_text import safe
from jaxprof.stats import Speedup
from jaxprof.tui.screens.results import row_text
from jaxprof.tui.widgets.facts import (
    environment_lines,
    failure_lines,
    figure_lines,
    memory_lines,
    phase_lines,
    published_lines,
    warning_lines,
)
from jaxprof.tui.widgets.sweep_plot import crossover_lines, rounded, sweep_table
from jaxprof.tui.widgets.tightening import Tightening
from jaxprof.tui.widgets.wording import (
    clock,
    pays_off,
    remaining,
    speedup_short,
    speedup_style,
    speedup_text,
    verdict_text,
)
from jaxprof.workloads.model import Published
from tui import sessions
from tui.sessions import Tape


def text(lines: object) -> str:
    return "\n".join(line.plain for line in lines)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("elapsed", "shown"),
    [(-1, "0.0 s"), (0, "0.0 s"), (12.39, "12.3 s"), (59.94, "59.9 s"), (61.5, "1:01 min"), (3725, "1:02:05 h")],
)
def test_a_clock_never_shows_a_time_that_has_not_come(elapsed: float, shown: str) -> None:
    assert clock(elapsed) == shown


def test_what_is_left_is_an_estimate_or_nothing() -> None:
    assert remaining(None) == ""
    assert remaining(0.1) == "≈ 1 s"
    assert remaining(75) == "≈ 1:15 min"


def test_a_speedup_is_shown_with_what_is_known_of_it() -> None:
    sure, same = Speedup(6.9, 6.8, 7.0), Speedup(1.004, 0.99, 1.02)
    assert speedup_text(sure) == speedup_short(sure) == "6.9× (6.8-7.0)"
    assert speedup_text(Speedup(6.9, None, None)) == "6.9×"
    assert speedup_text(Speedup(6.884, 6.861, 6.931)) == "6.88× (6.86-6.93)"
    assert speedup_short(Speedup(6.884, 6.861, 6.931)) == "6.9× ± 0.51 %"
    assert speedup_text(None) == "-"
    assert verdict_text(same, "numpy") == "cannot be told apart from numpy"
    assert verdict_text(sure, "numpy") == "faster than numpy"
    assert verdict_text(Speedup(2.0, None, None), "numpy") == "too few samples for a verdict"
    assert speedup_style(sure) != speedup_style(same)


def test_a_finished_run_has_all_its_figures() -> None:
    session = sessions.finished().session()
    one = result(session, "r3")
    shown = text(figure_lines(one, "numpy", 100))
    assert "median         634 µs ±" in shown
    assert "faster than numpy" in shown
    assert "pays off after 21 calls  once-only costs of 75.6 ms" in shown
    assert "7.89 GFLOP/s  5.00 MFLOP a call, an estimate" in shown
    assert "✓ right" in shown
    assert pays_off(result(session, "r1")) == "-"


def test_the_phases_tell_bytes_rates_and_what_was_no_copy() -> None:
    shown = text(phase_lines(result(sessions.finished().session(), "r3"), 110))
    for name in ("import", "backend init", "warm up", "trace", "lower", "compile", "first run"):
        assert name in shown
    assert "3.81 MiB  4.43 GB/s  median of 12 samples" in shown
    assert "zero-copy  shared: no byte was moved" in shown


@pytest.mark.parametrize("width", [55, 76, 110, 190])
@pytest.mark.parametrize("name", ["finished", "troubled", "compiling", "sampling"])
def test_no_line_is_wider_than_its_room(width: int, name: str) -> None:
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


def test_a_failure_says_what_what_mends_it_and_where() -> None:
    shown = text(failure_lines(result(sessions.troubled().session(), "r2"), 100))
    assert "incompatible shapes" in shown
    assert "call it outside of jaxprof" in shown
    assert 'File "selu.py", line 12' in shown
    assert failure_lines(result(sessions.finished().session(), "r3"), 100) == []


def test_a_wrong_result_is_called_wrong_and_markup_in_a_warning_is_text() -> None:
    one = result(sessions.troubled().session(), "r4")
    assert "✗ wrong" in text(figure_lines(one, "numpy", 100))
    assert "[red]constants were folded[/red]" in text(warning_lines(one, 100))


def test_published_figures_stand_beside_ours_with_what_keeps_them_apart() -> None:
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


def test_the_interval_is_told_at_each_doubling() -> None:
    tightening = Tightening()
    samples = Tape().noise(1e-3, 128, 0.1)
    assert tightening.of("r1", samples[:7]) == ""
    assert tightening.of("r1", samples[:20]).startswith("interval so far: ± ")
    assert tightening.of("r1", samples).endswith("at 128")


def test_a_sweep_is_told_in_words_and_as_a_table() -> None:
    from jaxprof.results import sweep_groups

    (sweep,) = sweep_groups(sessions.sweep().session())
    assert "jit cpu:0 is faster from n ≈" in text(crossover_lines(sweep))
    table = text(sweep_table(sweep, 78))
    assert len(table.split("\n")) == 8
    assert "3.16 k" in table
    assert rounded(13_876.2) == "14\u202f000"


def test_a_row_is_copied_as_one_line_without_control_characters() -> None:
    session = sessions.troubled().session()
    line = row_text(result(session, "r4"), "numpy")
    assert safe(line) == line
    assert "n=1 000 000" in line
    assert "over numpy" in line
    assert row_text(result(session, "r3"), "numpy").endswith("crashed (XLA aborted (SIGABRT))")


def test_what_is_unknown_is_a_dash() -> None:
    tape = Tape()
    tape.plan("r1", "jit")
    tape.start("r1")
    tape.phase("r1", "compile", None)
    tape.add(e.CostReported, "r1")
    tape.steady("r1", 1e-3, 3)
    one = result(tape.session(), "r1")
    assert " - " in text(phase_lines(one, 100)) or text(phase_lines(one, 100)).rstrip().endswith("-")
    assert "3 samples: too few for an interval" in text(figure_lines(one, "", 100))
    assert "± " not in text(figure_lines(one, "", 100)).split("\n")[0]
