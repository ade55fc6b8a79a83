"""Runs that were measured: their results, speed-ups, sweeps, sides, and what the machine can reach."""
