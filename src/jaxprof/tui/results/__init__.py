"""Runs, and the screens above them: variants side by side, a run in full, sweeps, two runs compared."""
