"""What XLA made of a program, read from text or from a proto, without jax.

`files.read_text(path)` gives the text, `parse.modules(text)` its `model.Module` values.
"""
