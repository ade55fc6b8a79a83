"""Sessions: opens, copies and deletes saved sessions."""
