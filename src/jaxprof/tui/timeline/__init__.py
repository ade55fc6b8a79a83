"""The timeline as arrays: lanes, what of them is in a window, and searching them. Nothing here knows a widget."""
