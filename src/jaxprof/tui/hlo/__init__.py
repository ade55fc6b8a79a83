"""The HLO screen: what XLA made of a program. `screen` has the tabs, the two sides and the dialogs."""
