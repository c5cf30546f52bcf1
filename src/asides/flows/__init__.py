"""Flows: generators that decide what to do next and ask for I/O. No sockets, no clock, no await."""
