"""What a path holds, and the modules in it, whoever asks. A timeline from outside is whole, or refused in words:
whatever its text holds, and however much of it."""

import json

import pytest

from folding import fold, written
from hlo_sources import BEFORE, BOTH_STAGES, SESSIONS, SOURCES, TEXT
from jaxprof import events as e
from jaxprof.analysis.kernels import open_hlo
from jaxprof.analysis.target import Kind, kind_of
from jaxprof.analysis.timeline import read_timeline
from jaxprof.base.errors import FileRefusedError
from jaxprof.base.text import REDACTED
from report import sessions


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.jaxprof", b"", Kind.SESSION),
        ("renamed", b'{"format":"jaxprof","session":"x"}', Kind.SESSION),
        *(("x", content, Kind.OTHER) for content in (b"{ lambda ; a:f32[8]. let in () }", b"\x7fELF\x02", b"")),
    ],
)
def test_a_session_is_known_by_its_name_or_its_header(name, content, kind, tmp_path):
    (tmp_path / name).write_bytes(content)
    assert kind_of(tmp_path / name) is kind
    assert kind_of(tmp_path / "nothing") is Kind.NOTHING


@pytest.mark.parametrize(
    ("how", "argv", "hint"),
    [
        ("script", ["train.py", "--n", "3"], "jaxprof script --capture-steps 5 train.py --n 3"),
        ("script", ["train.py", "--key", REDACTED], "jaxprof script --capture-steps 5 FILE.py"),
        ("record", ["train.py"], "pass capture_steps=5 to jaxprof.record"),
    ],
)
def test_a_program_without_hlo_says_what_captures_it(how, argv, hint, tmp_path):
    planned = sessions.plan("r1", "program", "program", workload="train.py")
    started = e.ProgramStarted(run="r1", argv=argv, how=how)
    path = written(tmp_path / "s.jaxprof", [planned, started], sessions.HEADER)
    with pytest.raises(FileRefusedError, match="has a compiled program") as refused:
        open_hlo(path, of_profile)
    assert hint in refused.value.hint


def of_profile(path):
    """In place of an engine that reads it."""
    return fold(sessions.HEADER, sessions.jit_run("r1", ""))


@pytest.mark.parametrize("name", SOURCES)
def test_whatever_holds_hlo_is_opened(name, tmp_path):
    (found,), session = open_hlo(SOURCES[name](tmp_path), of_profile)
    assert (session is None) == (name not in SESSIONS)
    if session is not None and name != "session":
        assert found.module().name == "jit_selu"
        return
    assert found.module().name == "jit_g"
    assert ("hlo_before" in found.stages) == (name in BOTH_STAGES)
    if name == "session":
        assert (found.text("hlo"), found.text("hlo_before")) == (TEXT, BEFORE)
        assert (found.key, found.device, found.sources) == ("r1", "cpu:0", {})


def text(**changes):
    lane = {"device": "gpu:0", "name": "n", "kind": "stream", "labels": [["k", 0]], "label": [0], "start": [0]}
    made = {"version": 1, "started_unix_ns": None, "left_out": 0, "ops": [["m", None, "o"]], "counters": []}
    return json.dumps({**made, "lanes": [{**lane, "duration": [5], **changes}]})


@pytest.mark.parametrize(
    "damaged",
    ["[" * 100_000, text(steps=[[float("inf"), 1]]), text(start=["x"]), text(label=[7]), text(duration=[1, 2]),
     text().replace('"start": [0]', '"start": [' + "9" * 5000 + "]"), "{}", ""],
    ids=["levels", "infinity", "text", "label", "columns", "digits", "empty", "nothing"],
)  # fmt: skip
def test_a_damaged_one_is_refused_in_words(damaged):
    with pytest.raises(FileRefusedError, match="is damaged"):
        read_timeline(damaged)


def test_one_of_too_many_values_is_refused_before_they_are_made(monkeypatch):
    monkeypatch.setenv("JAXPROF_LIMITS", "values=100")
    assert sum(map(len, read_timeline(text()).lanes)) == 1
    with pytest.raises(FileRefusedError, match="more than 100 values") as refused:
        read_timeline(text(counters=[[]] * 200))
    assert "JAXPROF_LIMITS=values=" in refused.value.hint
