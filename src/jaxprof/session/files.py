"""Where sessions are: the names of their files and of the folders of jobs (`mlp.jaxprof`,
`run.jaxprof.d/process-00002.jaxprof`), the user's state folder, and the copies of what is at a URL. And which sessions
this machine has recorded itself: a file cannot prove who made it, since its host, its id and its folder are what it
says, so the writer adds the digest of what it has written to a list when it closes the file. A session that was
changed, sent or never closed is like any other file.

It loads with no other module of jaxprof: `jaxprof script` names its file before it starts the program, and imports the
rest later. This user's jaxprof wrote everything in the state folder and among the copies, so they can be trusted; they
can be deleted at any time.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain, count
from pathlib import Path

EXTENSION = ".jaxprof"
JOB_EXTENSION = f"{EXTENSION}.d"
PROCESS_NAME = re.compile(r"process-(\d{1,9})(?:-(\d{1,9}))?" + re.escape(EXTENSION))
"""Name of the session of a process: its index, and the number of the attempt if it was started again."""
FETCHED = "fetched"
"""Name of the folder, in the user's state or cache, with the copies of what is at a URL."""
_UNSAFE = re.compile(r"[^\w.+-]+")
HOME_VARIABLE = "JAXPROF_HOME"
FETCHED_FROM = "url.txt"
"""Name of the file in each folder of what was fetched that holds its URL."""
_IN_FETCHED = r"[0-9a-f]{16}[/\\][\w.+@-]*[\w+@-]"
"""Pattern for the key of a URL and its last part, below the folder of what was fetched."""


def job_folder_for(program: str, job: str, directory: Path) -> Path:
    """Return where the processes of `job` put their sessions by default: `train.slurm-1234.0.jaxprof.d`. All of them
    arrive at the same name."""
    stem = _UNSAFE.sub("-", Path(program).stem) or "program"
    return directory / f"{stem}.{_UNSAFE.sub('-', job)}{JOB_EXTENSION}"


def is_job_folder(path: Path) -> bool:
    """Return whether `path` has the name of a job's folder, or is a folder that holds sessions like one."""
    if path.name.endswith(JOB_EXTENSION):
        return True
    return path.is_dir() and any(PROCESS_NAME.fullmatch(entry.name) for entry in path.iterdir())


def process_number(name: str) -> int | None:
    """Return the index of the process whose session has this name, in the folder of a job; None for other names."""
    match = PROCESS_NAME.fullmatch(name)
    return int(match[1]) if match else None


def attempts_in(paths: Iterable[Path]) -> list[tuple[int, int, Path]]:
    """Return index, attempt and path of each process's session, so that of equal indices the newest comes last."""
    named = ((match, path) for path in paths if (match := PROCESS_NAME.fullmatch(path.name)))
    return sorted((int(match[1]), int(match[2] or 1), path) for match, path in named)


def session_path(folder: Path, index: int) -> Path:
    """Return a free path for the session of process `index`."""
    names = chain([""], (f"-{number}" for number in count(2)))
    paths = (folder / f"process-{index:05}{attempt}{EXTENSION}" for attempt in names)
    return next(path for path in paths if not path.exists())


def state_folder() -> Path:
    """Return the folder of sessions and measured figures of the machine: `$JAXPROF_HOME` or the user's state folder."""
    chosen = os.environ.get(HOME_VARIABLE)
    if chosen:
        return Path(chosen)
    from platformdirs import user_state_path

    return user_state_path("jaxprof")


def sessions_folder() -> Path:
    return state_folder() / "sessions"


def columns_file() -> Path:
    """Return where queries keep what they have derived of the kept sessions."""
    return state_folder() / "columns.json"


def lasting_name(path: Path) -> str:
    """Return a name for the session or job at `path` that later commands understand, unlike `last`."""
    kept = path.parent.absolute() == sessions_folder().absolute() and not path.name.startswith("-")
    return path.name.removesuffix(EXTENSION) if kept else url_of(path) or path_word(path)


def path_word(path: str | os.PathLike[str]) -> str:
    """Return a path as a word of a command line, which a leading `-` would make an option; `Path` drops the `./`."""
    text = os.fspath(path)
    return f".{os.sep}{text}" if text.startswith("-") else text


def copies_folder() -> Path:
    """Return the folder for what was fetched from URLs: below `$JAXPROF_HOME`, or the user's cache folder."""
    if os.environ.get(HOME_VARIABLE):
        return state_folder() / FETCHED
    from platformdirs import user_cache_path

    return user_cache_path("jaxprof") / FETCHED


def is_fetched(path: Path) -> bool:
    """Return whether `path` is in what was fetched from URLs, whose folders hold their URL."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(copies_folder())) or bool(note_of_copy(path))


def note_of_copy(path: Path) -> Path | None:
    """Return the file with the URL that `path` is a copy of, written at each look at the URL; None if it is no copy."""
    resolved = Path(os.path.realpath(path))
    notes = (parent / FETCHED_FROM for parent in (resolved, *resolved.parents) if parent.parent.name == FETCHED)
    return next((note for note in notes if note.is_file()), None)


def url_of(path: Path) -> str | None:
    """Return the URL, without its secrets, that the file or folder at `path` is a copy of; None if it is no copy."""
    root = copies_folder().absolute()
    try:
        key, _, *below = path.absolute().relative_to(root).parts
        return "/".join([(root / key / FETCHED_FROM).read_text("utf-8").strip(), *below])
    except (ValueError, OSError):
        return None


def with_urls(text: str) -> str:
    """Return `text` with the URL in place of each path of what was fetched from it: users do not know such a path, and
    it means nothing in another shell."""
    if FETCHED not in text:
        return text
    copy = re.compile(re.escape(f"{copies_folder().absolute()}{os.sep}") + _IN_FETCHED)
    return copy.sub(lambda found: url_of(Path(found[0])) or found[0], text)


_NAME = "recorded"
_LINE_BYTES = 65  # a SHA-256 in hexadecimal digits, and the end of the line


def add_own(digest: str) -> None:
    """Add the digest of a session that this process has recorded. A list that cannot be written raises nothing: the
    session counts as one from elsewhere."""
    from jaxprof.base.files import PRIVATE, private_folder, write_all

    path = state_folder() / _NAME
    with contextlib.suppress(OSError):
        private_folder(path.parent)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), PRIVATE)
        try:
            write_all(file, f"{digest}\n".encode())
        finally:
            os.close(file)


def is_own(digest: str) -> bool:
    path = state_folder() / _NAME
    try:
        status = os.stat(path)
        return digest in _digests(str(path), status.st_mtime_ns, status.st_size)
    except OSError:
        return False


@lru_cache(maxsize=1)
def _digests(path: str, modified_ns: int, size: int) -> frozenset[str]:
    with open(path, encoding="ascii", errors="replace") as file:
        return frozenset(line.strip() for line in file if len(line) == _LINE_BYTES)
