"""The HLO screen: what XLA made of a program.

- `screen` has the tabs, the two sides and the dialogs; `modules` reads a program in a thread
- `kernel_side` has the table of `kernels`, the findings and the roofline; `kernel_detail` gives the facts beside them
- `stage_side` shows the text of a stage, and searches it
"""
