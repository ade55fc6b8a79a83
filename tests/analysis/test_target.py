"""What a word names, for whom: each row is a word, what a command that only reads finds, and one that compiles."""

import shutil
from pathlib import Path

import pytest

from folding import written
from jaxprof.analysis import target
from jaxprof.analysis.target import Kind, resolve
from jaxprof.base.errors import UsageError
from jaxprof.runner.planning import find_workloads
from job_folders import job, loop
from report import sessions
from tables import rows


@pytest.fixture
def here(tmp_path, state_home, monkeypatch):
    """A folder with a file of each kind, beside a kept session."""
    written(state_home / "sessions" / "kept-by-selu.jaxprof", sessions.events(), sessions.HEADER)
    folder = tmp_path / "here"
    for name, text in {
        "m.hlo": sessions.HLO,
        "dump/m.after_optimizations.txt": sessions.HLO,
        "train.py": "",
        "app.py/__main__.py": "",
        "last.py": "",
        "notes.md": "",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    shutil.copy(state_home / "sessions" / "kept-by-selu.jaxprof", folder / "a.jaxprof")
    job(folder / "run.jaxprof.d", loop(), loop())
    monkeypatch.chdir(folder)
    return folder


def shown(found):
    return f"{found.kind.name}:{found.run}" if found.run else found.kind.name


def test_one_table_says_what_a_word_names(here):
    for word, reads, compiles in rows("""
        a.jaxprof                   SESSION     SESSION
        ./a.jaxprof                 SESSION     SESSION
        run.jaxprof.d               JOB         JOB
        m.hlo                       HLO         HLO
        dump                        HLO         HLO
        notes.md                    OTHER       OTHER
        app.py                      OTHER       OTHER
        app.py/                     OTHER       OTHER
        train.py                    OTHER       PROGRAM
        train.py:step               OTHER:step  FUNCTION
        train.py:r1                 OTHER:r1    FUNCTION
        gone.py                     NOTHING     FUNCTION
        package.module:step         NOTHING     FUNCTION
        package.module              NOTHING     NOTHING
        selu                        SESSION     WORKLOAD
        selu:jit                    SESSION:jit  WORKLOAD
        kept-by-selu                SESSION     SESSION
        last                        SESSION     SESSION
        last:r1                     SESSION:r1  SESSION:r1
        last:jit                    SESSION:jit  SESSION:jit
        kept-by:r1                  SESSION:r1  SESSION:r1
        a.jaxprof:selu              SESSION:selu  SESSION:selu
        run:r1                      JOB:r1      JOB:r1
        gone.jaxprof:r1             NOTHING     NOTHING
        HEAD@{1:a}                  NOTHING     NOTHING
        :/fix                       NOTHING     NOTHING
    """):
        assert shown(resolve(word, runs=True)) == reads, word
        assert shown(resolve(word, code=True, runs=True)) == compiles, word
        assert not resolve(word, runs=True).is_code, "who only reads is never given code"


def test_standard_input_names_nothing(here):
    with pytest.raises(UsageError, match="standard input"):
        resolve("-")
    shutil.copy(here / "a.jaxprof", here / "-")
    assert resolve("-").kind is Kind.SESSION


def test_a_kept_session_is_never_code_where_only_code_counts(here):
    for word in ("kept-by-selu", "last", "last:r1", "run.jaxprof.d", "dump", "app.py"):
        assert not resolve(word, code=True, kept=False).is_code
        with pytest.raises(UsageError):
            find_workloads([resolve(word, code=True, kept=False)], None, ())
    assert resolve("package.module", code=True, kept=False).kind is Kind.FUNCTION


def test_order_of_readings_of_a_base(here):
    asked = []

    def is_revision(word):
        asked.append(word)
        return True

    for word, kind in (("kept-by-selu", Kind.SESSION), ("last", Kind.SESSION), ("selu", Kind.WORKLOAD)):
        assert resolve(word, code=True, is_revision=is_revision).kind is kind
    assert asked == []
    assert resolve("kept-by", code=True, is_revision=is_revision).kind is Kind.REVISION
    assert resolve("kept-by", code=True, is_revision=lambda word: False).kind is Kind.SESSION


def test_last_is_the_newest_session_where_a_job_does_not_count(here):
    assert resolve("last", jobs=True).kind is Kind.JOB
    found = resolve("last")
    assert (found.kind, found.newer_job) == (Kind.SESSION, here / "run.jaxprof.d")


def test_what_comes_from_a_url_is_its_copy_and_never_code(here, monkeypatch):
    with pytest.raises(UsageError, match="is a URL, and a file on this machine is needed"):
        resolve("gs://bucket/a.jaxprof")
    monkeypatch.setattr(target, "_fetch", lambda url, note: here / Path(url).name)
    found = resolve("gs://bucket/a.jaxprof:r1", print, code=True, runs=True)
    assert (found.kind, found.path, found.run) == (Kind.SESSION, here / "a.jaxprof", "r1")
    assert resolve("gs://bucket/app.d", print, code=True).kind is Kind.NOTHING
    with pytest.raises(UsageError, match="what comes from a URL is not run"):
        resolve("gs://bucket/train.py", print, code=True)
