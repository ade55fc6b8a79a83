"""One module a command. Each is imported when its command is asked for, and imports its rooms when it runs."""
