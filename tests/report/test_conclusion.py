"""The three lines at the end of what measures: the largest cost first, parts that add up, nothing left unsaid."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folding import fold
from jaxprof import events as e
from jaxprof.analysis.explain.derive import explanation
from jaxprof.report.conclusion import conclusion, largest
from jaxprof.report.renderers import wrap
from jaxprof.units import parts_of, spread
from report.sessions import HEADER, HLO, plan, turns


def test_what_cost_most_is_named_first_whether_or_not_it_can_be_changed():
    times = {"host_busy": 6.5, "compile": 60.0, "import": 20.0, "waiting": 8.0}
    assert largest(times, 97.0) == (
        "compiling 60.0 s (62 %), imports 20.0 s (21 %), waiting 8.0 s (8 %), the rest 9.0 s (9 %) of 97.0 s"
    )
    assert largest({}, 0.2) == "unknown: no sample shows where 200 ms went"
    assert "host" not in largest({"import": 3.2, "host_busy": 0.001}, 3.5), "it would be 0 %"


@given(st.lists(st.floats(0.01, 1e4), min_size=1, max_size=8))
def test_what_is_printed_adds_up(parts):
    text = largest({f"state {number}": part for number, part in enumerate(parts)}, sum(parts))
    shares = [int(share) for share in re.findall(r"\((\d+) %\)", text)]
    assert sum(shares) == 100
    times = [float(time) for time in re.findall(r"(\d+(?:\.\d+)?) (?:min|s|ms)\b", text)]
    assert sum(times[:-1]) == pytest.approx(times[-1])


COMPILED = e.TextRecorded(run="r1", name="hlo", text=HLO)
COPIED = e.SamplesTaken(run="r1", series="transfer_in", seconds=[1e-4])


@pytest.mark.parametrize(
    ("events", "action"),
    [
        ([], "no finding above"),
        ([plan("r1", "jit", "jit"), COPIED, COMPILED], "nothing was measured"),  # interrupted after its compile
        ([plan("r1", "jit", "compile"), COMPILED], "no finding above"),  # its HLO is all that was wanted of it
        ([plan("r1", "jit", "jit"), *turns("r1", 1e-3, 0)], "no finding above"),
    ],
)
def test_what_to_do_where_nothing_was_found(events, action):
    found = conclusion(explanation(fold(HEADER, events), "s"))
    assert found.action.startswith(action)
    assert events or (found.cost, found.certainty) == ("unknown: nothing was measured", "no run was recorded")


def test_parts_are_in_the_unit_of_the_whole_and_a_wide_interval_is_its_ends():
    assert parts_of([0.0123, 0.0456], 0.0579) == (["12.3 ms", "45.6 ms"], "57.9 ms")
    assert spread(0.097, 0.010, 0.012) == "± 9.7 %"
    assert spread(1.36, 0.012, 0.096) == "12 ms to 96 ms"


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("about 40 % of it", 9, ["about", "40 % of", "it"]),
        ("took 3.2 s, 12 ms", 8, ["took", "3.2 s,", "12 ms"]),
        ("line 3 says 2 steps", 8, ["line 3", "says 2", "steps"]),  # a word is no unit
    ],
)
def test_a_number_is_not_parted_from_its_unit(text, width, lines):
    assert wrap(text, width=width, indent="") == lines
