"""A run through the real process: the right events in the right order, from real JAX on the CPU. And what goes wrong,
planted: in the user's code, in the request, in the interpreter, and from outside."""

import ctypes
import signal
import tempfile
from pathlib import Path

import pytest

from engine.child import is_phase, of_type, phases, wanted
from held_compile import HELD_COMPILE
from jaxprof.engine.protocol.request import CancelRequest
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
    # Heartbeats come from a thread of their own, which may be overtaken between its clock and the pipe.
    stamps = [line["monotonic_seconds"] for line in lines if line["type"] != "heartbeat"]
    assert stamps == sorted(stamps)
    assert stamps[0] > 0
    texts = {line["name"] for line in of_type(lines, "text_recorded")}
    assert texts == {"source", "jaxpr", "stablehlo", "hlo_before", "hlo"}
    assert not of_type(lines, "cost_reported"), "the client counts the HLO"
    assert of_type(lines, "memory_reported")[0]["argument_bytes"] == 400_000
    assert ended["transfer_in"]["bytes"] == 400_000
    assert ended["transfer_in"]["zero_copy"] is False, "as an array of a user's, which begins anywhere"
    assert ended["run"]["page_faults"] >= 0
    assert {line["code"] for line in of_type(lines, "warning_raised")} == {"zero_copy"}
    assert of_type(lines, "check_reported")[0]["passed"] is True


def test_a_compiled_variant_goes_through_every_phase(compiled):
    check_compiled_run(compiled)


@pytest.mark.parametrize("python", FURTHER)
def test_other_interpreters_say_the_same(start, python):
    check_compiled_run(completed(start(python=python).run(request("jit"))))


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"), reason="only glibc learns from what is freed"
)
def test_temporaries_stay_with_the_process(start):
    """Three temporaries of 4 MB, in a process that has freed nothing larger: 2 165 page faults a call otherwise."""
    run = wanted("selu", "numpy", parameters={"n": 1_000_000}, budget_seconds=1.0)
    assert phases(completed(start().run(run)))["run"]["page_faults"] < 50


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
    (cost,) = of_type(lines, "cost_reported")
    assert (cost["flops"], cost["bytes_accessed"]) == (5 * 100_000, 8 * 100_000), "of each element"


def test_captures_come_last_and_have_kernels(engine):
    lines = completed(engine.run(request("jit", capture=True)))
    names = list(phases(lines))
    assert names[names.index("transfer_out") + 1 :][:2] == ["capture_run", "capture_compile"]
    taken = {line["kind"]: line for line in of_type(lines, "capture_taken")}
    assert taken["run"]["platform"] == "cpu"
    assert taken["run"]["calls"] >= 2
    assert taken["run"]["seconds_with"] > 0
    (measured,) = [line for line in of_type(lines, "kernels_measured") if line["kind"] == "run"]
    assert measured["rows"]
    assert all(row["count"] == taken["run"]["calls"] for row in measured["rows"])


def ask(child, target, variant="jit", **options):
    return child.run(wanted(target, variant, **options))


def written(folder, text):
    path = Path(tempfile.mkdtemp(dir=folder)) / "mine.py"  # the process keeps what it imported from a path
    path.write_text(text)
    return str(path)


def test_folded_constants_and_dead_code_are_named(engine, tmp_path):
    path = written(
        tmp_path,
        "import jax.numpy as jnp\nimport numpy as np\nW = np.random.default_rng(0).random((100, 100), 'f')\n"
        "def folded(x):\n"
        "    jnp.sort(x)\n    return x + jnp.sum(jnp.dot(W, W))\n"
        "def folded_inputs():\n    return (np.ones((8, 8), np.float64),)\n",
    )
    lines = ask(engine, f"{path}:folded")
    assert lines[-1]["status"] == "ok"
    assert {"folded_constants", "dead_code", "dtype_narrowed"} <= {
        line["code"] for line in of_type(lines, "warning_raised")
    }
    texts = {line["name"]: line["text"] for line in of_type(lines, "text_recorded")}
    assert all(len(text) < 20_000 for text in texts.values()), "weights must not end in the file"


def test_an_exception_in_tracing_is_a_failed_run(engine, tmp_path):
    path = written(tmp_path, "def branch(x):\n    if x[0] > 0:\n        return x\n    return -x\n")
    lines = ask(engine, f"{path}:branch", arguments=["f32[8]"])
    finished = lines[-1]
    assert finished["status"] == "failed"
    assert "TracerBoolConversionError" in finished["error"]
    assert "jnp.where" in finished["advice"]
    assert "if x[0] > 0" in finished["traceback"]
    assert "jaxprof/measure" not in finished["traceback"]
    assert "trace" not in phases(lines), "a phase that failed has no end"


@pytest.mark.parametrize(
    ("indent", "raised"), [("    ", "KeyboardInterrupt"), ("", "type('Odd', (BaseException,), {})")]
)
def test_a_base_exception_is_a_failed_run(engine, tmp_path, indent, raised):
    """When the function is called, and when its file is imported."""
    path = written(tmp_path, f"def stop(x):\n    pass\n{indent}raise {raised}('enough')\n")
    finished = ask(engine, f"{path}:stop", "jax", arguments=["f32[8]"])[-1]
    assert finished["status"] == "failed"
    assert finished["error"] == f"{'Odd' if 'Odd' in raised else raised}: enough"
    assert engine.process.poll() is None


def test_what_does_not_fit_is_said_before_it_is_run(engine):
    lines = ask(engine, "matmul", "numpy", parameters={"n": 10_000_000})
    assert lines[-1]["status"] == "failed"
    assert lines[-1]["error"].startswith("not run: one call needs about")
    assert "inputs" not in phases(lines)


@pytest.mark.parametrize(
    ("changes", "near"),
    [
        ({"target": "sely"}, "selu"),
        ({"target": "selu", "variant": "jot"}, "jit"),
        ({"target": "selu", "parameters": {"m": 3}}, "n"),
        ({"target": "selu", "device": "cpu:7"}, "cpu:0"),
    ],
)
def test_an_unknown_name_fails_the_run_and_names_the_near_ones(engine, changes, near):
    finished = ask(engine, **changes)[-1]
    assert finished["status"] == "failed"
    assert near in finished["advice"]


def test_a_run_cancelled_in_sampling_is_followed_by_another(engine):
    engine.send(wanted("selu", budget_seconds=600.0, parameters={"n": 1000}))
    engine.until(lambda line: line["type"] == "samples_taken" and line["series"] == "run")
    engine.send(CancelRequest())
    assert engine.finished()["status"] == "cancelled"
    assert ask(engine, "selu", "numpy", parameters={"n": 1000})[-1]["status"] == "ok"


def test_an_engine_without_client_ends_within_a_compile(start, tmp_path):
    path = written(tmp_path, HELD_COMPILE)
    child = start()
    child.send(wanted(f"{path}:held", arguments=["f32[1000]"]))
    child.until(is_phase("compile"))
    child.until(lambda line: line["type"] == "heartbeat")
    child.hang_up()
    rest = child.rest()
    assert child.process.wait(30) == 0
    assert "compile" not in phases(rest), "it was ended, not waited for"


def test_an_interrupt_is_left_to_the_client(engine):
    engine.send(wanted("selu", parameters={"n": 1000}))
    engine.until(is_phase("run"))
    engine.process.send_signal(signal.SIGINT)
    assert engine.finished()["status"] == "ok"
