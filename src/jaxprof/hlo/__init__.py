"""What XLA made of a program, read from text or from a proto, without jax.

`parse.modules(text)` and `files.load(path)` give `model.Module` values.
"""
