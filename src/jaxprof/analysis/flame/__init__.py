"""The flame graph: time, or bytes, as frames inside frames."""
