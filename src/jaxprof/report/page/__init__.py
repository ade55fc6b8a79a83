"""A session as one HTML file that anyone can open. `document` puts it together, `of_runs` and `of_captures` make it up.

The tables are HTML, so that the page has every figure without a script. The script sorts and filters them, and draws
the charts from data in the page. The page fetches nothing.
"""
