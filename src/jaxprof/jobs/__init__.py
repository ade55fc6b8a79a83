"""Comparison of the processes of one job: what failed, what one process compiled alone, which one is late, and why.

`process` says which of them this one is, `folder` and `roll_ups` find what they have written, `job` reads it all.
`standstill` finds for which process the job stands still, and `watch` says so while it runs. `step_grid` has all steps.

A late process from its clock to the screen: in each process `recorder/samples/cpu_clock.py` reads how long the main
thread worked, and `sample_window.py` beside it makes the event `ProgramSampled`, which comes to `session/run.py` as a
recompile does; `cli/plain_script.py` has each process write its session into the folder of the job, which
`jobs/folder.py` finds again. `jobs/job.py` reads it, as figures of each process (`jobs/figures.py`). `jobs/late.py`
compares their own work, `jobs/arrivals.py` when they arrive at the collectives of captures, and `jobs/findings.py`
draws conclusions. Of many processes `jobs/roll_ups.py` reads the figures from the tables that the package `rollup` has
written beside each session. `facts/processes.py` says what is known of each process, `report/hosts.py` prints it, and
`tui/job/screen.py` follows the folder and shows it.
"""
