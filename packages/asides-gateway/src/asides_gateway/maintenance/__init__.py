"""Maintain stores: check them, and export keys and conversations as JSON lines that any store imports."""
