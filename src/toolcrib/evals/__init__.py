"""Measuring retrieval on any catalog: read, run, compare, report (X25)."""
