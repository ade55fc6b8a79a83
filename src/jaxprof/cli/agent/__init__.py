"""What coding agents use of jaxprof: tools over the Model Context Protocol, and a skill that says what to ask."""
