"""The server half of Interactions: read a client's request (read_request), write the response (write_reply)."""
