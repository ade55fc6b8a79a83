"""The three lines at the end of what measures: the largest cost first, parts that add up, nothing left unsaid."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folding import fold
from jaxprof import events as e
from jaxprof.analysis.explain.derive import explanation
from jaxprof.report.conclusion import conclusion, conclusion_lines, largest
from jaxprof.report.renderers import wrap
from jaxprof.session import Session
from jaxprof.units import parts_of, spread
from report.sessions import HEADER, HLO, plan, turns


class TestLargest:
    def test_names_what_cost_most_first_whether_or_not_it_can_be_changed(self):
        times = {"host_busy": 6.5, "compile": 60.0, "import": 20.0, "waiting": 8.0}
        assert largest(times, 97.0) == (
            "compiling 60.0 s (62 %), imports 20.0 s (21 %), waiting 8.0 s (8 %), the rest 9.0 s (9 %) of 97.0 s"
        )
        assert largest({}, 0.2) == "unknown: no sample shows where 200 ms went"
        assert "host" not in largest({"import": 3.2, "host_busy": 0.001}, 3.5), "it would be 0 %"

    @given(st.lists(st.floats(0.01, 1e4), min_size=1, max_size=8))
    def test_what_is_printed_adds_up(self, parts):
        text = largest({f"state {number}": part for number, part in enumerate(parts)}, sum(parts))
        shares = [int(share) for share in re.findall(r"\((\d+) %\)", text)]
        assert sum(shares) == 100
        times = [float(time) for time in re.findall(r"(\d+(?:\.\d+)?) (?:min|s|ms)\b", text)]
        assert sum(times[:-1]) == pytest.approx(times[-1])


class TestConclusion:
    def test_nothing_recorded_is_said(self):
        text = "\n".join(conclusion_lines(conclusion(explanation(Session(HEADER), "s"))))
        assert "costs most   unknown: nothing was measured" in text
        assert "no run was recorded" in text

    def test_a_run_that_was_interrupted_after_its_compile_was_not_measured(self):
        compiled = e.TextRecorded(run="r1", name="hlo", text=HLO, bytes=len(HLO))
        copied = e.SamplesTaken(run="r1", series="transfer_in", seconds=[1e-4], calls_per_sample=1)
        found = conclusion(explanation(fold(HEADER, [plan("r1", "jit", "jit"), copied, compiled]), "s"))
        assert found.action.startswith("nothing was measured")
        only = conclusion(explanation(fold(HEADER, [plan("r1", "jit", "compile"), compiled]), "s"))
        assert only.action.startswith("no finding above its threshold"), "its HLO is all that was wanted of it"

    def test_of_what_was_measured_it_is_said_that_nothing_was_found(self):
        session = fold(HEADER, [plan("r1", "jit", "jit"), *turns("r1", 1e-3, 0)])
        assert conclusion(explanation(session, "s")).action.startswith("no finding above its threshold")


class TestRounding:
    def test_parts_are_in_the_unit_of_the_whole(self):
        assert parts_of([0.0123, 0.0456], 0.0579) == (["12.3 ms", "45.6 ms"], "57.9 ms")

    def test_an_interval_wider_than_its_value_is_shown_by_its_ends(self):
        assert spread(0.097, 0.010, 0.012) == "± 9.7 %"
        assert spread(1.36, 0.012, 0.096) == "12 ms to 96 ms"

    def test_a_number_is_not_parted_from_its_unit(self):
        assert wrap("about 40 % of it", width=9, indent="") == ["about", "40 % of", "it"]
        assert wrap("took 3.2 s, 12 ms", width=8, indent="") == ["took", "3.2 s,", "12 ms"]
        assert wrap("line 3 says 2 steps", width=8, indent="") == ["line 3", "says 2", "steps"], "a word is no unit"
