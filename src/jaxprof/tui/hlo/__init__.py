"""The HLO screen: what XLA made of a program.

- `screen` has the tabs, the two sides and the dialogs; `modules` reads a program in a thread
- lists: `kernel_side` has the table of `kernels`, the findings and the roofline; `kernel_detail` gives the facts
  beside them
- texts: `stage_side` has a `code_view`, which shows a `document`, and searches it
"""
