"""Query sessions in SQL: the tables of sessions, their columns, and a database that reads nothing else.

Needs the extra `query` (DuckDB and Arrow), which is imported where it is used.
"""
