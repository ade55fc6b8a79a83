"""Modal questions: each gives one value back, or None when it was left with Escape."""
