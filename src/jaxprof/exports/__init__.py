"""Export sessions to the formats of other tools. `formats` lists them, and each format is one small module.

The module of a format has `pieces(source)`, which yields the file in pieces, or `files(source)` for a folder; and
`runs(session)`, which returns the runs with the data that the format needs, unless every run has it.
"""
