"""Profiles: XPlane and Chrome traces read into lanes, and what is derived from them as events. Needs numpy, not jax.

`summary.summarise` reads a profile that was just recorded, `imported.import_profile` one from elsewhere.
"""
