"""Two modules beside each other: which instructions are the same, and how their texts differ."""
