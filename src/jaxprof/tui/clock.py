"""The clocks of the app: the time of day, and the clock that never goes back, which dates events.

Every module of the app reads them from here, as `clock.monotonic()`, and a test that sets them sets them for all
screens. Nothing is measured with them: that is the engine's and the recorder's.
"""

from time import localtime, monotonic, sleep, strftime
from time import time as unix_seconds

__all__ = ["localtime", "monotonic", "sleep", "strftime", "unix_seconds"]
