from pathlib import Path

import pytest

import jaxprof
from jaxprof.errors import UsageError
from jaxprof.remote.place import RemotePlace, is_url, path_here

URLS = ["gs://bucket/run.jaxprof.d", "s3://b", "file:///tmp/x", "simplecache::s3://b/x"]
NONE = ["run.jaxprof.d", "C://runs/x", "C:\\x", "last", "select 'a://b'", "train.py:step", "http://", "/a://b"]


@pytest.mark.parametrize("word", [*URLS, *NONE])
def test_what_is_a_url_of_a_store(word):
    assert is_url(word) is (word in URLS)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("gs://bucket/a/run.jaxprof.d/", "gs://bucket/a/run.jaxprof.d"),
        ("ssh://alice@host/run", "ssh://alice@host/run"),
        ("ssh://alice:hunter22@host/run", "ssh://alice:[redacted]@host/run"),
        ("http://alice:hunter 22@host/run", "http://alice:[redacted]@host/run"),
        ("https://ghp-a-token@host/run", "https://[redacted]@host/run"),
        ("https://host/run?sv=1&sig=abcd%2Fef", "https://host/run?[redacted]"),
    ],
)
def test_what_is_shown_of_a_url_has_no_secrets_and_says_where(url, shown):
    assert RemotePlace(url).shown == shown


def test_what_a_library_says_is_shown_without_the_secrets_of_the_url():
    place = RemotePlace("https://alice:hunter22@host/run?sig=abcd%2Fefgh&v=2")
    said = place.clean("401 for url https://host/run?sig=abcd%2Fefgh&v=2: hunter22, abcd/efgh")
    assert "hunter22" not in said
    assert "abcd" not in said
    assert said.startswith("401 for url https://host/run")


@pytest.mark.parametrize(
    ("url", "name"),
    [("gs://b/a/run.jaxprof.d/", "run.jaxprof.d"), ("gs://bucket", "bucket"), ("http://h/a%20b/..%2F", "store"),
     ("https://h/x.jaxprof?sig=1", "x.jaxprof"), ("https://h/..%2F..%2Fetc%00", "etc")],
)  # fmt: skip
def test_the_local_name_of_a_place_stays_in_its_folder(url, name):
    assert RemotePlace(url).name == name


def test_a_url_is_no_path_of_this_machine():
    assert path_here("~/run.jaxprof", "no") == Path.home() / "run.jaxprof"
    assert path_here(Path("run.jaxprof"), "no") == Path("run.jaxprof")
    with pytest.raises(UsageError) as refused:
        path_here("s3://key:hunter22@bucket/run.jaxprof", "Copy it.")
    assert refused.value.what.startswith("s3://key:[redacted]@bucket/run.jaxprof is a URL")
    assert refused.value.hint == "Copy it."


@pytest.mark.parametrize("call", [jaxprof.load, jaxprof.record])
def test_the_api_takes_no_url(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="is a URL"):
        call("gs://bucket/run.jaxprof")
    assert not list(tmp_path.iterdir())
