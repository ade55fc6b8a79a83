"""Findings about a module: the catalogue, and one file for each kind of question about a module."""
