"""Home: devices, workloads, and what was measured last."""
