"""The sentences for what the recorder sends: those that no planted program has, and what is asked of all."""

import pytest

import program_events as made
from jaxprof import events as e
from jaxprof.analysis.programs.sentences import compile_reason, first_change, note_text, window_text

VALUES = {"name": "x", "before": "f32[4]", "now": "f32[8]", "leaves": {"x": 1}, "more": 2}


@pytest.mark.parametrize("kind", e.REASON_KINDS)
def test_every_kind_of_reason_has_a_sentence(kind):
    assert compile_reason(made.compiled(reasons=[made.reason(kind, **VALUES)]))


def test_a_kind_of_a_newer_version_has_none():
    shape = made.reason("shape", **VALUES)
    assert compile_reason(made.compiled(reasons=[made.reason("newer"), shape])) == "shape of x: f32[4] → f32[8]"
    assert note_text(e.Note(code="newer")) == window_text(e.CaptureWindow(state="failed", code="newer")) == ""


def test_short_reason_has_the_first_change():
    shapes = [made.reason("shape", name, "f32[4]", "f32[8]") for name in ("b['x']", "b['y']")]
    more = made.reason("more", more=3)
    assert first_change(made.compiled(reasons=shapes[:1])) == "shape f32[4] → f32[8]"
    assert first_change(made.compiled(reasons=[*shapes, more])) == "shape f32[4] → f32[8] and 4 more"
    assert (
        first_change(made.compiled(reasons=[made.reason("static_argument", "n", "3", "4")])) == "static argument 3 → 4"
    )
    assert first_change(made.compiled(reasons=[made.reason("new_function")])) == ""


@pytest.mark.parametrize(
    ("note", "words"),
    [
        (e.Note(code="pipe_full", lost=3), "3 events were lost"),
        (e.Note(code="not_unwound", by_signal=True), "(a signal ended it)"),
        (e.Note(code="not_unwound"), "(os._exit, exec, or all descriptors closed)"),
    ],
)
def test_a_note_has_its_values(note, words):
    assert words in note_text(note)
