"""Files: what is read, what is refused, and by which name."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from jaxprof.errors import HloError
from jaxprof.hlo.read import files

TEXT = "HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"


def packed(data: bytes) -> bytes:
    """Without the time of day: it would be in the test's name, and differ between processes that share the tests."""
    return gzip.compress(data, mtime=0)


@pytest.mark.parametrize(
    "data",
    [TEXT.encode(), packed(TEXT.encode()), TEXT.encode("utf-8-sig"), TEXT.encode("utf-16"),
     TEXT.replace("m\n", "m\x00\n", 1).encode(), TEXT.encode() + b"// \xff\xfe\n"],
)  # fmt: skip
def test_forms_of_text(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "module.txt"
    path.write_bytes(data)
    (module,) = files.load(path)
    assert [one.opcode for one in module["e"]] == ["parameter"]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "the file is empty"),
        (packed(b""), "the file is empty"),
        (packed(TEXT.encode())[:-9], "truncated"),
        (b"\x1f\x8b\x08broken", "gzip"),
        (b"ML\xefR\r\x00", "MLIR bytecode"),
        (b"\x7fELF" + bytes(50), "ELF"),
        (b"\x89PNG\r\n", "PNG"),
        (bytes(range(256)) * 8, "binary file"),
        (b"\x0a\x05hello\x12\x04\x08\x01\x10\x02", "not HLO"),
        (b"module @jit_f {\n}\n", "StableHLO"),
    ],
)
def test_what_is_refused(data: bytes, what: str, tmp_path: Path) -> None:
    path = tmp_path / "thing.bin"
    path.write_bytes(data)
    with pytest.raises(HloError, match=what) as caught:
        files.load(path)
    assert str(path) in caught.value.what


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(HloError, match="No such file"):
        files.load(tmp_path / "absent.txt")
    with pytest.raises(HloError, match="directory"):
        files.load(tmp_path)
