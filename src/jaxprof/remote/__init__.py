"""Sessions and jobs at the URL of any store that fsspec knows, fetched to be read. Everything else works on the local
copy. Here: a URL, and the form of the URL that may be shown, without passwords and tokens.

Fetching needs the extra `remote` (fsspec), which is imported where it is used.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from jaxprof.base.errors import UsageError
from jaxprof.base.files import with_home
from jaxprof.base.redaction import url_secrets, without_url_secrets
from jaxprof.base.text import REDACTED
from jaxprof.base.values import frozen

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(?:::[^\s:]+)*://\S")
"""At least two letters before the colon: `C://x` is a path on Windows."""
URLS = "JAXPROF_URLS"
"""Environment variable that keeps a process and its children from URLs: `jaxprof agent mcp` reads only files."""
ALLOWED, REFUSED = "allowed", "refused"
_UNSAFE = re.compile(r"[^\w.+@-]+")


def is_url(word: str) -> bool:
    """Return whether `word` is the URL of a store, such as `gs://bucket/run.jaxprof.d`, and not a path."""
    return _URL.match(word) is not None


def path_here(path: str | Path, instead: str) -> Path:
    """Return the path of a file on this machine, with the home folder for a leading `~`. Raises UsageError for a URL,
    with the hint `instead`: as a path, `s3://bucket/run` would be in a folder `s3:` of the current one."""
    if isinstance(path, str) and is_url(path):
        raise UsageError(f"{RemoteUrl(path).shown} is a URL, and a file on this machine is needed", instead)
    return with_home(path)


@frozen
class RemoteUrl:
    """A file or a folder in a store."""

    url: str
    """URL as the user gave it. It may hold secrets, and goes only to fsspec."""

    @property
    def scheme(self) -> str:
        """Scheme of the store: `s3` of `s3://bucket/run`."""
        return self.url.partition("://")[0].rpartition("::")[2].lower()

    @property
    def shown(self) -> str:
        """URL without its secrets, for screens, logs and sessions."""
        return without_url_secrets(re.sub(r"\s", "%20", self.url)).rstrip("/")

    @property
    def name(self) -> str:
        """Last part of the URL's path, as a name for a local file."""
        parts = urlsplit(self.url)
        last = unquote((parts.path.rstrip("/") or parts.netloc.rpartition("@")[2]).rpartition("/")[2])
        return _UNSAFE.sub("-", last).strip(".-") or "store"

    @property
    def key(self) -> str:
        """Hash of the URL, as the name of a folder that does not reveal it."""
        return hashlib.sha256(self.url.rstrip("/").encode("utf-8", "backslashreplace")).hexdigest()[:16]

    def clean(self, text: str) -> str:
        """Return a text of a library about this URL without the secrets of the URL."""
        for secret in url_secrets(self.url):
            text = text.replace(secret, REDACTED)
        return without_url_secrets(text)
