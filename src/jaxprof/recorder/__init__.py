"""What runs inside a user's program: it records what the program compiles and why, where its time goes, its arrays and
transfers.

Everything here runs in the user's own process and interpreter, next to their code. It uses the standard library only,
and jax once the program itself has imported it. It changes nothing that the program does, never raises into it and
never writes to its stdout or stderr. It does not guess: what it cannot see, it reports as not seen.
"""
