"""The client of the engine: starts it, sends requests, follows and cancels runs, explains their end, and writes what it
reports."""
