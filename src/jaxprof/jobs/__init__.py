"""Comparison of the processes of one job: what failed, what one process compiled alone, which one is late, and why."""
