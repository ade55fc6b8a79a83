"""The memory of one program as widgets: Profile shows that of a run, HLO that of a file."""
