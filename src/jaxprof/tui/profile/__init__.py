"""The Profile screen: the captures of a run, with a pane for each view: `overview`, `timeline`, `compile_pane`."""
