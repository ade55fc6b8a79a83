"""Sessions in the forms that other tools read: `formats` lists them, and each is one small module.

A module of a format has `runs(session)`, the runs that have what the format is made of, and `pieces(source)`, the file
in pieces.
"""
