"""Program: the compile ledger, the time line and the findings of a recorded program."""
