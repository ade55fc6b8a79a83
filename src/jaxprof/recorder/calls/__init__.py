"""Captures one real call of a function of the program, measures it at the end, and writes it down for a rerun."""
