"""What decides whether a source's text may be seen at all: names, bounds, and later screening and pins."""
