"""Query sessions in SQL: the tables of sessions, their columns, and a database that reads nothing else.

`sql_process` starts a process that runs one query, `database` is its locked DuckDB, `execution` gathers the tables for
it, `columnar` makes them, `kept_columns` keeps what was derived for them. Needs the extra `query` (DuckDB and Arrow),
which is imported where it is used.
"""
