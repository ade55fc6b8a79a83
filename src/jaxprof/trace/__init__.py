"""Profiles: XPlane files read into lanes, and what is derived from them as events. Needs numpy, not jax.

`sources.read_profile` reads a profile and `summary.events_of` derives its events; `imported.import_profile` does
both for one from elsewhere.
"""
