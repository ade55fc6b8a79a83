"""Inside a user's program while it runs: what it compiles and why, where its time goes, its arrays and transfers.

Everything here runs in the user's own process and interpreter, beside their code: the standard library only, and jax
where the program itself has imported it. It changes nothing that the program does, never raises into it, never writes
to its stdout or stderr, and refuses to guess: what cannot be seen is said to be unseen.
"""
