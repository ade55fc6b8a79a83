"""Results: variants side by side, a run in full, sweeps."""
