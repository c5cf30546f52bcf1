"""Transports: carry out the steps of flows, sync and async. Only this folder opens sockets and uses HTTP libraries."""
