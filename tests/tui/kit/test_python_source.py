"""Lines of source files, opened with care."""

from __future__ import annotations

from pathlib import Path

from jaxprof.hlo.analysis.origin import HloSourceLocation
from jaxprof.tui.kit.python_source import excerpt


def test_a_source_file_is_read_only_if_it_is_one(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text("a = 1\nb = 2\nc = 3\n")
    assert excerpt(HloSourceLocation(str(path), 2), 1).lines == ((1, "a = 1"), (2, "b = 2"), (3, "c = 3"))
    for bad in ("/dev/zero", str(tmp_path), "/no/such/file", "a\0b"):
        assert excerpt(HloSourceLocation(bad, 1), 1).lines == ()
