"""What attached servers cost on every turn, and what tool search would save (X23)."""
