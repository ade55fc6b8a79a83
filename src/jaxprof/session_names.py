"""What session files and the folders of jobs are called: `mlp.jaxprof`, `run.jaxprof.d/process-00002.jaxprof`.

It imports nothing of ours: the client of `jaxprof script` names its file before it starts the program, and reads one
later.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import chain, count
from pathlib import Path
from typing import Final

EXTENSION: Final = ".jaxprof"
JOB_EXTENSION: Final = f"{EXTENSION}.d"
PROCESS_NAME: Final = re.compile(r"process-(\d{1,9})(?:-(\d{1,9}))?" + re.escape(EXTENSION))
"""Of the session of a process: its index, and which attempt it is if it was started again."""
FETCHED: Final = "fetched"
"""The folder, in the user's state or cache, of the copies of what is at a URL."""
_UNSAFE: Final = re.compile(r"[^\w.+-]+")


def job_folder_for(program: str, job: str, directory: Path) -> Path:
    """Where the processes of `job` put their sessions if nobody says: `train.slurm-1234.0.jaxprof.d`. All of them come
    to the same name."""
    stem = _UNSAFE.sub("-", Path(program).stem) or "program"
    return directory / f"{stem}.{_UNSAFE.sub('-', job)}{JOB_EXTENSION}"


def process_number(name: str) -> int | None:
    """Whose session a file of that name is, in the folder of a job; None for other names."""
    match = PROCESS_NAME.fullmatch(name)
    return int(match[1]) if match else None


def session_path(folder: Path, index: int, taken: Collection[str] = ()) -> Path:
    """A free name for the session of process `index`. `taken`: names that are not free although they are not here."""
    names = chain([""], (f"-{number}" for number in count(2)))
    paths = (folder / f"process-{index:05}{again}{EXTENSION}" for again in names)
    return next(path for path in paths if path.name not in taken and not path.exists())
