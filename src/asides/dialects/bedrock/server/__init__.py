"""The server half of Converse: read a client's request (read_request), write the response (write_reply)."""
