"""A run through the real process: the right events in the right order, from real JAX on the CPU."""

from dataclasses import replace

import pytest

from engine.child import of_type, phases, samples, wanted
from pythons import FURTHER

pytestmark = pytest.mark.process


def request(variant, **options):
    return wanted("selu", variant, parameters={"n": 100_000}, budget_seconds=0.2, **options)


def completed(lines):
    assert lines[-1]["status"] == "ok", lines[-1]
    return lines


@pytest.fixture(scope="module")
def compiled(engine):
    return completed(engine.run(request("jit")))


def check_compiled_run(lines):
    """What a run of a compiled selu says, on any version of JAX."""
    ended = phases(lines)
    assert [name for name in ended if name != "inputs"] == [
        "import",
        "backend_init",
        "warm_up",
        "transfer_in",
        "trace",
        "lower",
        "compile",
        "first_run",
        "run",
        "pipelined",
        "dispatch",
        "transfer_out",
        "check",
    ]
    assert all(line["run"] == "r1" for line in lines if line["type"] != "heartbeat")
    stamps = [line["monotonic_seconds"] for line in lines]
    assert stamps == sorted(stamps)
    assert stamps[0] > 0
    texts = {line["name"] for line in of_type(lines, "text_recorded")}
    assert texts == {"source", "jaxpr", "stablehlo", "hlo_before", "hlo"}
    assert not of_type(lines, "cost_reported"), "the client counts the HLO"
    assert of_type(lines, "memory_reported")[0]["argument_bytes"] == 400_000
    assert ended["transfer_in"]["bytes"] == 400_000
    assert ended["transfer_in"]["zero_copy"] is True
    assert {line["code"] for line in of_type(lines, "warning_raised")} == {"zero_copy"}
    assert of_type(lines, "check_reported")[0]["passed"] is True


def test_a_compiled_variant_goes_through_every_phase(compiled):
    check_compiled_run(compiled)


@pytest.mark.parametrize("python", FURTHER)
def test_other_interpreters_say_the_same(start, python):
    check_compiled_run(completed(start(python=python).run(request("jit"))))


def test_phases_last_no_longer_than_their_events_are_apart(compiled):
    began = {line["phase"]: line["monotonic_seconds"] for line in of_type(compiled, "phase_started")}
    for name in ("trace", "lower", "compile", "run"):
        ended = phases(compiled)[name]
        assert 0 < ended["seconds"] <= ended["monotonic_seconds"] - began[name] + 1e-3, name


def test_a_numpy_variant_never_imports_jax(start):
    lines = completed(start().run(request("numpy")))
    assert [name for name in phases(lines) if name not in ("import", "inputs")] == ["run"]
    environment = of_type(lines, "environment_read")[-1]
    assert environment["jax"] is None
    assert environment["settings"]["load_average_after"] is not None
    assert samples(lines, "run")
    (cost,) = of_type(lines, "cost_reported")
    assert (cost["flops"], cost["bytes_accessed"]) == (5 * 100_000, 8 * 100_000), "of each element"
    assert cost["source"] == "workload's own estimate", "XLA does not compile it whole"


def test_the_passes_under_the_profiler_come_last_and_tell_kernels_and_a_profile_is_kept_on_request(engine, tmp_path):
    path = tmp_path / "kept.xplane.pb"
    lines = completed(engine.run(replace(request("jit", capture=True), keep_trace=str(path))))
    names = list(phases(lines))
    assert names[names.index("transfer_out") + 1 :][:2] == ["capture_run", "capture_compile"]
    taken = {line["kind"]: line for line in of_type(lines, "capture_taken")}
    assert taken["run"]["platform"] == "cpu"
    assert taken["run"]["calls"] >= 2
    assert taken["run"]["seconds_with"] > 0
    assert (taken["run"]["path"], path.stat().st_size > 0) == (str(path), True)
    (measured,) = [line for line in of_type(lines, "kernels_measured") if line["kind"] == "run"]
    assert measured["rows"]
    assert all(row["count"] == taken["run"]["calls"] for row in measured["rows"])
