"""Decide what a word names, for every command, the tools of `jaxprof agent mcp` (which are commands), and the app.

The first row that fits a word counts:

| word | `Kind` | because of |
|---|---|---|
| a URL, also of a run: `gs://bucket/run.jaxprof:r1` | that of its copy here, never code | what is fetched |
| a path: `run.jaxprof`, `run.jaxprof.d`, `log/`, `dump/` | SESSION, JOB, PROFILE, HLO; else OTHER | the bytes there |
| the path of a file: `train.py` | with `code` PROGRAM; else its newest SESSION or OTHER | the ending |
| with `code`: `selu`, `selu:jit` | WORKLOAD | the catalogue |
| with `code`: `train.py:step`, `package.module:step` | FUNCTION, but not `last:r1`, `a.jaxprof:x` | the form |
| with `code`, without `kept`: `package.module` | FUNCTION | the form |
| `last`, the whole name of a kept session or job | SESSION, JOB | the folder of sessions |
| with `is_revision`: `HEAD~1`, `origin/main` | REVISION | its repository |
| part of the name of a kept session, or its script | SESSION, JOB | the folder of sessions |
| with `runs`: one of these and a colon, `last:r1` | SESSION or PROFILE, with the `run` | as above |
| anything else | NOTHING | |

So what lies at a path is looked at and never run, unless it is a file `*.py`: a folder is a program for `jaxprof
script` alone, which takes nothing but programs and asks nothing. Nothing of a session becomes a module. Two more words
are not decided here: `HOST:PORT`, an address only beside `open --seconds`, and the devices of `--device`
(`runner.device_choice`) and `--for` (`devices.absent`).
"""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from pathlib import Path

from jaxprof.base.errors import FileRefusedError, UsageError, is_path, not_found
from jaxprof.base.files import open_regular, with_home
from jaxprof.base.text import REDACTED
from jaxprof.base.values import frozen
from jaxprof.session.files import EXTENSION, is_job_folder, with_urls

_RUN_OF_URL = re.compile(r"(.+\.jaxprof(?:\.d)?):([^/:]+)")
"""A session at a URL and a run of it: `gs://bucket/a.jaxprof:r1`."""
_RUN_OF_SESSION = re.compile(r"(?:last|.+\.jaxprof(?:\.d)?):.+|.+(?<!\.py):r\d+")
"""A run of a session: `last:r1`, `a.jaxprof:selu`; `step.py:r1` is a function."""
_HEAD_BYTES = 256
_JSON = re.compile(rb"\s*[\[{]\s*[\"\[{]")
_PATIENCE_SECONDS = 2.0
"""Seconds of fetching before the first note on its progress."""
_fetched_paths: dict[str, Path] = {}


class Kind(Enum):
    """What a word names; the value is how people say it."""

    SESSION = "a session"
    JOB = "a job"
    PROFILE = "a profile"
    HLO = "HLO"
    PROGRAM = "a program"
    FUNCTION = "a function"
    WORKLOAD = "a workload"
    REVISION = "a revision"
    OTHER = "neither a program in Python nor a session, a job, a profile or HLO"
    NOTHING = "nothing"


@frozen
class Target:
    """What a word names. Nothing asks the word again."""

    word: str
    """The word as it was given, without the run; for a URL, the path of the copy here."""
    kind: Kind
    path: Path | None = None
    """Path of a session, a job, a profile, HLO, a program, or of what else lies there."""
    run: str = ""
    """Run that the word names behind the session, which may have none of that name; empty for the whole session."""
    newer_job: Path | None = None
    """Job that is newer than the session `last`, where a job does not count."""

    @property
    def is_own(self) -> bool:
        """Whether it is the user's code, which compiling or measuring runs."""
        return self.kind in (Kind.PROGRAM, Kind.FUNCTION)

    @property
    def is_code(self) -> bool:
        """Whether it is compiled or measured now."""
        return self.is_own or self.kind is Kind.WORKLOAD

    @property
    def function(self) -> str:
        """Name by which the engine finds it: the word without the variant of a workload."""
        return self.word.partition(":")[0] if self.kind is Kind.WORKLOAD else self.word

    @property
    def variant(self) -> str:
        """Variant of a workload, `jit` of `selu:jit`; else empty."""
        return self.word.partition(":")[2] if self.kind is Kind.WORKLOAD else ""

    @property
    def file(self) -> Path:
        """The path of something that was recorded. Raises UsageError with similar names if the word names nothing of
        the kind, and for what is compiled."""
        if self.path is None:
            from jaxprof.workloads import CATALOGUE

            raise not_found("path, workload or session", self.word, CATALOGUE)
        return self.path


