"""The server half of Responses: read a client's request (read_request), write the response (write_reply)."""
