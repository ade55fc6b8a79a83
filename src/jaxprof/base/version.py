"""The version of jaxprof, in its own file so that every package can import it."""

__version__ = "0.1.0"
