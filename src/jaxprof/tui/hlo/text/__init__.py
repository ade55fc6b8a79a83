"""A text of any size on the screen: its lines, its navigation, and the widgets that show and search it."""
