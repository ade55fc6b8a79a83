"""Sessions and jobs at the URL of any store that fsspec knows, fetched to be read. Everything else works on the local
copy.

Needs the extra `remote` (fsspec), which is imported where it is used.
"""
