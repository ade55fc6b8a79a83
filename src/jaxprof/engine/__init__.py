"""Runs variants in a child process of ours and measures them: `measure` runs JAX, `protocol` has the messages on the
pipes. Standard library, numpy and jax only, because it runs in the user's environment.

A timing sample from the call to the screen: `engine/measure/jax_run.py` prepares the call;
`engine/measure/sampling.py` times it and makes the event `SamplesTaken` (`events/runs.py`); `engine/main.py` writes the
event on the pipe. In the client, `runner/child.py` reads the pipe for `runner/engine_process.py`, which follows the
run; `runner/turns.py` gives runs that are compared their turns; `runner/session_recorder.py` has
`session/writer.py` number the event and write it, and `session/fold.py` fold it. `analysis/runs/run_result.py`
derives the median and its interval with `stats`, and `analysis/runs/speedup.py` the verdict. `facts/runs.py` says what
it is in every form, `report/runs.py` prints it, and `tui/results/run_table.py` shows it.
"""
