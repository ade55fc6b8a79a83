"""Sessions as tables that SQL asks: their schema, their columns, and a database that reads nothing else.

Needs the extra `query` (DuckDB and Arrow), which is imported where it is used.
"""
