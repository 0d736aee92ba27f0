"""Toolcrib: thousands of tools for the price of three."""
