"""Query sessions in SQL: the tables of sessions, their columns, and a database that reads nothing else.

`columnar` makes Arrow tables, `execution` starts a process that runs one query, `database` is its locked DuckDB. Needs
the extra `query` (DuckDB and Arrow), which is imported where it is used.
"""
