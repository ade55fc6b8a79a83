"""What a path holds, and the modules in it, whoever asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from folding import fold
from hlo_sources import BEFORE, BOTH_STAGES, FILES, FOLDERS, SESSIONS, SOURCES, TEXT, WRONG
from jaxprof.analysis.opener import Kind, kind_of, open_hlo
from jaxprof.errors import FileRefusedError
from jaxprof.session import Session
from report import sessions


@pytest.mark.parametrize("name", SOURCES)
def test_the_kind_of_each(name: str, tmp_path: Path) -> None:
    expected = Kind.HLO if name in FILES | FOLDERS else Kind.SESSION if name == "session" else Kind.PROFILE
    assert kind_of(SOURCES[name](tmp_path)) is expected


@pytest.mark.parametrize("content", [b'{"format":"jaxprof","session":"x"}', b""])
def test_a_session_is_known_by_its_name_or_its_header(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.jaxprof").write_bytes(content)
    (tmp_path / "renamed").write_bytes(content)
    assert kind_of(tmp_path / "a.jaxprof") is Kind.SESSION
    assert kind_of(tmp_path / "renamed") is (Kind.SESSION if content else None)


@pytest.mark.parametrize("content", [b"hostname\n", b"{ lambda ; a:f32[8]. let in () }", b"\x7fELF\x02", b""])
def test_what_is_nothing_that_is_known_here(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(content)
    assert kind_of(tmp_path / "x") is None
    assert kind_of(tmp_path / "nothing") is None


def of_profile(path: Path) -> Session:
    """In place of an engine that reads it."""
    return fold(sessions.HEADER, sessions.jit_run("r1", ""))


@pytest.mark.parametrize("name", SOURCES)
def test_whatever_holds_hlo_is_opened(name: str, tmp_path: Path) -> None:
    source = open_hlo(SOURCES[name](tmp_path), of_profile)
    (found,) = source.modules
    assert (source.session is None) == (name not in SESSIONS)
    if source.kind is Kind.PROFILE:
        assert found.module().name == "jit_selu"
        return
    assert found.module().name == "jit_g"
    assert ("hlo_before" in found.stages) == (name in BOTH_STAGES)
    if name == "session":
        assert (found.text("hlo"), found.text("hlo_before")) == (TEXT, BEFORE)
        assert (found.key, found.device, found.recorded_seconds) == ("r1", "cpu:0", sessions.HEADER.wall_seconds)


def without_hlo(path: Path) -> Session:
    return fold(sessions.HEADER, sessions.numpy_run("r1"))


@pytest.mark.parametrize("name", WRONG)
def test_what_holds_none_is_refused(name: str, tmp_path: Path) -> None:
    make, said = WRONG[name]
    with pytest.raises(FileRefusedError, match="there is no file" if name == "nothing" else said):
        open_hlo(make(tmp_path), without_hlo)
