"""The lanes of a timeline as arrays, for pictures and totals: rows, kinds, jumps, ranges and search."""
