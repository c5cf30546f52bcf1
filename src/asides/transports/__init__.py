"""Transports: carry out what flows ask for, sync and async. Only here sockets are opened and HTTP libraries known."""
