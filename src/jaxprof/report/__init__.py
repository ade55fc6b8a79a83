"""A session in writing: JSON, plain text, CSV, Markdown. One small file a format, each a pure function of a Session.

Everything derived comes from `results`; nothing is measured, rounded or guessed here beyond what a format needs.
"""
