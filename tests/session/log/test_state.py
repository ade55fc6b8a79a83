"""What is derived from a session has a folder of its own, which goes when the session goes."""

from __future__ import annotations

from pathlib import Path

from jaxprof.session.log.state import (
    derived_folder,
    forget_derived,
    forget_derived_of_lost,
    make_derived_folder,
    state_folder,
)


def a_session(folder: Path, name: str = "x") -> Path:
    path = folder / f"{name}.jaxprof"
    path.touch()
    return path


def test_each_session_has_one_folder_that_is_the_users_own(tmp_path):
    one, other = a_session(tmp_path), a_session(tmp_path, "y")
    assert not derived_folder(one).exists()
    made = make_derived_folder(one)
    assert made == derived_folder(one) != derived_folder(other)
    assert made.is_relative_to(state_folder())
    assert made.stat().st_mode & 0o777 == 0o700
    assert make_derived_folder(one) == made, "it is there already"


def test_what_was_derived_goes_with_its_session_and_what_others_have_stays(tmp_path):
    one, other = a_session(tmp_path), a_session(tmp_path, "y")
    for session in (one, other):
        (make_derived_folder(session) / "runs.arrow").touch()
    forget_derived(one)
    forget_derived(one)  # again: no error
    assert not derived_folder(one).exists()
    assert (derived_folder(other) / "runs.arrow").exists()


def test_what_was_derived_from_sessions_that_are_lost_goes(tmp_path):
    kept, lost, unnamed, torn = (a_session(tmp_path, name) for name in "abcd")
    folders = {session: make_derived_folder(session) for session in (kept, lost, unnamed, torn)}
    lost.unlink()
    (note,) = folders[unnamed].iterdir()
    note.write_bytes(b"\xff")
    (note,) = folders[torn].iterdir()
    note.unlink()
    note.mkdir()
    forget_derived_of_lost()
    assert [session for session, folder in folders.items() if folder.exists()] == [kept]
