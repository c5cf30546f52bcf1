"""The relay: a request in any dialect in, any provider out, the reply in the caller's dialect. Pure, like every flow.

Not here: sockets (transports), and the clients that hand requests to it (integrations).
"""
