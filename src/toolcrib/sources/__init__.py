"""Where toolsets come from."""
