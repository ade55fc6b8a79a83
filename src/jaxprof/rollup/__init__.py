"""Write the summary tables (roll-ups) of the sessions of a job: Parquet files of some tens of kilobytes beside each
session.

Reports and screens of a job with a thousand processes read these files, and so can other engines; a session is read if
it has none, and for details. Needs the extra `query` (DuckDB and Arrow), which is imported where it is used.
"""
