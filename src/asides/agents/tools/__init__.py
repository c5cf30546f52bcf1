"""Tools that an agent can run: typed functions, or any `Runnable` object. Pure.

Not here: when tools run (flows), the threads and tasks that run them (transports), and their wire format (dialects).
"""
