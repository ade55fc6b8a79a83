"""The terminal app. The only room that knows Textual; it never imports jax, and computes nothing: it shows sessions."""
