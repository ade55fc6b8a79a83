"""What is sent of a growing recording, to stores that work, are slow, and break."""

import random

import pytest

import flaky_store
from flaky_store import FlakyFileSystem as Flaky
from jaxprof.remote import upload
from jaxprof.remote.place import RemotePlace
from jaxprof.remote.upload import RATE, SentFile, Uploader, Version, is_due
from waiting import until


@pytest.fixture(autouse=True)
def as_if_nothing_had_happened(monkeypatch):
    monkeypatch.setattr(upload, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(upload, "_FIRST_PAUSE_SECONDS", 0.02)
    flaky_store.register()


def started(tmp_path, name="run.jaxprof.d"):
    uploader = Uploader(RemotePlace(f"flaky://{tmp_path / 'store' / name}"), tmp_path / "spool" / name)
    uploader.source.parent.mkdir()
    uploader.start()
    return uploader


def written(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(text)
    return part.replace(path)


def stored(tmp_path):
    root = tmp_path / "store"
    return {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_a_folder_is_sent_while_it_grows_and_whole_at_its_end(tmp_path):
    uploader = started(tmp_path)
    written(uploader.source, "process-00000.jaxprof", "header\n")
    until(lambda: stored(tmp_path) == {"run.jaxprof.d/process-00000.jaxprof": "header\n"})
    written(uploader.source, "process-00000.jaxprof", "header\nevent\n{half of an ev")
    written(uploader.source, "rollup/steps/process-00000.parquet", "PAR1")
    outcome = uploader.finish(30)
    assert (outcome.unsent, outcome.failure, outcome.bytes) == ((), "", 17)
    assert stored(tmp_path) == {
        "run.jaxprof.d/process-00000.jaxprof": "header\nevent\n",
        "run.jaxprof.d/rollup/steps/process-00000.parquet": "PAR1",
    }, "whole lines, and nothing half written is left"
    uploader = Uploader(RemotePlace(f"flaky://{tmp_path}/again/run.jaxprof.d"), uploader.source)
    Flaky.puts.clear()
    uploader.start()
    assert uploader.finish(30).unsent == ()
    assert next(name for name, _ in Flaky.puts).startswith(".process-00000.parquet."), "roll-ups go first"


@pytest.mark.parametrize("error", [OSError("the store is down"), RuntimeError("an odd library")])
def test_a_store_that_comes_back_gets_everything(tmp_path, error):
    Flaky.error, Flaky.only = error, "put"
    uploader = started(tmp_path)
    written(uploader.source, "process-00000.jaxprof", "header\n")
    until(lambda: uploader._failure)
    Flaky.error = None
    assert uploader.finish(30).unsent == ()
    assert stored(tmp_path) == {"run.jaxprof.d/process-00000.jaxprof": "header\n"}


@pytest.mark.parametrize(
    ("setting", "failure"),
    [
        ({"error": OSError("the store is down"), "only": "put"}, "the store is down"),
        ({"seconds": 5.0, "only": "put"}, "it took longer than 0 s"),
        ({"size": lambda self, path: 3}, "of 7 bytes of process-00000.jaxprof the store has 3"),
    ],
    ids=["dead", "hanging", "cutting"],
)
def test_a_store_that_does_not_take_it_is_waited_for_no_longer_than_said(tmp_path, monkeypatch, setting, failure):
    for name, value in setting.items():
        monkeypatch.setattr(Flaky, name, value)
    uploader = started(tmp_path)
    path = written(uploader.source, "process-00000.jaxprof", "header\n")
    outcome = uploader.finish(0.2)
    assert (outcome.unsent, outcome.failure) == (("process-00000.jaxprof",), failure)
    assert path.read_text() == "header\n"


@pytest.mark.parametrize("seed", range(2))
def test_what_is_sent_in_all_is_bounded_however_a_file_grows(seed):
    chance = random.Random(seed)
    size, total, now = 1000, 0, 0.0
    sent = None
    while now < 86_400:
        now += chance.choice([2.0, 2.0, 2.0, 60.0])
        size += chance.choice([0, 1, 1000, 100_000 if seed % 2 else 0])
        version = Version(size, int(now))
        if is_due(version, sent, now - sent.at_seconds if sent is not None else 0.0):
            total += size
            sent = SentFile(version, size, now)
    assert total <= 5 * size + 1000 + RATE * now
    assert size <= 1.25 * sent.sent_bytes + 200_000, "the store is never far behind"
