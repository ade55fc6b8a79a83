"""The Profile screen: what was captured of a run. A pane for each view: `overview`, `timeline`, `compile_pane`."""
