"""Profiles: XPlane and Chrome traces read into lanes, and what is derived of them as events. numpy, and no jax.

`summary.summarise` is the entrance for a profile that was just recorded, `imported.import_profile` for somebody's.
"""
