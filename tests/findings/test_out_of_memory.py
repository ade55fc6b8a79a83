"""What is said when memory has run out: of real messages (`messages/`, each with its source), of changes that were
compiled, and of the arrays of a program. Each sentence has a case in which it is true, and a near one."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

import program_events as made
from analysis.made_runs import run, session
from golden import finding_text, held_cases
from jaxprof import events as e
from jaxprof.analysis.kernels.out_of_memory import read_message, read_out_of_memory
from jaxprof.findings.derive import explanation
from jaxprof.findings.out_of_memory import memory_finding, message_remedies, remedy_sentences
from jaxprof.findings.programs import findings

GIB = 1 << 30
MESSAGES = sorted((Path(__file__).parent / "messages").glob("*.txt"))
DONATED = e.RemedyTried(remedy="donate", subject="state", peak_bytes=4 * GIB)
HALVED = e.RemedyTried(remedy="half", subject="x, y", size=16, peak_bytes=6 * GIB, temporary_bytes=4 * GIB)


def said_of(path):
    message = read_message(path)
    found = message and memory_finding("asked", message.bytes["asked"], message.buffers, message)
    return finding_text(found) if found is not None else "  no message\n"


def test_real_messages_say_what_was_asked_for_and_held():
    assert all(path.read_text().startswith("source: https://github.com/") for path in MESSAGES)
    held_cases("messages.txt", {path.stem: said_of(path) for path in MESSAGES})


def sentences(*tried, peak=8 * GIB, temporaries=6 * GIB, limit=None, refused=False):
    return remedy_sentences(tried, peak, temporaries, limit, refused=refused)


def test_a_change_that_needs_less_is_named_with_both_peaks():
    assert sentences(DONATED) == ["Donating `state` (donate_argnums): peak 8.00 GiB → 4.00 GiB"]
    assert sentences(replace(DONATED, peak_bytes=8 * GIB)) == []
    smaller = [replace(each, subject="all", peak_bytes=each.peak_bytes - 1) for each in (HALVED, DONATED)]
    assert [each.partition(":")[0] for each in sentences(HALVED, DONATED, *smaller)] == [
        "Donating `all` (donate_argnums)",
        "`x`, `y` with half the rows, 16",
    ], "the best of each kind, and the first batch"
    assert sentences(replace(HALVED, temporary_bytes=5 * GIB)) == [], "rows of parameters"
    assert sentences(HALVED, DONATED)[1] == "`x`, `y` with half the rows, 16: peak 8.00 GiB → 6.00 GiB"


def test_a_change_fits_only_where_the_limit_is_known():
    assert sentences(HALVED, DONATED, limit=5 * GIB) == [
        "Donating `state` (donate_argnums): peak 8.00 GiB → 4.00 GiB: fits in 5.00 GiB",
        "`x`, `y` with half the rows, 16: peak 8.00 GiB → 6.00 GiB",
    ]
    refused = sentences(HALVED, peak=None, limit=5 * GIB, refused=True)
    assert refused == ["`x`, `y` with half the rows, 16: peak 6.00 GiB: fits in 5.00 GiB"], "its compiler said so"


PADDED = "Ran out of memory in memory space hbm. Used 40.0G of 16.0G hbm.\n1. Size: 32.00G\n  Shape: s32[8,4]{1,0}\n"
SHARES = "Out of memory allocating 9 bytes.\narguments 2.00G\nOutput size 3.00G; shares {} with arguments.\n"
ENTRY = 'Buffer {}:\n  Size: 2.00GiB\n  Operator: op_name="jit(f)/{}/dot" source_file="/x/f.py" source_line=3\n'
SHAPED = "  XLA Label: fusion\n  Shape: {}[8,4]\n  =====\n"


def listed(*entries):
    lists = (ENTRY.format(at, name) + SHAPED.format(dtype) for at, (name, dtype) in enumerate(entries, 1))
    return "Out of memory while trying to allocate 9 bytes.\n" + "".join(lists)


SHOWN = {
    "padding": (PADDED + "  Extra memory due to padding: 31.00G", PADDED + "  Extra memory due to padding: 1.00G"),
    "donating": (SHARES.format("0B"), SHARES.format("2.00G")),
    "jax.checkpoint": (listed(*[("jvp(g)", "bf16")] * 2), listed(*[("transpose(jvp(g))", "bf16"), ("jvp(g)", "bf16")])),
    "bfloat16": (listed(("g", "f32")), listed(("g", "bf16"), ("g", "f32"), ("g", "bf16"))),
}


@pytest.mark.parametrize("word", SHOWN)
def test_a_message_shows_a_cause_or_does_not(word):
    shown, near = (" ".join(message_remedies(read_out_of_memory(text))) for text in SHOWN[word])
    assert word in shown
    assert word not in near


def refusal(free):
    """A run whose program XLA compiled, and that was not started."""
    held = e.BuffersReported(
        run="r1", source="buffer assignment", peak_bytes=8 * GIB, parts={"argument": 2 * GIB, "temporary": 6 * GIB},
        buffers=[e.HeldBuffer(bytes=6 * GIB, kind="temporary", instruction="sort", file="/x/f.py", line=3)],
        asked_bytes=6 * GIB, free_bytes=free,
    )  # fmt: skip
    end = e.RunFinished(run="r1", status="failed", error="not run: needs 6.0 GiB", advice="Choose a smaller size.")
    sums = e.MemoryReported(run="r1", argument_bytes=2 * GIB, output_bytes=GIB, temporary_bytes=5 * GIB)
    return session([*run("r1", sums, held)[:-1], replace(DONATED, run="r1"), end])


def test_a_run_that_was_not_started_has_its_remedies():
    (found,) = explanation(refusal(3 * GIB), "s").findings
    assert found.code == "out_of_memory"
    assert found.where == e.SourceLocation("/x/f.py", 3)
    assert "peak 8.00 GiB → 4.00 GiB: fits in 5.00 GiB. Choose" in found.fix
    (found,) = explanation(refusal(None), "s").findings
    assert "peak 8.00 GiB → 4.00 GiB. Choose" in found.fix, "how much was free is unknown"


HBM = (
    "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries (31.56G) exceeds "
    "available HBM (15.75G)."
)
"""What libtpu 0.0.42 says of a program that it compiles for a TPU v5e."""


@pytest.mark.parametrize("error", [HBM, "RESOURCE_EXHAUSTED: Attempting to allocate 31.56G. There are 15.75G free."])
def test_only_a_compiler_that_refuses_says_what_fits(error):
    end = e.RunFinished(run="r1", status="failed", error=error, traceback=f"JaxRuntimeError: {error}")
    (found,) = explanation(session([*run("r1")[:-1], replace(DONATED, run="r1"), end]), "s").findings
    assert found.bytes == int(31.56 * GIB)
    fits = "Donating `state` (donate_argnums): peak 4.00 GiB: fits in 15.8 GiB"
    assert (fits in found.fix) == (error is HBM) == ("Donating" in found.fix)


@pytest.mark.parametrize("before", ["[rank3]: ", "2025-03-11 10:22:31,113 ERROR train: "])
def test_lines_of_a_log_say_the_same_as_the_message(before):
    text = next(path.read_text() for path in MESSAGES if path.stem == "tpu-compiler")
    assert read_out_of_memory("".join(before + line for line in text.splitlines(True))).bytes == (
        read_out_of_memory(text).bytes
    )


def test_buffer_of_a_message_that_is_cut_off_has_no_shape():
    cut = listed(("g", "f32")).partition("  XLA Label")[0]
    message = read_out_of_memory(cut)
    assert "x/f.py:3 2.00 GiB (shape unknown)" in memory_finding("asked", 9, message.buffers, message).message


SPACES = {
    "vmem": "Ran out of memory in memory space vmem. Used 20.51M of 16.00M vmem. Exceeded vmem capacity by 4.51M.",
    "shared memory": "Shared memory size limit exceeded: requested 270336, available: 232448",
    "": "Ran out of memory in memory space hbm. Used 18.62G of 15.75G hbm. Exceeded hbm capacity by 2.87G.",
}


@pytest.mark.parametrize("space", SPACES)
def test_memory_of_a_core_is_not_that_of_the_device(space):
    error = f"RESOURCE_EXHAUSTED: {SPACES[space]}"
    message = read_out_of_memory(error)
    ended = e.ProgramEnded(exit_code=1, wall_seconds=9.0, error=f"JaxRuntimeError: {error}", run=made.RUN)
    (program,) = [each for each in findings(made.result(ended, exit_code=1)) if each.code == "program_failed"]
    call = memory_finding("asked", message.bytes["asked"], message.buffers, message)
    assert message.on_chip == space
    for found in (program, call):
        assert (f"the {space} of a core has" in found.message) == bool(space)
        assert ("smaller blocks" in found.fix) == bool(space)


@pytest.mark.parametrize(("file", "line"), [("/x/f.py", 7), ("/site-packages/f.py", None)])
def test_a_call_op_by_op_is_at_the_line_that_asked(file, line):
    traceback = f'  File "{file}", line 7, in step\n    y = x * z\n  File "/lib/python3.12/a.py", line 9, in f\n'
    error = "RESOURCE_EXHAUSTED: Out of memory allocating 99 bytes."
    end = e.RunFinished(run="r1", status="failed", error=error, traceback=f"{traceback}JaxRuntimeError: {error}")
    (found,) = explanation(session([*run("r1", how="eager")[:-1], end]), "s").findings
    assert found.code == "out_of_memory"
    assert found.bytes == 99
    assert (found.where and found.where.line) == line


def test_a_program_names_its_arrays_and_buffers_by_line():
    text = listed(("jvp(g)", "f32"), ("jvp(g)", "f32"))
    error, _, details = text.partition("\n")
    arrays = [
        e.LineArrays(location=made.at(12), count=4, bytes=3 * GIB),
        e.LineArrays(location=e.NOWHERE, count=1, bytes=9),
    ]
    ended = e.ProgramEnded(
        exit_code=1, wall_seconds=9.0, error=f"JaxRuntimeError: RESOURCE_EXHAUSTED: {error}", run=made.RUN,
        error_details=details, arrays=arrays,
    )  # fmt: skip
    closed = made.result(ended, exit_code=1)
    (found,) = [each for each in findings(closed) if each.code == "program_failed"]
    assert "alive then, by line: x/f.py:3 4.00 GiB (f32[8,4], 2 buffers)" in found.message
    assert "3.00 GiB made at train.py:12 (4 arrays), 9 B made at no line of the user" in found.message
    assert found.fix.startswith(
        "4.00 GiB of the listed buffers are of the forward pass of a gradient, most at x/f.py:3"
    )


@pytest.mark.parametrize("words", ["requested memory exceeds ", "ran out of memory in memory space hbm "])
def test_a_log_is_read_in_time_linear_in_its_length(words):
    began = time.process_time()
    assert read_out_of_memory(words * 8_000) is None
    assert time.process_time() - began < 5.0, "10 s and more if each is followed to the end"
