"""A check-up: what is set, what answers, what is held back, and what a person can do about it."""
