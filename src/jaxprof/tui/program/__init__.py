"""The Program screen: the compile ledger, the findings, the lines and the time of a recorded program."""
