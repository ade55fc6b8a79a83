"""A place at a URL, and the form of it that may be shown: without passwords and tokens."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from jaxprof.errors import UsageError
from jaxprof.files import with_home
from jaxprof.redaction import REDACTED, url_secrets, without_url_secrets

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(?:::[^\s:]+)*://\S")
"""At least two letters before the colon: `C://x` is a path on Windows."""
URLS: Final = "JAXPROF_URLS"
"""The variable that keeps a process, and what it starts, from URLs: tools of `jaxprof agent mcp` read files alone."""
ALLOWED, REFUSED = "allowed", "refused"
_UNSAFE: Final = re.compile(r"[^\w.+@-]+")


def is_url(word: str) -> bool:
    """Whether `word` is the URL of a store, `gs://bucket/run.jaxprof.d`, and not a path."""
    return _URL.match(word) is not None


def path_here(path: str | Path, instead: str) -> Path:
    """The path of a file on this machine, with the home folder for a leading `~`. As a path, `s3://bucket/run` would be
    a folder `s3:` in the current one. Raises UsageError for a URL; `instead`: its hint."""
    if isinstance(path, str) and is_url(path):
        raise UsageError(f"{RemotePlace(path).shown} is a URL, and a file on this machine is needed", instead)
    return with_home(path)


@dataclass(frozen=True, slots=True)
class RemotePlace:
    """A file or a folder in a store."""

    url: str
    """As the user gave it: it may hold secrets, and goes to fsspec alone."""

    @property
    def scheme(self) -> str:
        """`s3` of `s3://bucket/run`."""
        return self.url.partition("://")[0].rpartition("::")[2].lower()

    @property
    def layers(self) -> list[str]:
        """`zip` and `https` of `zip://a.jaxprof::https://host/x.zip`."""
        return [part.partition("://")[0].lower() for part in self.url.split("::")]

    @property
    def shown(self) -> str:
        """The URL without its secrets, as screens, logs and sessions may have it."""
        return without_url_secrets(re.sub(r"\s", "%20", self.url)).rstrip("/")

    @property
    def name(self) -> str:
        """The last part of its path, as a local file may be called."""
        parts = urlsplit(self.url)
        last = unquote((parts.path.rstrip("/") or parts.netloc.rpartition("@")[2]).rpartition("/")[2])
        return _UNSAFE.sub("-", last).strip(".-") or "store"

    @property
    def is_folder(self) -> bool:
        """Whether its name says so: no store has to be asked."""
        return self.url.endswith("/") or self.name.endswith(".jaxprof.d")

    @property
    def key(self) -> str:
        """One word for this URL, from which it cannot be read."""
        return hashlib.sha256(self.url.rstrip("/").encode("utf-8", "backslashreplace")).hexdigest()[:16]

    def clean(self, text: str) -> str:
        """What a library said of this place, without the secrets of the URL."""
        for secret in url_secrets(self.url):
            text = text.replace(secret, REDACTED)
        return without_url_secrets(text)
