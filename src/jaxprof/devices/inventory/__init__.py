"""Which devices the machine has, which of them JAX uses, and why it does not use the others."""