def resolve(
    word: str,
    note: Callable[[str], None] | None = None,
    *,
    code: bool = False,
    kept: bool = True,
    jobs: bool = False,
    runs: bool = False,
    is_revision: Callable[[str], bool] | None = None,
) -> Target:
    """Return what the word names, by the table above; its kind is NOTHING if there is nothing.

    `note`: called with the progress of fetching; without it a URL is refused. `code`: workloads and functions count.
    `kept`: kept sessions count by name. `jobs`: the newest of what fits may be a job. `runs`: a session may be followed
    by a run. `is_revision`: whether a word is a revision, which then counts. Raises UsageError if several kept sessions
    fit, FileRefusedError for a URL that cannot be fetched.
    """
    if "://" in word:
        from jaxprof.remote import is_url

        if is_url(word):
            # A copy is made of what lies at a URL, and what was fetched is never code.
            from jaxprof.remote import path_here

            if note is None:
                path_here(word, "`jaxprof open URL` and the other commands fetch it.")
            named = _RUN_OF_URL.fullmatch(word) if runs else None
            url, run = (named[1], named[2]) if named else (word, "")
            path = _fetch(url, note or (lambda text: None))
            if path.suffix == ".py":
                raise UsageError(
                    f"{url} is a program, and what comes from a URL is not run",
                    "Download it, read it, and give the file.",
                )
            return Target(str(path), kind_of(path), path, run)
    path = with_home(word)
    if word == "-" and not path.exists():
        raise UsageError(
            "- names nothing: no session, profile or HLO is read from standard input",
            "Write it to a file (... > FILE), and give that.",
        )
    if os.path.exists(path):  # False for what cannot be a path, where `Path.exists` may raise
        if not word.endswith(".py") or path.is_dir():
            return Target(word, kind_of(path), path)
        if code:
            return Target(word, Kind.PROGRAM, path)
    elif code and not _RUN_OF_SESSION.fullmatch(word):
        from jaxprof.workloads import CATALOGUE

        if word.partition(":")[0] in CATALOGUE:
            return Target(word, Kind.WORKLOAD)
        if word.endswith(".py") or (":" in word[1:] and "@{" not in word):  # `:/fix` and `HEAD@{1}` are git's
            return Target(word, Kind.FUNCTION)
        if not kept and "." in word and not is_path(word) and all(part.isidentifier() for part in word.split(".")):
            return Target(word, Kind.FUNCTION)
    return (_find_session(word, jobs=jobs, runs=runs, is_revision=is_revision) if kept else None) or Target(
        word, Kind.NOTHING
    )


_TAKEN_BY = {
    Kind.SESSION: "jaxprof open {word} shows it, jaxprof explain {word} says what to change.",
    Kind.JOB: "jaxprof open {word} compares its processes.",
    Kind.PROFILE: "jaxprof open {word} shows it.",
    Kind.HLO: "jaxprof hlo {word} --findings says what to change in it, --diff OTHER what differs.",
    Kind.PROGRAM: "jaxprof script {word} records it.",
    Kind.FUNCTION: "jaxprof run {word} measures it, jaxprof hlo {word} compiles it.",
    Kind.WORKLOAD: "jaxprof run {word} measures it, jaxprof hlo {word} compiles it.",
    Kind.REVISION: "jaxprof compare --git {word} path/to/file.py:function measures a function against it.",
    Kind.OTHER: "jaxprof script FILE.py records a program, jaxprof open FILE.jaxprof shows a session.",
}
"""What takes a word of each kind."""


def wrong_kind(target: Target, needed: str) -> UsageError | None:
    """Return the error for a word that names something else than what is `needed`, "a session": what it is, and the
    command that takes that. None if it names nothing anywhere. Raises HloError for HLO that no command could read."""
    found = target if target.kind is not Kind.NOTHING else resolve(target.word, code=True, runs=True)
    file = found.word.rpartition(":")[0]
    has_only_the_form = found.kind is Kind.FUNCTION and not (file.endswith(".py") and os.path.isfile(with_home(file)))
    if found.kind is Kind.NOTHING or has_only_the_form:
        return None
    if found.run:
        hint = f"Name the session alone; open, hlo and export take --run {found.run}."
        return UsageError(f"{target.word} is a run of a session, and {needed} is needed", hint)
    if found.kind is Kind.HLO:
        from jaxprof.hlo.paths import modules_at

        modules_at(found.file)
    hint = _TAKEN_BY[found.kind].format(word=shlex.quote(target.word))
    return UsageError(f"{target.word} is {found.kind.value}, and {needed} is needed", hint)


