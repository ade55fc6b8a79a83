"""What is derived from the recording of a program: its time line, its ledger by function, findings."""
