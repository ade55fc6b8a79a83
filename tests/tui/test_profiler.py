"""What must be told wherever one is: runs that failed and workers that hang, each once and with what mends it."""

from __future__ import annotations

import pytest

from jaxprof import events as e
from jaxprof.tui.profiler import alerts


def closed(status: str, variant: str = "jit", error: str = "it broke") -> e.RunClosed:
    return e.RunClosed(
        run="r1", workload="selu", variant=variant, device="cpu:0", status=status, error=error, advice="mend it"
    )


@pytest.mark.parametrize("status", ["failed", "crashed"])
def test_a_run_that_failed_is_told_with_what_mends_it(status: str) -> None:
    [(error, title)] = alerts([closed(status)], programs=False)
    assert (error.what, error.hint, title) == ("it broke", "mend it", f"selu jit: {status}")


def test_a_failure_without_words_gets_some() -> None:
    [(error, _)] = alerts([closed("crashed", error="")], programs=False)
    assert error.what == "the run crashed"


def test_what_went_well_or_was_cancelled_is_not_told() -> None:
    assert list(alerts([closed("ok"), closed("cancelled")], programs=True)) == []


def test_the_end_of_a_program_is_told_only_where_it_is_not_in_view() -> None:
    assert list(alerts([closed("failed", "program")], programs=False)) == []
    [(_, title)] = alerts([closed("failed", "program")], programs=True)
    assert title == "selu program: failed"


def test_a_worker_that_says_nothing_is_told_and_other_warnings_are_not() -> None:
    silent = e.WarningRaised(run="r2", code="worker_silent", message="no sign of life", advice="cancel it")
    other = e.WarningRaised(run="r2", code="noisy", message="noisy")
    [(error, title)] = alerts([other, silent], programs=False)
    assert (error.what, title) == ("no sign of life", "run r2")
