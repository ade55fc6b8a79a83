"""Summaries and intervals of raw samples, and comparisons of them. NumPy only, no state, no rounding.

Medians, not means: a shared machine only ever makes a call slower, and a few slow calls must not move the figure.
"""
