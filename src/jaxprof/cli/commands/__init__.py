"""One module per command. Each is imported when its command is called, and imports what it needs when it runs."""
