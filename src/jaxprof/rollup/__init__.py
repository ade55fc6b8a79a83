"""What the session of a process comes to, in tables of some tens of kilobytes: Parquet files beside the sessions.

A job of a thousand processes is looked at through these files, and by other engines; the sessions are read where there
are none, and for details. Needs the extra `query` (DuckDB and Arrow), which is imported where it is used.
"""

from typing import Final

FOLDER: Final = "rollup"
"""In the folder of a job: it holds a folder for each table."""
ENDING: Final = ".parquet"
