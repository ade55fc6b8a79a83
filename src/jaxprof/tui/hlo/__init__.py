"""The HLO screen: what XLA made of a program.

- `screen`, its tabs and its two sides, its dialogs (`questions`); `modules` reads a program in a thread
- lists: `kernel_side` has the table of `kernels`, the findings, the barriers and the `roofline`; `kernel_detail` gives
  the facts beside them
- texts: `stage_side` has a `code_view`, which shows a `document`
"""
