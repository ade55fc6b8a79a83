"""Source that is shown is that which was recorded, and nothing else is opened."""

import hashlib
import os

import pytest

from jaxprof.base.recorded_source import recorded_lines
from jaxprof.base.text import REDACTED

SOURCE = 'a = 1\nb = 2\napi_key = "sk-proj-Ab12Cd34Ef56Gh78"\r\nd = 4\n'


def test_source_lines_are_those_of_the_file_that_was_recorded(tmp_path):
    file = tmp_path / "model.py"
    file.write_bytes(SOURCE.encode())
    sources = {str(file): hashlib.sha256(SOURCE.encode()).hexdigest()}

    def read(line, around=0, given=sources):
        return recorded_lines(str(file), line, given, around)

    assert read(2) == ((2, "b = 2"),)
    assert read(1, around=1) == ((1, "a = 1"), (2, "b = 2"))
    assert [number for number, _ in read(4, around=9)] == [1, 2, 3, 4]
    assert read(99) == read(0) == ()
    ((_, secret),) = read(3)
    assert REDACTED in secret, "as in all that is recorded"
    assert "Ab12" not in secret
    assert read(2, given={}) == read(2, given={str(file): ""}) == read(2, given={str(file): "0" * 64}) == ()
    stat = file.stat()
    file.write_bytes(SOURCE.replace("2", "3").encode())
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert read(2) == (), "another file now, of the same size"


@pytest.mark.parametrize("name", ["absent.py", "nul\0.py", "folder.py", "pipe.py", "notes.txt", "//host/share/x.py"])
def test_nothing_else_is_opened(tmp_path, name, monkeypatch):
    (tmp_path / "folder.py").mkdir()
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "notes.txt").write_text(SOURCE)
    path = name if name.startswith("//") else str(tmp_path / name)
    looked = []
    monkeypatch.setattr(os, "stat", lambda path, *_, stat=os.stat, **more: looked.append(path) or stat(path, **more))
    digest = hashlib.sha256(SOURCE.encode()).hexdigest()
    assert recorded_lines(path, 1, {path: digest}) == ()
    assert recorded_lines(path, 1, {}) == ()
    assert path not in looked or name.endswith(("absent.py", "\0.py", "folder.py", "pipe.py"))


def test_files_of_another_machine_are_found_below_the_folder(tmp_path, monkeypatch):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "model.py").write_text(SOURCE)
    (tmp_path / "model.py").write_text("another = 1\n")
    elsewhere, outside = "/there/repo/lib/model.py", "/there/../lib/model.py"
    digest = hashlib.sha256(SOURCE.encode()).hexdigest()
    monkeypatch.chdir(tmp_path)
    assert recorded_lines(elsewhere, 2, {elsewhere: digest}) == ((2, "b = 2"),)
    assert recorded_lines(elsewhere, 2, {elsewhere: "0" * 64}) == ()
    assert recorded_lines(outside, 2, {outside: digest}) == (), "no end of a path that goes up"
    monkeypatch.chdir(tmp_path / "lib")
    assert recorded_lines(elsewhere, 2, {elsewhere: digest}) == ((2, "b = 2"),), "a shorter end"
