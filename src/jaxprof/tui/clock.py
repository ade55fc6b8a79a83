"""The clocks of the app: the time of day, the clock that never goes back, which dates events, and the processor time of
a thread, which says how rarely a growing program is shown.

Every module of the app reads them from here, as `clock.monotonic()`, and a test that sets them sets them for all
screens. Nothing is measured with them: that is the engine's and the recorder's.
"""

from time import localtime, monotonic, sleep, strftime, thread_time
from time import time as unix_seconds

__all__ = ["localtime", "monotonic", "sleep", "strftime", "thread_time", "unix_seconds"]
