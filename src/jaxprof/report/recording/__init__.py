"""The recording of a program as text, JSON, CSV and Markdown."""
