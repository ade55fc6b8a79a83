"""What screens share. Knows no screen.

- screens: `screen` (the base of all, also of those with several views), `screen_bars` (the lines above and below),
  `captures` (views that several have, and the checks of a capture)
- lists: `row_list` (the one list, and trees), `table_columns` (columns as data), `filter`, `text_lists`
  (facts; findings, with what proves them)
- pictures: `drawing` (bars, marks, sparklines), `canvas` (dots and scales), `plots`; `picture` (the widgets that
  show them)
- texts: `format` (figures in words), `python_source`
- dialogs: `dialogs` (questions and forms, among them the one that starts a program)
- `program_summary`: a recorded program in a few lines
"""
