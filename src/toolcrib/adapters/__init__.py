"""Toolcrib inside hosts that people already have: one short module for each."""