def _find_session(word: str, *, jobs: bool, runs: bool, is_revision: Callable[[str], bool] | None) -> Target | None:
    """Return the kept session, the job or the revision that a word names; for a program, which a command that only
    reads does not run, its newest session. None if there is nothing."""
    from jaxprof.session import Library

    library = Library()
    program = with_home(word)
    is_program = os.path.exists(program)
    path = None if is_program else library.search(word, jobs=jobs, parts=is_revision is None)
    if path is None and is_revision is not None:
        if is_revision(word):
            return Target(word, Kind.REVISION)
        path = library.search(word, jobs=jobs)
    path = path or library.of_script(word, jobs=jobs)
    if path is not None:
        newest = library.search(word, jobs=True) if word == "last" and not jobs else None
        return Target(word, kind_of(path), path, newer_job=newest if newest != path else None)
    if is_program:
        return Target(word, Kind.OTHER, program)
    name, colon, run = word.rpartition(":")
    if not (runs and colon and name):
        return None
    found = resolve(name)
    return replace(found, run=run) if found.path is not None else None


def _fetch(url: str, note: Callable[[str], None]) -> Path:
    """Fetch what is at a URL, once in a command, and return the path of the copy."""
    if url in _fetched_paths:
        return _fetched_paths[url]
    from jaxprof.base.operating_system import raise_on_signals
    from jaxprof.remote import RemoteUrl
    from jaxprof.remote.mirror import Mirror, forget_old

    forget_old(time.time())
    remote = RemoteUrl(url)
    due = time.monotonic() + _PATIENCE_SECONDS

    def progress(done: int, count: int) -> None:
        nonlocal due
        if time.monotonic() >= due and done < count:
            due = time.monotonic() + 5 * _PATIENCE_SECONDS
            note(f"fetching {remote.shown}: {done} of {count} files")

    with raise_on_signals():
        mirror = Mirror(remote)
        if words := mirror.refresh(progress):
            note(f"note: {words}")
    return _fetched_paths.setdefault(url, mirror.path)


def kind_of(path: Path) -> Kind:
    """Return the kind of what lies at `path`, by its name and its first bytes; for a folder, by the files in it. Never
    PROGRAM: what is at a path is looked at. NOTHING if there is nothing."""
    is_folder = path.is_dir()
    if is_folder and is_job_folder(path):
        return Kind.JOB
    try:
        with open_regular(path) as opened:
            head = opened.read(_HEAD_BYTES)
    except OSError:
        head = b""
    if head.startswith(b"{") and b'"jaxprof"' in head:
        return Kind.SESSION
    from jaxprof.hlo.paths import holds_hlo  # imported late: opening a session needs no reader of HLO

    if holds_hlo(path):
        return Kind.HLO
    if not is_folder and not path.is_file():
        return Kind.OTHER if path.exists() else Kind.NOTHING
    if path.suffix == EXTENSION and not is_folder:
        return Kind.SESSION
    from jaxprof.trace.sources import XPLANE_ENDINGS, runs_at

    if is_folder:
        try:
            is_profile = bool(runs_at(path))
        except (FileRefusedError, OSError):
            is_profile = False
    else:
        # The first bytes of gzip, or of the first field of an XSpace: planes, errors, warnings, hosts.
        is_profile = (
            path.name.endswith(XPLANE_ENDINGS)
            or head.startswith((b"\x1f\x8b", b"\x0a", b"\x12", b"\x1a", b"\x22"))
            or bool(_JSON.match(head))
        )
    return Kind.PROFILE if is_profile else Kind.OTHER


def whole_word(word: str) -> str:
    """Return the word of a function with the whole path of its file, so that it is valid from any folder."""
    file, colon, function = (word, "", "") if word.endswith(".py") else word.rpartition(":")
    if not file.endswith(".py"):
        return word
    return f"{with_home(file).resolve()}{colon}{function}"


def command(*words: str) -> str:
    """Return a `jaxprof` command line with these words, quoted for a shell; empty if a word was redacted, because
    nobody could type it."""
    if any(REDACTED in word for word in words):
        return ""
    return shlex.join(("jaxprof", *(with_urls(word) for word in words)))
