"""Jobs and sessions at a URL of any store that fsspec knows: recorded here and uploaded as they grow, or fetched to be
read. Everything else works on the local copy.

Needs the extra `remote` (fsspec), which is imported where it is used.
"""
