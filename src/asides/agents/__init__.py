"""Agents: `Agent` sync, `AsyncAgent` async."""
