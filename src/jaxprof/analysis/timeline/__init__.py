"""A profile over time: its lanes, who called whom, and its steps."""
