"""Flame graphs as text and as data."""
