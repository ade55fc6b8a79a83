"""Recompilations of every kind, planted in a real program: what the ledger says of each, on every jax that is here.

Functions that are compiled through wrappers, libraries' and the user's own, have the user's names."""

import itertools
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from golden import held_cases
from pythons import EVERY

pytestmark = pytest.mark.process  # a recorded child, shared by the tests

PLANTED = Path(__file__).with_name("planted.py")
LINES = PLANTED.read_text(encoding="utf-8").splitlines()
SOURCE = Path(__file__).parents[3] / "src"


@pytest.fixture(scope="module", params=EVERY)
def told(request):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    done = subprocess.run(
        [request.param, str(PLANTED)], env=environment, capture_output=True, text=True, timeout=110, check=False
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
    """A row of the ledger whose own rows say only what applies to them."""
    tables = {name: row[name] for name in ("signature", "constants", "unused_donations")}
    return row | {
        name: [{key: value for key, value in one.items() if value not in ("", False, None)} for one in table]
        for name, table in tables.items()
    }


def line_of(mark):
    (number,) = [number for number, line in enumerate(LINES, 1) if line.endswith(f"# line: {mark}")]
    return number


def in_words(row):
    """What a row says, with the text of a line in the place of its number."""

    def at(number):
        return f"`{LINES[number - 1].strip()}`"

    reason = re.sub(r"planted\.py:(\d+)", lambda found: at(int(found[1])), row["reason"])
    places = {name: row[name]["line"] for name in ("called_from", "cleared_at", "made_at")}
    what = {name: row[name] for name in ("factory", "closure", "numpy_bytes", "unused_donations")}
    said = [
        f"{row['function']}: {row['reason_code']}: {reason}",
        *(f"  {name} {at(line)}" for name, line in places.items() if line),
        *(f"  {name} {value}" for name, value in what.items() if value),
        *(f"  {' '.join(f'{key}={value}' for key, value in leaf.items())}" for leaf in row["signature"]),
    ]
    return "".join(f"  {line}\n" for line in said)


def test_a_row_says_in_words_why_it_was_compiled_with_which_arguments_and_from_where(told):
    """What JAX derives has other names in each of its versions."""
    cases = [case for case in itertools.takewhile(lambda case: case != "end", told) if case != "derived"]
    held_cases("recompilations.txt", {case: "".join(map(in_words, rows(told, case))) for case in cases})


def test_nothing_went_wrong_and_nothing_is_kept(told):
    end = told["end"]
    assert (told["problems"], end["running"], end["threads"]) == (0, [], 1)
    assert end["alive"] == [False, False, False]


def test_a_row_says_where_it_was_called_and_what_it_took(told):
    row = rows(told, "shape")[1]
    assert row["called_from"] == {"file": str(PLANTED), "line": line_of("shape"), "function": "shape"}
    assert row["defined_at"] == {"file": str(PLANTED), "line": line_of("shape") - 2, "function": ""}
    assert not row["library"]
    assert all(row[f"{stage}_seconds"] > 0 for stage in ("trace", "lower", "compile"))
    assert row["operations"] >= 1
    assert row["cache"] == "off"
    assert row["signature"] == [{"name": "x", "type": "f32[3]", "bytes": 12}]


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


def arguments(row):
    return {leaf["name"]: leaf["type"] for leaf in row["signature"]}


X = "argument x: f32[2] → f32[3]"
PLAIN = {
    "update_wrapper": ("step", {"params['w']": "f32[1]", "x": "f32[2]", "scale": "f32[]"}, X),
    "bound_method": ("step", {"x": "f32[2]", "more[0]": "f32[2]"}, f"{X}; argument more[0]: f32[2] → f32[3]"),
    "pmap": ("step", {"params['w']": "f32[2,1]", "x": "f32[2,2]"}, "argument x: f32[2,2] → f32[2,3]"),
}


@pytest.mark.parametrize("case", PLAIN)
def test_the_function_and_its_arguments_have_the_users_names(told, case):
    function, named, reason = PLAIN[case]
    first, second = rows(told, case, function)
    if case.endswith("pmap") and "#0" in arguments(first):
        pytest.skip("the pmap of this jax compiles without a jit: only the flat arguments are seen")
    assert arguments(first) == named
    assert (first["reason_code"], second["reason_code"], second["reason"]) == ("first", "shape", reason)


def test_a_wrapper_is_defined_where_its_function_is(told):
    for case, function, mark, above in (
        ("update_wrapper", "step", "update_wrapper", 2),
        ("nnx_jit", "train_step", "nnx", 1),
        ("filter_jit", "train_step", "equinox", 1),
    ):
        row = rows(told, case, function)[0]
        assert (row["defined_at"]["line"], row["library"]) == (line_of(mark) - above, False)


def test_nnx_jit(told):
    found = rows(told, "nnx_jit", "train_step")
    assert [row["reason"] for row in found] == ["", X, "argument x: f32[3] → f32[4]"]
    assert arguments(found[0]) == {
        "model.layers[0].value": "f32[1]",
        "model.scale.value": "f32[1]",
        "x": "f32[2]",
        "rate": "f32[]",
    }
    assert found[0]["called_from"]["line"] == line_of("nnx called")
    first, second = rows(told, "nnx_jit", "evaluate")
    assert {"batch[0]", "batch[1]"} < set(arguments(first)), "those that were given before are counted"
    assert all(name.startswith(("model", "batch")) for name in arguments(first))
    assert second["reason"] == "argument batch[0]: f32[2] → f32[3]"


def test_filter_jit(told):
    found = rows(told, "filter_jit", "train_step")
    assert [(row["reason_code"], row["reason"]) for row in found] == [
        ("first", ""),
        ("shape", X),
        ("static_argument", "static argument rate: 0.5 → 0.25"),
        ("structure", "static part of argument model: Model(name='a') → Model(name='b')"),
    ]
    assert arguments(found[0]) == {"model.layers[0]": "f32[1]", "x": "f32[2]", "rate": "0.5"}


@pytest.mark.parametrize(
    ("case", "named"),
    [
        ("nnx_jit", {"self.layers[0].value", "self.scale.value", "x"}),
        ("filter_jit", {"self.layers[0]", "x"}),
    ],
)
def test_methods_and_calls_of_modules(told, case, named):
    first, second = rows(told, case, "method")
    assert (set(arguments(first)), second["reason"]) == (named, X)
    for called in rows(told, case, "Model"):
        assert set(arguments(called)) == named
