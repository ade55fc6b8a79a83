"""Everything derived from a session's raw facts, for screens and reports alike: runs with their warnings, kernels,
timelines, programs. `target` says what a word of the user's names. Derived values are never stored.
"""
