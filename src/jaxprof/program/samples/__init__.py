"""Where the program's time goes, its loops, arrays and transfers: by samples of the main thread."""
