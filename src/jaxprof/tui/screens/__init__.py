"""The five screens of the app, one a file, and the help over them."""
