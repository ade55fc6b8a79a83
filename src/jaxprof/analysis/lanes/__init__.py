"""The lanes of a timeline as arrays, for pictures and totals: their rows, their kinds, jumps, ranges, search."""
