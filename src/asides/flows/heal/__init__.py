"""Repair a refused request with the smallest change: what it teaches about the target makes the next request."""
