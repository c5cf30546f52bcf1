"""Bytes and characters to records and back; knows no provider and no message."""
