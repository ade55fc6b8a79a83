"""Programs as users of flax, equinox, optax and numpyro write them, under `jaxprof script`: they do not change, and
the ledger has their functions by name, with the line of the call and the reason of each further compilation."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from jaxprof.analysis.programs.derive import program_result
from recorder.running import notes_of, program_in, run_alone, run_recorded, session_in

PROGRAMS = Path(__file__).with_name("libraries")


@dataclass(frozen=True, slots=True)
class Expected:
    needs: tuple[str, ...]
    function: str
    call: str
    """The line that calls it, as it begins."""
    reasons: tuple[str, ...]
    """One for each compilation."""
    varies: str = ""
    """In the reason of the second one."""
    leaf: str = ""
    """An argument, named as in the user's own objects."""
    code: int = 0


EXPECTED = {
    "linen_classifier": Expected(
        ("flax", "optax"), "train_step", "state, loss = train_step(", ("first", "shape"),
        "argument x: f32[8,8] → f32[4,8]", "state.params['Dense_0']['kernel']",
    ),
    "nnx_regression": Expected(
        ("flax", "optax"), "train_step", "print(f\"{size}: {train_step(", ("first", "shape"),
        "argument x: f32[8,4] → f32[5,4]", "model.hidden.kernel.value",
    ),
    "equinox_mlp": Expected(
        ("equinox", "optax"), "make_step", "model, state, loss = make_step(", ("first", "shape"),
        "argument x: f32[8,4] → f32[5,4]", "model.layers[0].weight", code=4,
    ),
    "optax_schedule": Expected(
        ("optax",), "update", "params, state = update(", ("first",), leaf="params['w']",
    ),
    "numpyro_nuts": Expected(
        ("numpyro",), "_fori_collect_loop", "sampler.run(", ("first",), leaf="init_val[0].z['slope']", code=1,
    ),
}  # fmt: skip


def test_each_program_is_expected_of() -> None:
    assert {path.stem for path in PROGRAMS.glob("*.py")} == set(EXPECTED)


@pytest.mark.process
@pytest.mark.timeout(300)  # numpyro's sampler alone compiles for seconds, and each program runs twice
@pytest.mark.parametrize("name", EXPECTED)
def test_a_library_is_recorded_as_its_users_write_it(name: str, tmp_path: Path) -> None:
    expected = EXPECTED[name]
    missing = [library for library in expected.needs if find_spec(library) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: pip install 'jaxprof[test-libraries]'")
    program = Path(shutil.copy(PROGRAMS / f"{name}.py", tmp_path / f"{name}.py"))
    alone, recorded = run_alone(tmp_path, program.name), run_recorded(tmp_path, program.name)
    assert (alone.code, recorded.code) == (expected.code, expected.code)
    assert alone.out + alone.err
    assert (recorded.out, recorded.err) == (alone.out, alone.err)

    run = program_in(tmp_path)
    assert run.program is not None
    rows = [row for row in run.program.compiled if not row.op_by_op]
    assert [(row.function, row.reason_code) for row in rows] == [(expected.function, code) for code in expected.reasons]
    assert expected.varies in rows[-1].reason
    lines = program.read_text().splitlines()
    for row in rows:
        assert Path(row.called_from.file) == program
        assert lines[(row.called_from.line or 0) - 1].strip().startswith(expected.call)
        assert expected.leaf in {leaf.name for leaf in row.signature}
        assert row.compile_seconds is not None
        assert row.compile_seconds > 0
    assert notes_of(run) == []
    assert {warning.code for warning in run.warnings} <= {"steps_not_counted"}  # on Python 3.11
    assert [run.program.jax is not None, bool(run.program.sampled)] == [True, True]


BATCHES = """
import jax.numpy as jnp
from flax import nnx

class Model(nnx.Module):
    def __init__(self):
        self.scale = nnx.Param(jnp.ones(()))

@nnx.jit
def train_step(model, x):
    model.scale[...] = model.scale[...] * 0.5
    return (x * model.scale[...]).sum()

model = Model()
for size in range(1, 13):
    train_step(model, jnp.ones(size))
"""


@pytest.mark.process
@pytest.mark.timeout(300)
def test_twelve_batch_sizes_of_nnx_are_a_finding_and_a_step_of_it_is_measured(tmp_path: Path) -> None:
    pytest.importorskip("flax.nnx")
    (tmp_path / "train.py").write_text(BATCHES)
    recorded = run_recorded(tmp_path, "train.py", options=["--function", "train_step"])
    assert recorded.code == 0, recorded.err
    session = session_in(tmp_path)
    program, measured = session.runs.values()
    rows = [row for row in program.program.compiled if row.function == "train_step"]  # type: ignore[union-attr]
    assert [row.reason_code for row in rows] == ["first"] + ["shape"] * 11
    assert rows[11].reason == "argument x: f32[11] → f32[12]"
    found = {one.code: one for one in program_result(session, program.id).findings}
    assert "`train_step` was compiled again for 11 other shapes: x f32[1..12]" in found["varying_shapes"].message
    assert (measured.plan.workload, measured.status, measured.error) == ("train.py:train_step", "ok", "")
    assert "not measured" not in recorded.notes
