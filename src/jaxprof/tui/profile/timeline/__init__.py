"""The timeline: its data as arrays (lanes, frame, search), the state of its view (browse), its widgets (pane, view)."""
