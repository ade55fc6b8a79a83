"""What a run is called, and what it says about itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from folding import fold
from jaxprof import events as e
from jaxprof.session import Run
from jaxprof.session.run import LOG_LINES_KEPT

SPEC = e.RunSpec(workload="selu", variant="jit", how="jit", device="gpu:1")


def folded(*events: e.Event) -> Run:
    return fold(e.Header(), [e.RunPlanned(run="r1", spec=SPEC), *events]).runs["r1"]


def finished(**fields: str) -> e.RunFinished:
    return e.RunFinished(run="r1", status="failed", **fields)  # type: ignore[arg-type]


def closed(**fields: str) -> e.RunClosed:
    return e.RunClosed(run="r1", workload="selu", variant="jit", device="gpu:1", status="failed", **fields)  # type: ignore[arg-type]


def test_a_side_of_a_comparison_is_called_by_its_side() -> None:
    run, side = folded(), Run("r2", replace(SPEC, side="A'"))
    assert (run.label, run.variant, run.as_baseline) == ("selu jit gpu:1", "jit", "jit")
    assert (side.label, side.variant, side.as_baseline) == ("A' selu jit gpu:1", "A' jit", "A'")


@pytest.mark.parametrize("status", ["queued", "running", "ok", "failed", "timed_out"])
def test_a_run_is_over_once_it_neither_waits_nor_runs(status: str) -> None:
    assert Run("r1", SPEC, status=status).over == (status not in ("queued", "running"))


def test_the_closing_line_has_the_last_word_on_an_error_if_it_says_one() -> None:
    assert (folded().error, folded().advice) == ("", "")
    both = folded(finished(error="killed", advice="look"), closed(error="out of memory", advice="smaller"))
    assert (both.error, both.advice) == ("out of memory", "smaller")
    silent = folded(finished(error="killed", advice="look"), closed())
    assert (silent.error, silent.advice) == ("killed", "look")
    alone = folded(closed())
    assert (alone.error, alone.advice) == ("", "")
    assert folded(closed(error="gone")).error == "gone"


@pytest.mark.parametrize(
    ("devices", "kind"),
    [
        ([], "gpu"),
        ([{"id": "cpu:0", "platform": "cpu", "kind": "cpu"}], "gpu"),
        ([{"id": "gpu:0", "platform": "gpu", "kind": "A"}, {"id": "gpu:1", "platform": "gpu", "kind": "B"}], "B"),
        ([{"id": "cuda:0", "platform": "gpu", "kind": "A"}], "A"),
        ([{"id": "gpu:1", "platform": "gpu"}], "gpu"),
        ([{"id": "gpu:1", "platform": "gpu", "kind": ""}], "gpu"),
    ],
)
def test_the_kind_of_its_device_is_that_of_its_own_number_or_of_its_platform(
    devices: list[dict[str, Any]], kind: str
) -> None:
    assert folded(e.EnvironmentRead(run="r1", python="3", numpy="2", devices=devices)).device_kind == kind


def test_of_much_output_the_last_lines_stay_in_memory() -> None:
    run = folded(*(e.LogLine(run="r1", stream="stdout", text=str(number)) for number in range(10_003)))
    assert (len(run.log), LOG_LINES_KEPT) == (10_000, 10_000)
    assert (run.log[0].text, run.log[-1].text) == ("3", "10002")
