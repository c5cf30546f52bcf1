"""The server half of Messages: read a client's request (read_request), write the response (write_reply)."""
