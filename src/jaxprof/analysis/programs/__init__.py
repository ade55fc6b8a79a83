"""The analysis of a recorded program: its time line, its ledger by function, and its findings."""
