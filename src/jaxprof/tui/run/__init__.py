"""The Run screen: the queue and the current run."""
