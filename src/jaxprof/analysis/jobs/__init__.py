"""The processes of one job beside each other: what failed, what was compiled alone, which one is late, and why."""
