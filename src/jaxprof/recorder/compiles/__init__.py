"""The compile ledger: what JAX compiles, from which call, with which arguments, and why again."""
