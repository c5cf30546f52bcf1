"""Decisions: generators that ask for I/O and are driven by the two shells. No sockets, no clock, no await."""
