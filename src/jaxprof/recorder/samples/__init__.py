"""Where the program's time goes, with its loops, arrays and transfers: from samples of the main thread."""
