"""Benchmarks: ratios in one run, medians of CPU time, and what was counted."""
