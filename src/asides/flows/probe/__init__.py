"""Finds out how an unknown server thinks: sends a few small requests, reads the answers, and writes a row."""
