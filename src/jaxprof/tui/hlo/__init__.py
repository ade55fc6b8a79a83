"""The HLO screen: what XLA made of a program.

- `screen`, its tabs and its two sides (`sides`), its dialogs (`questions`); `modules` reads a program in a thread
- lists: `kernel_side` has the `kernel_table` (its rows are in `kernel_rows`), the `finding_list` (of findings and of
  barriers) and the `roofline_plot`; `kernel_detail` gives the facts beside them
- texts: `stage_side` has the widgets of `text`
"""
