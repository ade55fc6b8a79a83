"""Findings: what is worth changing in programs, HLO, measured runs, captures, jobs and comparisons, and the
explanation that is made of them.

Each is a check with its title, its meaning and its fix in one place; `catalogue` lists all of them, and `derive` makes
the explanation. `program_result` is a program with its findings, `compare` what differs between two sessions, with the
limits of `gate` on it.
"""
