"""What XLA made of a program, read from text or from a proto, without jax.

`paths` and `stages` find modules, `text.parse.modules` parses a text into values of `text.model`, and `kernels` has
what follows from them.

A fusion from the executable to the screen: `engine/measure/stages.py` takes the HLO text from the executable;
`engine/main.py`, `runner/child.py` and `runner/session_recorder.py` pass it on, in chunks (`events/runs.py`).
`analysis/kernels/__init__.py` finds it in whatever was opened; `hlo/stages.py` has `hlo/text/parse.py` parse it once
into the classes of `hlo/text/model.py`. `hlo/kernels/kernels.py` finds the kernels and their cost,
`hlo/kernels/barriers.py` why they were not fused further, and `analysis/kernels/ranking.py` ranks them on a device.
`facts/kernels.py` says what is known of each, for `report/kernels.py` (text) and `tui/hlo/kernels.py` (screen);
`tui/hlo/modules.py` opens them.
"""
