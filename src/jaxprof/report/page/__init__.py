"""A session as one HTML file that anyone can open: `document` puts it together, `sections` says what stands in it.

The tables are HTML, so that the page says everything without a script; the script sorts and filters them, and draws the
charts from the data beside them. Nothing is fetched from anywhere.
"""
