"""Maintain stores: check them, and copy them from SQLite to PostgreSQL and back.

Not here: what is stored, and how it is written in daily use (conversations/store, relay/vault, gateway, batch).
"""
