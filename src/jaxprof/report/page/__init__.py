"""A session as one HTML file that anyone can open. `document` puts it together, of the `sections`.

The tables are HTML, so that the page has every figure without a script. The script sorts and filters them, and draws
the charts from data in the page. The page fetches nothing.
"""
