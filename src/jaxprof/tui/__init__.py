"""The terminal app: it shows sessions. Only this package knows Textual; it never imports jax and computes no result.

`kit` has what several screens share, and knows the app only as `Host`; `shell` is the app: what it opens and writes
(`profiler`), the menu, the help and the search (`actions`); then there is a package for each screen.

A key from its table to the screen: `tui/keys.py` has the action of each key, `section('timeline')` for `5`.
`action_section` in `tui/shell/navigation.py` chooses the mode and the view that show that section of the session, and
makes a `Destination` of them; the screen of the mode, here `tui/profile/screen.py`, shows it in its `arrive`. A screen
leads to another one in the same way: `self.profiler.show(Destination("hlo", run=run, kernel=name))`.
"""
