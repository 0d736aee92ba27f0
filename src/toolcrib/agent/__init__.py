"""The reference agent: a loop over a model and a session, its core tools, and turns that run unattended."""
