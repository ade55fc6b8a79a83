"""Names of session files and of the folders of jobs: `mlp.jaxprof`, `run.jaxprof.d/process-00002.jaxprof`.

It imports no other module of jaxprof: `jaxprof script` names its file before it starts the program, and imports the
rest later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain, count
from pathlib import Path

EXTENSION = ".jaxprof"
JOB_EXTENSION = f"{EXTENSION}.d"
PROCESS_NAME = re.compile(r"process-(\d{1,9})(?:-(\d{1,9}))?" + re.escape(EXTENSION))
"""Name of the session of a process: its index, and the number of the attempt if it was started again."""
FETCHED = "fetched"
"""Name of the folder, in the user's state or cache, with the copies of what is at a URL."""
_UNSAFE = re.compile(r"[^\w.+-]+")


def job_folder_for(program: str, job: str, directory: Path) -> Path:
    """Return where the processes of `job` put their sessions by default: `train.slurm-1234.0.jaxprof.d`. All of them
    arrive at the same name."""
    stem = _UNSAFE.sub("-", Path(program).stem) or "program"
    return directory / f"{stem}.{_UNSAFE.sub('-', job)}{JOB_EXTENSION}"


def process_number(name: str) -> int | None:
    """Return the index of the process whose session has this name, in the folder of a job; None for other names."""
    match = PROCESS_NAME.fullmatch(name)
    return int(match[1]) if match else None


def attempts_in(paths: Iterable[Path]) -> list[tuple[int, int, Path]]:
    """Return index, number of the attempt, and path of each session of a process, so that of equal indices the newest
    comes last."""
    named = ((match, path) for path in paths if (match := PROCESS_NAME.fullmatch(path.name)))
    return sorted((int(match[1]), int(match[2] or 1), path) for match, path in named)


def session_path(folder: Path, index: int) -> Path:
    """Return a free path for the session of process `index`."""
    names = chain([""], (f"-{number}" for number in count(2)))
    paths = (folder / f"process-{index:05}{attempt}{EXTENSION}" for attempt in names)
    return next(path for path in paths if not path.exists())
