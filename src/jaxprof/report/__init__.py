"""A session in writing: JSON, plain text, CSV, Markdown, HTML. Each format is a pure function of a `Session`.

A report is headlines, prose and tables, which `renderers` write as text and CSV and `page` as HTML; `perfetto` is for
that viewer. Everything derived comes from `analysis`; nothing is measured, rounded or guessed here beyond what a format
needs.
"""
