"""Functions that are compiled through wrappers, libraries' and the user's own: the ledger has the user's names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.process  # a recorded child, shared by the tests

PLANTED = Path(__file__).with_name("planted_libraries.py")
SOURCE = Path(__file__).parents[3] / "src"


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, str(PLANTED)], env=environment, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["problems"] == 0
    return result


def rows(told: dict[str, Any], case: str, function: str = "") -> list[dict[str, Any]]:
    if case not in told:
        pytest.skip(f"the library of {case} is not installed")
    found = [row for row in told[case] if function in ("", row["function"])]
    assert all(row["event"] == "compiled" for row in found), found
    return found


def arguments(row: dict[str, Any]) -> dict[str, str]:
    return {leaf["name"]: leaf["type"] for leaf in row["signature"]}


def line_of(mark: str) -> int:
    lines = PLANTED.read_text(encoding="utf-8").splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if line.endswith(f"# line: {mark}")]
    return number


X = "argument x: f32[2] → f32[3]"
PLAIN = {
    "update_wrapper": ("step", {"params['w']": "f32[1]", "x": "f32[2]", "scale": "f32[]"}, X),
    "bound_method": ("step", {"x": "f32[2]", "more[0]": "f32[2]"}, f"{X}; argument more[0]: f32[2] → f32[3]"),
    "jit_of_a_jitted_and_checkpointed": ("step", {"x": "f32[2]"}, X),
    "pmap": ("step", {"params['w']": "f32[2,1]", "x": "f32[2,2]"}, "argument x: f32[2,2] → f32[2,3]"),
    "linen_apply": (
        "apply",
        {"variables['params']['scale']": "f32[1]", "args[0]": "f32[2]"},
        "argument args[0]: f32[2] → f32[3]",
    ),
    "filter_pmap": ("train_step", {"model['w']": "f32[2,1]", "x": "f32[2,2]"}, "argument x: f32[2,2] → f32[2,3]"),
}


@pytest.mark.parametrize("case", PLAIN)
def test_the_function_and_its_arguments_have_the_users_names(told: dict[str, Any], case: str) -> None:
    function, named, reason = PLAIN[case]
    first, second = rows(told, case, function)
    if case.endswith("pmap") and "#0" in arguments(first):
        pytest.skip("the pmap of this jax compiles without a jit: only the flat arguments are seen")
    assert arguments(first) == named
    assert (first["reason_code"], second["reason_code"], second["reason"]) == ("first", "shape", reason)


def test_a_wrapper_is_defined_where_its_function_is(told: dict[str, Any]) -> None:
    row = rows(told, "update_wrapper", "step")[0]
    assert (row["defined_at"]["line"], row["library"]) == (line_of("update_wrapper") - 2, False)


def test_nnx_jit(told: dict[str, Any]) -> None:
    found = rows(told, "nnx_jit", "train_step")
    assert [row["reason"] for row in found] == ["", X, "argument x: f32[3] → f32[4]"]
    assert [row["reason_code"] for row in found] == ["first", "shape", "shape"]
    assert arguments(found[0]) == {
        "model.layers[0].value": "f32[1]",
        "model.scale.value": "f32[1]",
        "x": "f32[2]",
        "rate": "f32[]",
    }
    assert found[0]["called_from"]["line"] == line_of("nnx called")
    assert (found[0]["defined_at"]["line"], found[0]["library"]) == (line_of("nnx") - 1, False)


def test_methods_of_nnx_modules(told: dict[str, Any]) -> None:
    first, second = rows(told, "nnx_jit", "method")
    assert set(arguments(first)) == {"self.layers[0].value", "self.scale.value", "x"}
    assert second["reason"] == X


def test_arguments_that_were_given_before_are_counted(told: dict[str, Any]) -> None:
    first, second = rows(told, "nnx_jit", "evaluate")
    assert {"batch[0]", "batch[1]"} < set(arguments(first))
    assert all(name.startswith(("model", "batch")) for name in arguments(first))
    assert second["reason"] == "argument batch[0]: f32[2] → f32[3]"


def test_filter_jit(told: dict[str, Any]) -> None:
    found = rows(told, "filter_jit", "train_step")
    assert [(row["reason_code"], row["reason"]) for row in found] == [
        ("first", ""),
        ("shape", X),
        ("static_argument", "static argument rate: 0.5 → 0.25"),
        ("structure", "static part of argument model: Model(name='a') → Model(name='b')"),
    ]
    assert arguments(found[0]) == {"model.layers[0]": "f32[1]", "x": "f32[2]", "rate": "0.5"}
    assert found[0]["defined_at"]["line"] == line_of("equinox") - 1


def test_methods_and_calls_of_equinox_modules(told: dict[str, Any]) -> None:
    first, second = rows(told, "filter_jit", "method")
    assert set(arguments(first)) == {"self.layers[0]", "x"}
    assert second["reason"] == X
    (called,) = rows(told, "filter_jit", "Model")
    assert set(arguments(called)) == {"self.layers[0]", "x"}
