"""Run: the current runs."""
