"""Reports of recorded programs and of jobs: text, JSON, CSV and Markdown."""
