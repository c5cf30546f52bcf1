"""Agents: `Agent` blocking, `AsyncAgent` awaiting. Not here: the loop (flows/agent), which both of them drive."""
