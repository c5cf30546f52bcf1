"""Maintain stores: check them, and copy them from SQLite to PostgreSQL and back."""
