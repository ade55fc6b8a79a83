"""The command line: arguments in; data on stdout, notes on stderr and an exit code out. It computes nothing itself."""
