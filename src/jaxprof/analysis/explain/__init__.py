"""What to do about a session, a profile or HLO: one catalogue of findings, and one ranked list over all sources."""
