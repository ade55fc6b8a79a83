from pathlib import Path

import pytest

import jaxprof
from golden import cases, held_cases
from jaxprof.errors import UsageError
from jaxprof.remote.place import RemotePlace, is_url, path_here


def told(word):
    """Whether it is a URL of a store; what is shown of it; and the name of its copy here, which stays in its folder."""
    if not is_url(word):
        return "  no URL\n"
    place = RemotePlace(word)
    assert not any(secret in place.shown for secret in ("hunter", "token", "abcd"))
    assert "/" not in place.name
    return f"  shown {place.shown}, named {place.name}\n"


def test_what_is_a_url_of_a_store_and_what_is_shown_of_it():
    held_cases("urls.txt", {word: told(word) for word in cases("urls.txt")})


def test_what_a_library_says_is_shown_without_the_secrets_of_the_url():
    place = RemotePlace("https://alice:hunter22@host/run?sig=abcd%2Fefgh&v=2")
    said = place.clean("401 for url https://host/run?sig=abcd%2Fefgh&v=2: hunter22, abcd/efgh")
    assert "hunter22" not in said
    assert "abcd" not in said
    assert said.startswith("401 for url https://host/run")


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
