"""Everything derived from a session's raw facts, for screens and reports alike. Derived values are never stored."""
