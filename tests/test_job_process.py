"""Which process of a job this is, as launchers tell it."""

from __future__ import annotations

import pytest

from jaxprof.job_process import JobProcess, job_process, take_own_variables, variables_for


@pytest.mark.parametrize(
    ("variables", "process"),
    [
        ({}, JobProcess()),
        (
            {"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4", "SLURM_JOB_ID": "12", "SLURM_STEP_ID": "0"},
            JobProcess(3, 4, "slurm-12.0"),
        ),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "12"}, JobProcess()),  # its batch script
        (
            {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "PMIX_NAMESPACE": "prterun-7"},
            JobProcess(1, 2, "openmpi-prterun-7"),
        ),
        ({"PMI_RANK": "7", "PMI_SIZE": "4"}, JobProcess()),
        ({"RANK": "1", "WORLD_SIZE": "2"}, JobProcess()),  # a shell may have those for itself
        (
            {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "TORCHELASTIC_RUN_ID": "x"},
            JobProcess(1, 2, "torchrun-x"),
        ),
        ({"JOB_COMPLETION_INDEX": "3", "HOSTNAME": "train-3"}, JobProcess(3, 0, "kubernetes-train")),
        ({"JOB_COMPLETION_INDEX": "3", "JAXPROF_JOB_COUNT": "8", "HOSTNAME": "box"}, JobProcess(3, 8)),
        ({"JOB_COMPLETION_INDEX": "x"}, JobProcess()),
        ({"TPU_WORKER_ID": "1", "TPU_WORKER_HOSTNAMES": "10.0.0.1,10.0.0.2"}, JobProcess(1, 2)),
        ({"TPU_WORKER_ID": "0", "TPU_WORKER_HOSTNAMES": "localhost"}, JobProcess()),
        (
            {
                "TPU_WORKER_ID": "1",
                "TPU_WORKER_HOSTNAMES": "a,b",
                "MEGASCALE_NUM_SLICES": "2",
                "MEGASCALE_SLICE_ID": "1",
                "JOB_COMPLETION_INDEX": "1",
                "HOSTNAME": "train-1",
            },
            JobProcess(3, 4, "kubernetes-train"),
        ),
        ({"OMPI_COMM_WORLD_RANK": "-1", "OMPI_COMM_WORLD_SIZE": "2"}, JobProcess()),
    ],
)
def test_the_launcher_says_which_process_it_is(variables: dict[str, str], process: JobProcess) -> None:
    assert job_process(variables) == process


def test_our_own_variables_come_first_and_are_not_handed_on() -> None:
    variables = variables_for(1, 4, "box-1a2b", 4711)
    assert job_process(variables) == JobProcess(1, 4, "jaxprof-box-1a2b")
    assert take_own_variables(variables)
    assert not [name for name in variables if name.startswith("JAXPROF")]
    assert job_process(variables) == JobProcess(1, 4)
    assert not take_own_variables(variables)
