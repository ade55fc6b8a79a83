"""`jaxprof export` in each of its formats, and profiles that were recorded elsewhere."""

import gzip
import json
import re

import pytest

from folding import written
from hlo_sources import TEXT, write_kernels
from jaxprof import events as e
from report import sessions
from tui.profiles import timeline


@pytest.fixture
def file(tmp_path):
    runs = [*sessions.numpy_run("r1"), *sessions.jit_run("r2", "r1"), *sessions.captures("r2")]
    return written(tmp_path / "s.jaxprof", runs, sessions.HEADER)


def test_a_page_is_written_and_not_replaced_without_force(call, file, tmp_path):
    out, packed = tmp_path / "page.html", tmp_path / "page.gz"
    done = call("export", file, "--format", "html", "-o", out)
    assert (done.code, done.out) == (0, "")
    content = out.read_bytes()
    assert content.startswith(b"<!doctype")
    assert call("export", file, "--format", "html", "-o", out).code != 0
    assert call("export", file, "--format", "html", "-o", out, "--force").code == 0
    assert out.read_bytes() == content
    assert call("export", file, "--format", "html", "-o", packed).code == 0
    assert gzip.decompress(packed.read_bytes()) == content


def test_file_of_another_format_is_refused_without_format(call, file, tmp_path):
    out = tmp_path / "report.md"
    done = call("export", file, "-o", out)
    assert done.code == 2
    assert not out.exists()
    assert "report.html" in done.err
    assert call("export", file, "--format", "html", "-o", out).code == 0


def test_export_of_several_timelines_names_the_command_for_one(call, tmp_path):
    runs = [*sessions.numpy_run("r1")]
    for run in ("r2", "r3"):
        text = e.TextRecorded(run=run, name="timeline", text=timeline())
        runs += [*sessions.jit_run(run, "r1"), text]
    file, out = written(tmp_path / "two.jaxprof", runs, sessions.HEADER), tmp_path / "timeline.json"
    several = call("export", file)
    assert several.code == 2
    assert "2 runs" in several.err
    assert f"jaxprof export {file} --run r2" in several.err
    assert call("export", file, "--run", "r2", "-o", out).code == 0
    assert "traceEvents" in json.loads(out.read_text())


def test_the_tables_of_a_session_are_files_of_parquet(call, file, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = tmp_path / "tables"
    words = ("export", file, "--format", "parquet", "-o", folder)
    assert call(*words).code == 0
    assert [run["run"] for run in parquet.read_table(folder / "runs.parquet").to_pylist()] == ["r1", "r2"]
    assert not (folder / "compiles.parquet").exists(), "a table without rows is left out"
    assert call(*words).code == 2
    assert call(*words, "--force").code == 0
    assert call(*words, "--run", "r2").code == call("export", file, "--format", "parquet").code == 2


@pytest.mark.parametrize(
    ("words", "begin", "hint"),
    [
        ("-o page.html", b"<!doctype", ""),
        ("-o page.HTM", b"<!doctype", ""),
        ("-o page.html.gz", b"\x1f\x8b", ""),
        ("-o timeline.json --run r2", b"{", ""),
        ("-o page.html --format perfetto", b"", "Leave out --format, or name it page.json."),
        ("-o page.json.gz --format html", b"", "Leave out --format, or name it page.html."),
        ("-o page.html --run r77", b"", "Leave it out."),
        ("-o timeline.json --run r77", b"", "Known: r1, r2."),
        ("-o folder", b"", "Name a file in it: folder/timeline.json"),
        ("-o folder --force --format html", b"", "Name a file in it: folder/page.html"),
    ],
)
def test_format_of_a_file_is_its_ending(words, begin, hint, call, file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    text = e.TextRecorded(run="r2", name="timeline", text=timeline())
    written(
        file.with_name("t.jaxprof"), [*sessions.numpy_run("r1"), *sessions.jit_run("r2", "r1"), text], sessions.HEADER
    )
    done = call("export", "t.jaxprof", *words.split())
    assert done.code == (2 if hint else 0)
    assert done.out == ""
    assert done.err.rstrip().endswith(hint)
    out = tmp_path / words.split()[1]
    assert not hint or out.is_dir() or not out.exists()
    assert hint or out.read_bytes().startswith(begin)


@pytest.mark.process
def test_a_profile_is_imported_and_its_timeline_exported(call, tmp_path):
    kept, out, hlo = (tmp_path / name for name in ("kept.jaxprof", "out.json", "m.hlo"))
    profile = write_kernels(tmp_path / "box.xplane.pb.gz", 3, kernel="k\x1b[31m", op="fusion\x1b[2J", module="jit_f")
    first, again = (call("open", "--keep", profile, "-o", kept) for _ in range(2))
    assert (first.code, again.code) == (0, 2)
    assert "\ncosts most  " in first.err
    assert f"jaxprof open {kept} --kernels" in first.err
    whole, program = call("open", kept, "--format", "json", "--full").data["runs"]
    assert [row["count"] for row in whole["device_steps"]] == [1]
    (kernel,) = program["kernels"]
    assert (kernel["executions"], kernel["flops_per_second"]) == (3, None)
    assert call("export", kept, "-o", out).code == 0
    intervals = [event for event in json.loads(out.read_text())["traceEvents"] if event["ph"] == "X"]
    assert [(event["ts"], event["dur"]) for event in intervals] == [(0.0, 4.0), (10.0, 4.0), (20.0, 4.0)]
    shown = call("open", profile).out
    assert "fusion␛[2J" in shown
    assert "\x1b" not in shown
    hlo.write_text(TEXT)
    assert f"jaxprof hlo {hlo}" in call("open", "--keep", hlo, "-o", tmp_path / "none.jaxprof").err


@pytest.mark.process
def test_truncated_profile_says_what_is_missing(call, tmp_path):
    whole = write_kernels(tmp_path / "whole.xplane.pb", 40)
    cut = tmp_path / "cut.xplane.pb"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    complete, truncated = call("open", whole, "--kernels"), call("open", cut, "--kernels", "--format", "json")
    assert (complete.code, complete.err) == (0, "")
    assert truncated.code == 5
    assert "/device:GPU:0 is truncated or damaged: it lacks" in truncated.err
    assert re.search(r"; (\d+ ops on 1|no op of a) device could be read", truncated.err)
