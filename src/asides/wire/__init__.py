"""Bytes and characters to records and back. Nothing here knows a provider or a message."""
