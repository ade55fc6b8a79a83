"""Profiles that JAX records here and now, on CPU; other tools' figures for the same files where they are there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jaxprof.hlo.read.parse import module
from jaxprof.trace.imported import text_of
from jaxprof.trace.ops import op_times
from jaxprof.trace.sources import read_profile
from jaxprof.trace.steps import steps_of

CALLS = 3


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three annotated calls of a program with a loop, a compile outside of the profile."""
    import jax
    import jax.numpy as jnp

    @jax.jit
    def step(x: Any) -> Any:
        def body(carry: Any, _: None) -> tuple[Any, None]:
            return jnp.tanh(carry @ carry.T), None

        return jnp.sort(jax.lax.scan(body, x, None, length=4)[0].sum(0))

    x = jnp.ones((64, 64))
    step(x).block_until_ready()
    folder = tmp_path_factory.mktemp("recorded")
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    jax.profiler.start_trace(str(folder), profiler_options=options)
    for number in range(CALLS):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            step(x).block_until_ready()
    jax.profiler.stop_trace()
    return folder


def events_by_jax(folder: Path) -> Iterator[tuple[str, str, float, float]]:
    """Thread, op, start and duration in ns, of each HLO op, as JAX's own reader gives them."""
    from jax.profiler import ProfileData

    (file,) = folder.rglob("*.xplane.pb")
    for plane in ProfileData.from_file(str(file)).planes:
        for line in plane.lines:
            for event in line.events:
                stats = dict(event.stats)
                if "hlo_op" in stats and not event.name.startswith("end: "):
                    yield line.name, str(stats["hlo_op"]), event.start_ns, event.duration_ns


def test_totals_agree_with_a_sum_by_hand(recorded: Path) -> None:
    sums: dict[str, list[float]] = {}
    for _, name, _, duration in events_by_jax(recorded):
        sums.setdefault(name, []).append(duration)
    rows = {row.op.name: row for row in op_times(read_profile(recorded))}
    assert set(rows) == set(sums)
    for name, durations in sums.items():
        assert rows[name].count == len(durations)
        assert rows[name].total_seconds == pytest.approx(sum(durations) * 1e-9, rel=1e-9)


def test_self_times_add_up_to_the_time_in_which_ops_ran(recorded: Path) -> None:
    lines: dict[str, list[tuple[float, float]]] = {}
    for line, _, start, duration in events_by_jax(recorded):
        lines.setdefault(line, []).append((start, start + duration))
    covered = 0.0
    for spans in lines.values():
        reached = float("-inf")
        for start, end in sorted(spans):
            covered += max(0.0, end - max(start, reached))
            reached = max(reached, end)
    assert sum(row.self_seconds for row in op_times(read_profile(recorded))) == pytest.approx(covered * 1e-9, rel=1e-6)


def test_the_hlo_in_the_file_has_the_ops_that_ran(recorded: Path) -> None:
    trace = read_profile(recorded)
    (program,) = {(row.op.module, row.op.program) for row in op_times(trace)}
    text, problem = text_of(trace, program)
    assert text is not None, problem
    names = {one.name for computation in module(text).computations.values() for one in computation.instructions}
    assert {row.op.name for row in op_times(trace)} <= names


def test_the_annotated_steps_hold_all_of_the_work(recorded: Path) -> None:
    steps = steps_of(read_profile(recorded))
    assert (steps.found_by, [row.name for row in steps.rows]) == ("annotation", ["train 0", "train 1", "train 2"])
    assert steps.outside_seconds == pytest.approx(0, abs=1e-9)


REAL = Path(os.environ.get("JAXPROF_REAL_PROFILES", "/nowhere"))
"""A folder with `xplane/NAME.xplane.pb` and `reference/NAME/hlo_stats.json` as the xprof package answers."""


@pytest.mark.parametrize("name", sorted(path.name for path in (REAL / "reference").glob("*")) or [None])
def test_totals_agree_with_the_recorded_answers_of_xprof(name: str | None) -> None:
    if name is None:
        pytest.skip("JAXPROF_REAL_PROFILES names no folder with profiles and what xprof says of them")
    answer = json.loads((REAL / "reference" / name / "hlo_stats.json").read_text())
    agree(REAL / "xplane" / f"{name}.xplane.pb", answer)


def test_totals_agree_with_xprof_where_it_is_installed(tmp_path: Path) -> None:
    convert = pytest.importorskip("xprof.convert.raw_to_tool_data")
    names = sorted(path.name for path in (REAL / "reference").glob("*"))
    files = [REAL / "xplane" / f"{name}.xplane.pb" for name in names]
    if not files:
        pytest.skip("JAXPROF_REAL_PROFILES names no folder with profiles")
    for path in files:
        copy = tmp_path / path.name / path.name  # it writes caches beside the file, and finds them again
        copy.parent.mkdir()
        copy.write_bytes(path.read_bytes())
        data, _ = convert.xspace_to_tool_data([str(copy)], "hlo_stats", {})
        agree(path, json.loads(data))


def agree(path: Path, answer: dict[str, Any]) -> None:
    """Counts, totals and self times of each op of each program; xprof's rows are sums over the devices.

    Its IDLE rows are no ops, and are not compared.
    """
    columns = [column["id"] for column in answer["cols"]]
    theirs = {}
    for cells in answer["rows"]:
        row = dict(zip(columns, [cell.get("v") for cell in cells["c"]], strict=True))
        if row["category"] != "IDLE":
            key = (row["program_id"], row["hlo_op_name"])
            theirs[key] = (row["occurrences"], row["total_time"], row["total_self_time"])
    ours: dict[tuple[str, str], tuple[float, float, float]] = {}
    for one in op_times(read_profile(path)):
        key = (str(one.op.program), one.op.name)
        count, total, own = ours.get(key, (0, 0.0, 0.0))
        ours[key] = (count + one.count, total + one.total_seconds * 1e6, own + one.self_seconds * 1e6)
    assert set(ours) == set(theirs)
    for key, figures in theirs.items():
        assert ours[key] == pytest.approx(figures, rel=1e-6)
