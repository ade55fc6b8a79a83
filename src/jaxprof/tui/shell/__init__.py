"""The app around the screens: how it starts and ends, what it opens and writes, and how keys lead to screens."""
