"""One real call of a function of the program: kept, measured at the end, and written down to be run again."""
