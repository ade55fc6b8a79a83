"""What runs inside a user's program: it records what the program compiles and why (`compiles`), where its time goes,
with its arrays and transfers (`samples`), and single calls for a rerun (`calls`).

Everything here runs in the user's own process and interpreter, next to their code. It uses the standard library only,
and jax once the program itself has imported it. It changes nothing that the program does, never raises into it and
never writes to its stdout or stderr. It does not guess: what it cannot see, it reports as not seen. It sends codes and
values; the client has the sentences.

A recompile from JAX to the screen: JAX announces it to `recorder/compiles/monitoring.py`; `ledger.py` beside it finds
the call on the stack (`call_site.py`), reads its arguments (`signature.py`), compares them with earlier calls
(`reasons.py`) and makes the event `Compiled` (`rows.py`). `recorder/recorder.py` sends it through `recorder/launch.py`.
In the client, `runner/program.py` reads it, `runner/program_run.py` passes it to the session recorder, and
`session/run.py` keeps it. `analysis/programs/functions.py` groups the compilations by function, and
`findings/programs/recompiling.py` draws conclusions; `facts/programs.py` says what a row has, `report/program.py` and
`tui/program/ledger.py` show both.
"""
