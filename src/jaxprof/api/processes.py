"""Which process of a job this one is, so that each process of it writes a file of its own.

JAX is asked only where its distributed runtime was initialised: asking starts a backend. Before that, what launched
the process has usually said it in variables of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jaxprof.store.codec import EXTENSION


@dataclass(frozen=True, slots=True)
class JobProcess:
    """One process of a job."""

    index: int = 0
    count: int = 1


_LAUNCHERS: Final = (
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)
"""Variables with the index and the count, as srun, Open MPI, and the launchers of MPICH set them. Slurm's step counts:
a batch script, and a shell on a login node, have `SLURM_PROCID` without being one of several."""


def job_process(environment: Mapping[str, str] = os.environ) -> JobProcess:
    """As JAX's distributed runtime says where it is initialised, else as the launcher says, else the only one."""
    jax = sys.modules.get("jax")
    if jax is not None and jax.distributed.is_initialized():
        return JobProcess(jax.process_index(), jax.process_count())
    for index_name, count_name in _LAUNCHERS:
        index, count = environment.get(index_name, ""), environment.get(count_name, "")
        if index.isdecimal() and count.isdecimal() and int(index) < int(count):
            return JobProcess(int(index), int(count))
    return JobProcess()


def file_for(path: Path, process: JobProcess) -> Path:
    """`path` with its ending; for one process of several with its index: `run.process3.jaxprof`."""
    path = path if path.suffix else path.with_suffix(EXTENSION)
    return path if process.count == 1 else path.with_name(f"{path.stem}.process{process.index}{path.suffix}")


def file_of_its_own(path: Path, host: str) -> Path:
    """Another name beside `path`, which another process of the same program writes: with this one's host and id."""
    return path.with_name(f"{path.stem}.{host}-{os.getpid()}{path.suffix}")
