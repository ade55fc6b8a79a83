"""Which process of a job this is, as launchers tell it."""

from __future__ import annotations

from golden import held_cases
from jaxprof.job_process import JobProcess, job_process, take_own_variables, variables_for

VARIABLES = """
LOCAL_RANK=0
SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=4 SLURM_JOB_ID=12 SLURM_STEP_ID=0
SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_JOB_ID=12
OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=prterun-7
OMPI_COMM_WORLD_RANK=-1 OMPI_COMM_WORLD_SIZE=2
PMI_RANK=1 PMI_SIZE=2
PMI_RANK=7 PMI_SIZE=4
RANK=1 WORLD_SIZE=2
RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 TORCHELASTIC_RUN_ID=x
JOB_COMPLETION_INDEX=3 HOSTNAME=train-3
JOB_COMPLETION_INDEX=3 JAXPROF_JOB_COUNT=8 HOSTNAME=box
JOB_COMPLETION_INDEX=8 JAXPROF_JOB_COUNT=8
JOB_COMPLETION_INDEX=x
TPU_WORKER_ID=1 TPU_WORKER_HOSTNAMES=10.0.0.1,10.0.0.2
TPU_WORKER_ID=0 TPU_WORKER_HOSTNAMES=localhost
TPU_WORKER_ID=4 TPU_WORKER_HOSTNAMES=a,b
TPU_WORKER_ID=1 TPU_WORKER_HOSTNAMES=a,b MEGASCALE_NUM_SLICES=2 MEGASCALE_SLICE_ID=1 JOB_COMPLETION_INDEX=1 HOSTNAME=t-1
"""
"""A shell may have RANK for itself, and the batch script of SLURM is no process of its job."""


def test_the_launcher_says_which_process_it_is():
    lines = VARIABLES.strip().splitlines()
    read = {line: job_process(dict(word.split("=") for word in line.split())) for line in lines}
    held_cases("job_process.txt", {line: f"  {process}\n" for line, process in read.items()})


def test_our_own_variables_come_first_and_are_not_handed_on():
    variables = variables_for(1, 4, "box-1a2b", 4711)
    assert job_process(variables) == JobProcess(1, 4, "jaxprof-box-1a2b")
    assert take_own_variables(variables)
    assert not [name for name in variables if name.startswith("JAXPROF")]
    assert job_process(variables) == JobProcess(1, 4)
    assert not take_own_variables(variables)
