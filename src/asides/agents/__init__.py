"""Agents: `Agent` sync, `AsyncAgent` async. Not here: the loop (flows/agent), which both of them drive."""
