"""Find out which process of a multi-process job this is, as its launcher reports it in the environment.

Slurm, Open MPI, MPICH, torchrun, TPU pods and Kubernetes have variables of their own; `jaxprof script -n` sets those of
this module and, for `jax.distributed.initialize()`, Open MPI's. The processes of one job agree on `job`, so that each
of them finds the folder of the job by itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, MutableMapping

from jaxprof.base.values import frozen

INDEX = "JAXPROF_JOB_INDEX"
COUNT = "JAXPROF_JOB_COUNT"
JOB = "JAXPROF_JOB"
"""Variables with which `jaxprof script -n` tells each process that it starts its index, their number, and the job."""
_NUMBER = re.compile(r"\d{1,9}")


@frozen
class JobProcess:
    index: int = 0
    count: int = 1
    """Number of processes; 0 if the launcher does not report it. JAX knows it later."""
    job: str = ""
    """The launcher and its id of the job, `slurm-1234.0`; empty if it reports none."""


@frozen
class _Launcher:
    name: str
    index: str
    count: str
    """Variables with the index of the process (`index`) and the number of processes (`count`)."""
    ids: tuple[tuple[str, ...], ...] = ()
    """Groups of variables whose values identify the job; the first group that is set completely counts."""
    needs: str = ""
    """A variable without which the other variables may come from another source; empty if none is needed."""


_LAUNCHERS = (
    _Launcher("jaxprof", INDEX, COUNT, ((JOB,),)),
    _Launcher("slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", (("SLURM_JOB_ID", "SLURM_STEP_ID"),)),
    _Launcher(
        "openmpi",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        (("PMIX_NAMESPACE",), ("OMPI_MCA_ess_base_jobid",)),
    ),
    _Launcher("mpich", "PMI_RANK", "PMI_SIZE", (("PMI_JOBID",),)),
    _Launcher("torchrun", "RANK", "WORLD_SIZE", (("TORCHELASTIC_RUN_ID",),), needs="LOCAL_RANK"),
)
"""Only Slurm's step variables are used: a batch script or a login shell has `SLURM_PROCID` without being one of several
processes. `srun`: https://slurm.schedmd.com/srun.html; Open MPI: https://docs.open-mpi.org, "Environment variables that
Open MPI sets"; torchrun: https://pytorch.org/docs/stable/elastic/run.html."""


def job_process(environment: Mapping[str, str] = os.environ) -> JobProcess:
    """Return what the launcher's variables report; the only process if there are none, or they disagree."""
    for launcher in _LAUNCHERS:
        index, count = environment.get(launcher.index, ""), environment.get(launcher.count, "")
        if launcher.needs and launcher.needs not in environment:
            continue
        if _NUMBER.fullmatch(index) and _NUMBER.fullmatch(count) and int(index) < int(count):
            groups = ([environment.get(name, "") for name in names] for names in launcher.ids)
            job = next((f"{launcher.name}-{'.'.join(values)}" for values in groups if all(values)), "")
            return JobProcess(int(index), int(count), job)
    # A worker of a slice of several TPU hosts. Each of several slices (`MEGASCALE_NUM_SLICES`) counts its workers
    # from 0, and JAX counts slice by slice. Source: https://cloud.google.com/kubernetes-engine/docs/concepts/tpus
    # and JAX's own detection, `jax.distributed.initialize`.
    worker = environment.get("TPU_WORKER_ID", "")
    hosts = len(list(filter(None, environment.get("TPU_WORKER_HOSTNAMES", "").split(","))))
    slices, slice_ = environment.get("MEGASCALE_NUM_SLICES", "1"), environment.get("MEGASCALE_SLICE_ID", "0")
    if all(map(_NUMBER.fullmatch, (worker, slices, slice_))):
        at, processes = int(slice_) * hosts + int(worker), int(slices) * hosts
        if int(worker) < hosts and at < processes and processes > 1:
            return JobProcess(at, processes, _named_by_kubernetes(environment))
    # A pod of an indexed job. The number of pods is not in its environment, but `JAXPROF_JOB_COUNT` may give it.
    # Source: https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode.
    index, count = environment.get("JOB_COMPLETION_INDEX", ""), environment.get(COUNT, "0")
    if _NUMBER.fullmatch(index) and _NUMBER.fullmatch(count) and not 0 < int(count) <= int(index):
        return JobProcess(int(index), int(count), _named_by_kubernetes(environment))
    return JobProcess()


def _named_by_kubernetes(environment: Mapping[str, str]) -> str:
    """Return `kubernetes-train` for a pod with the host name `train-3`, as indexed jobs have; empty for others."""
    name, dash, index = environment.get("HOSTNAME", "").rpartition("-")
    return f"kubernetes-{name}" if dash and name and index == environment.get("JOB_COMPLETION_INDEX") else ""


def take_own_variables(environment: MutableMapping[str, str] = os.environ) -> bool:
    """Remove the variables that `jaxprof script -n` has set, so that the program and its children do not see them.
    Return whether they were set."""
    values = [environment.pop(name, None) for name in (INDEX, COUNT, JOB)]
    return None not in values


def variables_for(index: int, count: int, job: str, port: int) -> dict[str, str]:
    """Return the environment of one process of a job on this machine: our variables, and those that
    `jax.distributed.initialize()` and programs for torchrun read. `port`: of the coordinator, on the loopback
    interface.

    JAX has variables for the coordinator's address, and none for index and count: it reads those of Slurm, Open MPI
    and Kubernetes (https://docs.jax.dev/en/latest/multi_process.html). Open MPI's need nothing else to be there.
    """
    address = "127.0.0.1"
    return {
        INDEX: str(index),
        COUNT: str(count),
        JOB: job,
        "JAX_COORDINATOR_ADDRESS": f"{address}:{port}",
        "OMPI_MCA_orte_hnp_uri": f"0.0;tcp://{address}:{port}",
        "OMPI_COMM_WORLD_RANK": str(index),
        "OMPI_COMM_WORLD_SIZE": str(count),
        "OMPI_COMM_WORLD_LOCAL_RANK": str(index),
        "RANK": str(index),
        "WORLD_SIZE": str(count),
        "LOCAL_RANK": str(index),
        "MASTER_ADDR": address,
        "MASTER_PORT": str(port),
    }
