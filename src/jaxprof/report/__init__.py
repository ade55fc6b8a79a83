"""A session in writing: JSON, plain text, CSV, Markdown, HTML. Each format is a pure function of a `Session`.

Everything derived comes from `analysis`; nothing is measured, rounded or guessed here beyond what a format needs.
"""
