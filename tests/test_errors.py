from __future__ import annotations

from pathlib import Path

from jaxprof.errors import JaxprofError, missing_file, system_words, unknown_name


def test_both_halves_are_in_the_text() -> None:
    assert str(JaxprofError("it failed", "mend it")) == "it failed\nmend it"
    assert str(JaxprofError("it failed")) == "it failed"


def test_unknown_name_names_the_near_ones() -> None:
    assert "matmul" in unknown_name("workload", "matmull", ["matmul", "selu"]).hint


def test_a_missing_file_names_its_neighbours_or_the_folder(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    assert missing_file(tmp_path / "trian.py").hint == "In that folder there is: train.py."
    assert missing_file(tmp_path / "zzzzzzzz").hint == f"The folder is {tmp_path}."
    assert missing_file(tmp_path / "models" / "train.py").hint == f"There is no folder {tmp_path / 'models'} either."
    assert missing_file("with\0nul").what == "there is no file with\0nul"


def test_what_the_system_refused_is_told_in_its_words_without_a_number_and_a_path() -> None:
    assert system_words(OSError(28, "No space left on device", "/tmp/x")) == "No space left on device"
    assert system_words(OSError("cannot seek")) == "cannot seek"
