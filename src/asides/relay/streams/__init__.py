"""Runs a relayed request over a transport: `relay_stream`, with the handlers of the relay's steps (`step_handlers`)."""
