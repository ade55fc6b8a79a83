"""Which process of a job this is, as launchers report it."""

from golden import cases, held_cases
from jaxprof.jobs.process import JobProcess, job_process, take_own_variables, variables_for


def test_the_launcher_says_which_process_it_is():
    """A shell may have RANK for itself, and the batch script of SLURM is no process of its job."""
    read = {line: job_process(dict(word.split("=") for word in line.split())) for line in cases("job_process.txt")}
    held_cases("job_process.txt", {line: f"  {process}\n" for line, process in read.items()})


def test_our_own_variables_come_first_and_are_not_handed_on():
    variables = variables_for(1, 4, "box-1a2b", 4711)
    assert job_process(variables) == JobProcess(1, 4, "jaxprof-box-1a2b")
    assert take_own_variables(variables)
    assert not [name for name in variables if name.startswith("JAXPROF")]
    assert job_process(variables) == JobProcess(1, 4)
    assert not take_own_variables(variables)
