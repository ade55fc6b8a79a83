"""The kernels of a compiled program: ranked, measured, and the memory that they need."""
