"""The Results screen and those above it: variants side by side, a run in full, sweeps, two runs compared."""
