"""What decides whether a source's text may be seen at all: names, bounds, screening and pins."""
