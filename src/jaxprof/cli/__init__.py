"""The command line: words in, data on stdout, notes on stderr, an exit code. It computes nothing of its own."""
