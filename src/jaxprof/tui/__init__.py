"""The terminal app: it shows sessions. Only this package knows Textual; it never imports jax and computes no result."""
