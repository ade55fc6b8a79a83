"""The clocks of the app: the time of day, the clock that never goes back, and the processor time of a thread, by which
a growing program is shown more rarely. A test that sets them sets them for all screens. Nothing is measured here."""

from time import localtime, monotonic, sleep, strftime, thread_time
from time import time as unix_seconds

__all__ = ["localtime", "monotonic", "sleep", "strftime", "thread_time", "unix_seconds"]
