"""Recompilations of every kind, planted in a real program: what the ledger says of each, on every jax that is here.

Functions that are compiled through wrappers, libraries' and the user's own, have the user's names."""

import itertools
import json
import os
import re
import subprocess
from pathlib import Path

import msgspec
import pytest

from golden import held_cases
from jaxprof.analysis.programs.sentences import compile_reason
from jaxprof.events import Compiled
from jaxprof.session.lines import limit_numbers
from pythons import EVERY
from recorder.running import SOURCE
from waiting import SLOWER

limit_numbers(Compiled)  # before msgspec first sees the type, as it remembers it without bounds
pytestmark = pytest.mark.process  # a recorded child, shared by the tests

PLANTED = Path(__file__).with_name("planted.py")
LINES = PLANTED.read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module", params=EVERY)
def told(request):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    done = subprocess.run(
        [request.param, str(PLANTED)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=110 * SLOWER,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def rows(told, case, function=None):
    if case not in told:
        pytest.skip(f"the library of {case} is not installed")
    found = told[case]["rows"]
    assert all(row["event"] == "compiled" for row in found), found
    return [without_defaults(row) for row in found if not row["op_by_op"] and function in (None, row["function"])]


def without_defaults(row):
    """A row of the ledger with its reason in words, whose own rows say only what applies to them."""
    tables = {name: row[name] for name in ("signature", "constants", "unused_donations")}
    return (
        row
        | {"reason": compile_reason(msgspec.convert(row, Compiled))}
        | {
            name: [{key: value for key, value in one.items() if value not in ("", False, None)} for one in table]
            for name, table in tables.items()
        }
    )


def in_words(row):
    """What a row says, with the text of a line in the place of its number."""

    def at(place):
        if place["file"] != str(PLANTED):
            return Path(place["file"]).name
        return " in ".join(filter(None, (f"`{LINES[place['line'] - 1].strip()}`", place["function"])))

    reason = re.sub(r"planted\.py:(\d+)", lambda found: f"`{LINES[int(found[1]) - 1].strip()}`", row["reason"])
    places = {name: row[name] for name in ("called_from", "defined_at", "cleared_at", "made_at")}
    what = {name: row[name] for name in ("factory", "closure", "library", "numpy_bytes", "numbers", "unused_donations")}
    said = [
        f"{row['function']}: {row['reason_code']}: {reason}",
        *(f"  {name} {at(place)}" for name, place in places.items() if place["line"]),
        *(f"  {name} {value}" for name, value in what.items() if value),
        *(f"  {' '.join(f'{key}={value}' for key, value in leaf.items())}" for leaf in row["signature"]),
    ]
    return "".join(f"  {line}\n" for line in said)


def test_a_row_says_why_with_what_and_from_where(told):
    """What JAX derives has other names in each of its versions; of secrets it matters what is not there."""
    cases = [
        case for case in itertools.takewhile(lambda case: case != "end", told) if case not in ("derived", "secrets")
    ]
    held_cases("recompilations.txt", {case: "".join(map(in_words, rows(told, case))) for case in cases})


def test_nothing_went_wrong_and_nothing_is_kept(told):
    end = told["end"]
    assert told["problems"] == 0
    assert end["running"] == []
    assert end["threads"] == 1
    assert end["alive"] == [False, False, False]


def test_operations_of_a_large_program_name_the_helper(told):
    (row,) = rows(told, "unrolled")
    made = {(made["file"], LINES[made["line"] - 1].rpartition("# ")[2]) for made in row["made_by"]}
    assert made == {(str(PLANTED), "made here")}
    assert {made["name"] for made in row["made_by"]} >= {"sin", "add"}
    assert not rows(told, "shape")[0]["made_by"], "a small program has none"


def test_a_row_says_what_it_took(told):
    row = rows(told, "shape")[1]
    assert all(row[f"{stage}_seconds"] > 0 for stage in ("trace", "lower", "compile"))
    assert row["operations"] >= 1
    assert row["cache"] == "off"


def test_stages_that_did_not_happen_have_no_time(told):
    assert rows(told, "traced_within")[1]["trace_seconds"] is None
    assert rows(told, "sharding")[1]["trace_seconds"] is None
    assert rows(told, "lowered_only")[0]["compile_seconds"] is None
    by_hand = rows(told, "by_hand")[0]
    assert all(by_hand[f"{stage}_seconds"] > 0 for stage in ("trace", "lower", "compile"))


def test_programs_derived_by_grad_are_not_taken_for_the_function(told):
    *derived, plain = rows(told, "derived", "loss")
    assert derived[0]["reason"] == "the first time under grad"
    assert plain["reason_code"] == "first"
    assert [leaf["name"] for leaf in plain["signature"]] == ["x"]


def test_a_compilation_within_a_trace_takes_its_time_out_of_it(told):
    inner, outer = rows(told, "within_a_trace")
    assert [(leaf["name"], leaf["type"]) for leaf in inner["signature"]] == [("q", "f32[3]")]
    assert inner["reason"] == ""
    assert outer["function"] == "outer"
    assert outer["began_seconds"] < inner["began_seconds"]
    inside = inner["lower_seconds"] + inner["compile_seconds"]
    assert outer["began_seconds"] + outer["trace_seconds"] + inside < outer["monotonic_seconds"]


def test_the_persistent_cache_is_told(told):
    first, second = rows(told, "persistent_cache")
    assert (first["cache"], first["saved_seconds"]) == ("miss", None)
    assert second["cache"] == "hit"
    assert isinstance(second["saved_seconds"], float)


def test_outermost_traces_are_offered_with_their_call(told):
    assert told["traced_within"]["calls"] == ["<lambda>"]
    assert told["static_argument"]["calls"] == ["repeat", "repeat", "repeat"]


def test_the_seconds_of_the_main_thread_cover_its_rows(told):
    before_the_end = itertools.takewhile(lambda item: item[0] != "end", told.items())
    every = [row for _, case in before_the_end for row in case["rows"] if not row["thread"]]
    for stage in ("trace", "lower", "compile"):
        total = sum(row[f"{stage}_seconds"] or 0.0 for row in every)
        assert total <= told["end"]["seconds"][stage] * 1.001
    compiled = sum(row["compile_seconds"] or 0.0 for row in every)
    assert compiled == pytest.approx(told["end"]["seconds"]["compile"], rel=0.02)


def test_functions_that_libraries_compile_have_the_users_names(told):
    cases = {
        case: [row for row in rows(told, case) if row["function"] != "evaluate"] for case in ("nnx_jit", "filter_jit")
    }
    held_cases(
        "recompilations_in_libraries.txt", {case: "".join(map(in_words, found)) for case, found in cases.items()}
    )


def arguments(row):
    return {leaf["name"]: leaf["type"] for leaf in row["signature"]}


def test_arguments_of_nnx_that_were_given_before_are_counted(told):
    first, second = rows(told, "nnx_jit", "evaluate")
    assert {"batch[0]", "batch[1]"} < set(arguments(first))
    assert all(name.startswith(("model", "batch")) for name in arguments(first))
    assert second["reason"] == "shape of batch[0]: f32[2] → f32[3]"


def test_arguments_of_a_pmap_have_the_users_names(told):
    first, second = rows(told, "pmap", "step")
    if "#0" in arguments(first):
        pytest.skip("the pmap of this jax compiles without a jit: only the flat arguments are seen")
    assert arguments(first) == {"params['w']": "f32[2,1]", "x": "f32[2,2]"}
    assert second["reason"] == "shape of x: f32[2,2] → f32[2,3]"


def test_no_row_holds_a_secret_that_the_program_was_compiled_for(told):
    """What else a value holds is shown, and the secret's name."""
    assert "hunter" not in json.dumps(told["secrets"])
    assert "layers=4" in json.dumps(told["secrets"])
    reasons = [row["reason"] for row in rows(told, "secrets")]
    assert "static argument api_key: [redacted] → another [redacted]" in reasons, reasons
