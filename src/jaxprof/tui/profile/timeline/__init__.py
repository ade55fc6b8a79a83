"""The timeline: the state of its view (`browse`), lines (`drawing`), texts (`facts`), and widgets (`pane`, `view`)."""
