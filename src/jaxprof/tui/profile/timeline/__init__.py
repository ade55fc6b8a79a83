"""The timeline: the state of its view (`browse`), lines and texts (`drawing`), and widgets (`pane`)."""
