"""An exception as its user meets it: with the frames of their own code, and a line about memory if it was that."""

from __future__ import annotations

import pytest

from jaxprof.engine.measure.failure import failed, is_out_of_memory
from jaxprof.engine.measure.run import inputs_of
from jaxprof.errors import DoesNotFitError, JaxprofError
from jaxprof.events import RunSpec


@pytest.mark.parametrize(
    ("error", "memory"),
    [
        (MemoryError("Unable to allocate 931. GiB"), True),
        (MemoryError(), True),
        (RuntimeError("RESOURCE_EXHAUSTED: allocating 1 bytes"), True),
        (DoesNotFitError("not run", "smaller"), True),
        (JaxprofError("what", "mend it"), False),
        (ValueError("shapes differ"), False),
    ],
)
def test_whether_it_was_for_want_of_memory(error: Exception, memory: bool) -> None:
    assert is_out_of_memory(error) == memory
    assert failed(error).out_of_memory == memory


def test_an_error_of_ours_is_its_words_and_has_no_traceback() -> None:
    found = failed(JaxprofError("no such device", "look at devices"))
    assert (found.status, found.error, found.advice, found.traceback) == (
        "failed", "no such device", "look at devices", ""
    )  # fmt: skip


def test_an_error_that_cannot_say_its_text_is_the_end_of_the_run() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise TypeError("no text")

    assert failed(Mute()).error == "Mute: (its text cannot be had: TypeError)"


def test_the_frames_that_measure_are_left_out_also_of_what_led_to_it() -> None:
    def users() -> None:
        try:
            inputs_of(RunSpec(workload="x", variant="jit", how="jit", device="cpu:0", target="no_such_thing"))
        except Exception as error:
            raise ValueError("mine") from error

    with pytest.raises(ValueError, match="mine") as caught:
        users()
    text = failed(caught.value).traceback
    assert "test_failure.py" in text
    assert "engine/measure" not in text.replace("tests/engine/measure", "")
    assert "no_such_thing" in text, "why it was raised stays"
    assert text.rstrip().endswith("ValueError: mine")
