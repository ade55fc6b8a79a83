"""Reports of recorded programs and of jobs: text, JSON and CSV."""
