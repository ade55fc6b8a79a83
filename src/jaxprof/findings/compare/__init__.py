"""The difference of two programs or sessions, fact by fact, and limits on it."""
