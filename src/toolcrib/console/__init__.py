"""The web console: what the gateway does, what it would find, what is saved, what waits and what is ill (X27)."""
